//! Leases in memory. The file lock proves that an earlier process is dead, so there is nothing to
//! remember over a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use ports::reads::ReadTable;
use ports::working_memory::Claim;
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use tokio::time::Instant;

use crate::book::later;
use crate::guarded::Guarded;

/// Leases beyond this many are looked through for ended ones.
const MANY: usize = 4096;

#[derive(Debug)]
struct Lease {
    holder: InstanceId,
    until: Instant,
}

type CallLeases = BTreeMap<(ThreadRef, ToolCallId), Lease>;

/// Who works on which call, and who probes which tool.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    calls: Guarded<CallLeases>,
    probes: Guarded<BTreeMap<ToolName, Lease>>,
    reads: Guarded<ReadTable>,
}

impl Leases {
    /// Shared reads and places.
    pub(crate) fn reads<T>(&self, work: impl FnOnce(&mut ReadTable) -> T) -> T {
        self.reads.with(work)
    }

    pub(crate) fn claim(
        &self,
        call: (ThreadRef, ToolCallId),
        holder: &InstanceId,
        lease: Duration,
        now: Instant,
    ) -> Claim {
        self.calls.with(|calls| {
            if let Some(other) = calls.get(&call)
                && other.until > now
                && other.holder != *holder
            {
                let left = other.until.saturating_duration_since(now);
                return Claim::Held { by: other.holder.clone(), left };
            }
            forget_ended(calls, now);
            calls.insert(call, Lease { holder: holder.clone(), until: later(now, lease) });
            Claim::Won
        })
    }

    pub(crate) fn release(&self, call: &(ThreadRef, ToolCallId), holder: &InstanceId) {
        self.calls.with(|calls| {
            if calls.get(call).is_some_and(|lease| lease.holder == *holder) {
                calls.remove(call);
            }
        });
    }

    /// The probe goes to one asker until its lease ends, even if that one asks again.
    pub(crate) fn probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
        now: Instant,
    ) -> bool {
        self.probes.with(|probes| {
            let free = probes.get(tool).is_none_or(|taken| taken.until <= now);
            if free {
                let taken = Lease { holder: holder.clone(), until: later(now, lease) };
                probes.insert(tool.clone(), taken);
            }
            free
        })
    }
}

fn forget_ended(calls: &mut CallLeases, now: Instant) {
    if calls.len() >= MANY {
        calls.retain(|_, lease| lease.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::thread_of;

    const LEASE: Duration = Duration::from_secs(6);

    fn call() -> (ThreadRef, ToolCallId) {
        let thread = thread_of("0/acme/01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        (thread, ToolCallId::new("abc123xyz").unwrap())
    }

    fn holder(name: &str) -> InstanceId {
        InstanceId::new(name).unwrap()
    }

    #[test]
    fn a_claim_is_held_until_its_lease_ends() {
        let (leases, now) = (Leases::default(), Instant::now());
        assert_eq!(leases.claim(call(), &holder("a"), LEASE, now), Claim::Won);
        assert_eq!(leases.claim(call(), &holder("a"), LEASE, now + LEASE / 2), Claim::Won);
        let held = Claim::Held { by: holder("a"), left: LEASE / 2 };
        assert_eq!(leases.claim(call(), &holder("b"), LEASE, now + LEASE), held);
        assert_eq!(leases.claim(call(), &holder("b"), LEASE, now + LEASE * 2), Claim::Won);
    }

    #[test]
    fn only_the_holder_gives_a_lease_back() {
        let (leases, now) = (Leases::default(), Instant::now());
        assert_eq!(leases.claim(call(), &holder("a"), LEASE, now), Claim::Won);
        leases.release(&call(), &holder("b"));
        let held = Claim::Held { by: holder("a"), left: LEASE };
        assert_eq!(leases.claim(call(), &holder("b"), LEASE, now), held);
        leases.release(&call(), &holder("a"));
        assert_eq!(leases.claim(call(), &holder("b"), LEASE, now), Claim::Won);
    }

    #[test]
    fn a_breaker_has_one_probe_at_a_time() {
        let (leases, now) = (Leases::default(), Instant::now());
        let tool = ToolName::new("probe").unwrap();
        assert!(leases.probe(&tool, &holder("a"), LEASE, now));
        assert!(!leases.probe(&tool, &holder("a"), LEASE, now));
        assert!(!leases.probe(&tool, &holder("b"), LEASE, now));
        assert!(leases.probe(&tool, &holder("b"), LEASE, now + LEASE));
    }
}
