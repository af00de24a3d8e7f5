//! The real program from outside: what it prints, how it exits, what survives a kill.
#![cfg(test)]

mod agents;
mod approvals;
mod bench;
mod cancels;
mod checks;
mod code;
mod compose;
mod demo;
mod deployment;
mod dev;
mod distributed;
mod doctor;
mod documents;
mod dry_run;
mod endings;
mod everyday;
mod faults;
mod files;
mod fleet_bench;
mod freezing;
mod gateway;
mod home;
mod interrupts;
mod journal;
mod kill_points;
mod kills;
mod printed;
mod rehearse;
mod reloading;
mod secure;
mod shows;
mod stores;
mod terminal;
mod told;
mod tools;
