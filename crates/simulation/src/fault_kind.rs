//! Everything that can go wrong, by name.

/// Defines the closed set once: variant, name in reports, what happens.
macro_rules! kinds {
    ($($variant:ident => $name:literal, $line:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $(#[doc = $line] $variant,)*
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

kinds! {
    CrashBefore => "crash_before", "A process dies before an operation.";
    CrashAfter => "crash_after", "A process dies after an operation, before it hears the answer.";
    Killed => "killed", "A process dies at some moment.";
    Drained => "drained", "A process is stopped in an orderly way.";
    Paused => "paused", "A process stands still for longer than an ack wait.";
    Stalled => "stalled", "A process stands still before an operation, for longer than an ack wait.";
    CutOff => "cut_off", "A process reaches nothing for a while.";
    Unavailable => "unavailable", "An operation answers that nothing answers.";
    Slow => "slow", "An operation happens later, or its answer comes later.";
    LostAnswerLanded => "lost_answer_landed", "An append lands and its answer is lost.";
    LostAnswer => "lost_answer", "An append is lost.";
    LandsLate => "lands_late", "An append lands after its caller gave up waiting.";
    RefusedWithoutNumber => "refused_without_number", "A refusal names no sequence.";
    StaleRead => "stale_read", "A read misses the newest records.";
    LiveLost => "live_lost", "A hint, a live text or a question is lost.";
    AckLost => "ack_lost", "An ack, a nak or a progress is lost.";
    DeliveredTwice => "delivered_twice", "A record is delivered to two at once.";
    Reordered => "reordered", "The newest deliveries come first.";
    AcksForgotten => "acks_forgotten", "The bus forgets the acks of the last seconds.";
    Replayed => "replayed", "A queue delivers its whole history again, with count 1.";
    DuplicateInput => "duplicate_input", "A client sends an input again, beyond the window.";
    TickEarly => "tick_early", "A schedule fires too early.";
    TickTwice => "tick_twice", "A schedule fires twice.";
    TickNever => "tick_never", "A schedule never fires.";
    MemoryForgot => "memory_forgot", "Working memory forgets its last writes.";
    MemoryLost => "memory_lost", "Working memory is lost whole.";
    TailLost => "tail_lost", "The journal loses its newest records; their numbers are used again.";
    ClockOff => "clock_off", "A process's clock is minutes off.";
    ModelFails => "model_fails", "The model answers with an error that may pass.";
    ModelBreaks => "model_breaks", "The model's stream breaks in the middle.";
    Poison => "poison", "A record that nobody can decode.";
    TooNew => "too_new", "A record that only newer processes may act on.";
}
