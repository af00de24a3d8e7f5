//! The worker's loop over fakes, with a clock that jumps from one thing that is due to the next.

#[cfg(test)]
mod cancelling;
#[cfg(test)]
mod changing;
#[cfg(test)]
mod crashing;
#[cfg(test)]
mod delivering;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod freezing;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod tool;
#[cfg(test)]
mod world;
