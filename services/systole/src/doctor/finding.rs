//! What can be found.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// What was acknowledged can be lost, or a run can stay asleep: "durable" would be a lie.
    NotDurable,
    /// Nothing acknowledged is lost by it alone; time, money or a second fault is.
    Risk,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// In words.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NotDurable => "NOT DURABLE",
            Self::Risk => "RISK",
            Self::Note => "NOTE",
        }
    }
}

/// Defines the closed set once, with names and severities.
macro_rules! kinds {
    ($($variant:ident => $name:literal, $severity:ident;)*) => {
        /// Everything that `doctor` can find; `docs/doctor.md` explains each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($variant,)* }

        impl Kind {
            /// All of them.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// How bad it is.
            pub(crate) fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),* }
            }
        }
    };
}

kinds! {
    BusUnreachable => "bus_unreachable", NotDurable;
    BusTooOld => "bus_too_old", NotDurable;
    BusKeepsNothing => "bus_keeps_nothing", NotDurable;
    SyncUnknown => "sync_unknown", NotDurable;
    SyncLate => "sync_late", NotDurable;
    LogInMemory => "log_in_memory", NotDurable;
    LogLimited => "log_limited", NotDurable;
    LogForgets => "log_forgets", NotDurable;
    QueueGivesUp => "queue_gives_up", NotDurable;
    QueueUnacknowledged => "queue_unacknowledged", NotDurable;
    StoreUnreadable => "store_unreadable", NotDurable;
    StoreUnsynced => "store_unsynced", NotDurable;
    StoreVolatile => "store_volatile", NotDurable;
    StoreRemote => "store_remote", NotDurable;
    OneCopy => "one_copy", Risk;
    CopiesDiffer => "copies_differ", Risk;
    NoSchedules => "no_schedules", Risk;
    QueueHeldLimit => "queue_held_limit", Risk;
    QueueAckWait => "queue_ack_wait", Risk;
    QueueDeleted => "queue_deleted", Risk;
    QueuePaused => "queue_paused", Risk;
    BusNearlyFull => "bus_nearly_full", Risk;
    BusBeyondDisk => "bus_beyond_disk", Risk;
    MessageLimit => "message_limit", Risk;
    ClockOffset => "clock_offset", Risk;
    MonitorUnreachable => "monitor_unreachable", Risk;
    MemoryNone => "memory_none", Risk;
    MemoryUnreachable => "memory_unreachable", Risk;
    MemoryTooOld => "memory_too_old", Risk;
    MemoryEvicts => "memory_evicts", Risk;
    MemoryNearlyFull => "memory_nearly_full", Risk;
    StoreInLayer => "store_in_layer", Risk;
    StoreJournalMode => "store_journal_mode", Risk;
    StoreNearlyFull => "store_nearly_full", Risk;
    DiskNearlyFull => "disk_nearly_full", Risk;
    BusOld => "bus_old", Note;
    LogMissing => "log_missing", Note;
    AcksForgotten => "acks_forgotten", Note;
    MemoryNotOnDisk => "memory_not_on_disk", Note;
    StoreMissing => "store_missing", Note;
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// What is the case.
    pub(crate) what: String,
    /// What follows from it.
    pub(crate) consequence: String,
    /// What to do.
    pub(crate) fix: String,
}

/// Puts one together.
pub(super) fn found(
    kind: Kind,
    what: impl Into<String>,
    consequence: impl Into<String>,
    fix: impl Into<String>,
) -> Finding {
    Finding { kind, what: what.into(), consequence: consequence.into(), fix: fix.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_its_line_in_the_documentation() {
        let page = include_str!("../../../../docs/doctor.md");
        for kind in Kind::ALL {
            let start = format!("| `{}` |", kind.as_str());
            assert!(page.contains(&start), "{start} is missing in docs/doctor.md");
        }
    }
}
