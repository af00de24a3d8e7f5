//! Whether a process lives, and whether it can do its work.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// Tells in words what is wrong, if something is.
pub type Check = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The conditions under which a process is ready; clones share them.
#[derive(Clone)]
pub struct Health {
    checks: watch::Sender<Vec<Check>>,
    starting: watch::Sender<bool>,
}

impl Health {
    /// Not ready until [`Health::started`].
    pub fn starting() -> Self {
        Self { checks: watch::Sender::new(Vec::new()), starting: watch::Sender::new(true) }
    }

    /// Adds a condition.
    pub fn needs(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.checks.send_modify(|checks| checks.push(Arc::new(check)));
    }

    /// The process works from now on, as far as its conditions hold.
    pub fn started(&self) {
        self.starting.send_replace(false);
    }

    /// What keeps the process from its work; empty when it is ready.
    pub fn troubles(&self) -> Vec<String> {
        if *self.starting.borrow() {
            return vec!["starting".to_owned()];
        }
        let checks = self.checks.borrow().clone();
        checks.iter().filter_map(|check| check()).collect()
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("troubles", &self.troubles()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_once_it_started_and_while_its_conditions_hold() {
        let health = Health::starting();
        assert_eq!(health.troubles(), ["starting"]);
        let bus = watch::Sender::new(Some("the bus is gone".to_owned()));
        let seen = bus.subscribe();
        health.needs(move || seen.borrow().clone());
        health.started();
        assert_eq!(health.troubles(), ["the bus is gone"]);
        bus.send_replace(None);
        assert!(health.troubles().is_empty());
    }
}
