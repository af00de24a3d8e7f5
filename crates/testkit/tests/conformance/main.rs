//! The fakes pass every suite, and every rule catches a fake that breaks it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod flawed_bus;
mod flawed_feed;
mod flawed_freezes;
mod flawed_journal;
mod flawed_memory;
mod flawed_recall;
mod worlds;

use testkit::conformance::{
    Broken, BusWorld, MemoryWorld, RecallWorld, Report, Rule, artifacts, feed, freezes, journal,
    live, queues, recall, registry, schedules, working_memory,
};

use worlds::{BusHarness, MemoryHarness};

const SOUND: &str = "";

fn bus_rules() -> Vec<&'static Rule<dyn BusWorld>> {
    let suites = [
        journal::RULES,
        schedules::RULES,
        queues::RULES,
        live::RULES,
        artifacts::RULES,
        registry::RULES,
        freezes::RULES,
        feed::RULES,
    ];
    suites.into_iter().flatten().collect()
}

fn assert_all_held<W: ?Sized>(report: &Report, rules: &[Rule<W>]) {
    let names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    assert_eq!((report.held.clone(), report.is_clean()), (names, true), "{report}");
}

#[tokio::test(start_paused = true)]
async fn the_memory_bus_keeps_every_contract() {
    let harness = BusHarness(SOUND);
    assert_all_held(&journal::all(&harness).await, journal::RULES);
    assert_all_held(&schedules::all(&harness).await, schedules::RULES);
    assert_all_held(&queues::all(&harness).await, queues::RULES);
    assert_all_held(&live::all(&harness).await, live::RULES);
    assert_all_held(&artifacts::all(&harness).await, artifacts::RULES);
    assert_all_held(&registry::all(&harness).await, registry::RULES);
    assert_all_held(&freezes::all(&harness).await, freezes::RULES);
    assert_all_held(&feed::all(&harness).await, feed::RULES);
}

#[tokio::test(start_paused = true)]
async fn the_working_memory_keeps_its_contract() {
    let report = working_memory::all(&MemoryHarness(SOUND)).await;
    assert_all_held(&report, working_memory::RULES);
}

#[tokio::test]
async fn the_long_term_memory_keeps_its_contract() {
    let report = recall::all(&flawed_recall::Harness(SOUND)).await;
    assert_all_held(&report, recall::RULES);
}

#[tokio::test]
async fn every_rule_of_long_term_memory_catches_a_fake_that_breaks_it() {
    let mut blind = Vec::new();
    for rule in recall::RULES {
        let world: &dyn RecallWorld = &flawed_recall::world(rule.name);
        if !is_violated(&(rule.check)(world).await) {
            blind.push(rule.name);
        }
    }
    assert_eq!(blind, Vec::<&str>::new());
}

fn is_violated(outcome: &Result<(), Broken>) -> bool {
    matches!(outcome, Err(Broken::Violated(_)))
}

/// A rule without a fake that breaks it passes here, and that fails this test.
#[tokio::test(start_paused = true)]
async fn every_rule_of_the_bus_catches_a_fake_that_breaks_it() {
    let mut blind = Vec::new();
    for rule in bus_rules() {
        let world = worlds::bus(rule.name);
        if !is_violated(&(rule.check)(&world).await) {
            blind.push(rule.name);
        }
    }
    assert_eq!(blind, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn every_rule_of_working_memory_catches_a_fake_that_breaks_it() {
    let mut blind = Vec::new();
    for rule in working_memory::RULES {
        let world: &dyn MemoryWorld = &worlds::memory(rule.name);
        if !is_violated(&(rule.check)(world).await) {
            blind.push(rule.name);
        }
    }
    assert_eq!(blind, Vec::<&str>::new());
}

/// A typing error in the name of a flaw would leave a fake sound.
#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<_> = bus_rules().iter().map(|rule| rule.name).collect();
    names.extend(working_memory::RULES.iter().map(|rule| rule.name));
    names.extend(recall::RULES.iter().map(|rule| rule.name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
