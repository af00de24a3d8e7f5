//! Points at which a drill ends or stops this process, off unless they are asked for.
//!
//! Planners, workers and gateways act through their ports only, and the points sit in the ports, so that no
//! append, schedule, claim, kept result, delivery or ack can be without one.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::failure::Failure;
use crate::settings::Environment;

/// The variable that arms one point: `after_start`, `before_ack:3` for the third time, with `:stop`
/// at the end to stop the process in place of ending it.
pub(crate) const VARIABLE: &str = "SYSTOLE_KILL_POINT";
/// The variable that names a file in which the process says that it came to its point, before it ends
/// or stands still: an end without that word is no kill.
pub(crate) const MARK: &str = "SYSTOLE_KILL_MARK";
/// How long a tool has run when it is said to be running.
const RUNNING: Duration = Duration::from_millis(150);

/// Defines the closed set once, with its names.
macro_rules! points {
    ($($variant:ident => $name:literal;)*) => {
        /// Where a process can be ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum KillPoint { $($variant,)* }

        impl KillPoint {
            /// All of them.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name on the command line and in the matrix.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

points! {
    BeforeInput => "before_input";
    AfterInput => "after_input";
    Pulled => "pulled";
    BeforeTurnStarted => "before_turn_started";
    AfterTurnStarted => "after_turn_started";
    Streaming => "streaming";
    BeforeEarlyCall => "before_early_call";
    AfterEarlyCall => "after_early_call";
    BeforeTurnEnded => "before_turn_ended";
    AfterTurnEnded => "after_turn_ended";
    BeforeCall => "before_call";
    AfterCall => "after_call";
    BeforeSchedule => "before_schedule";
    AfterSchedule => "after_schedule";
    BeforeBar => "before_bar";
    AfterBar => "after_bar";
    BeforeApprovalAsked => "before_approval_asked";
    AfterApprovalAsked => "after_approval_asked";
    BeforeParked => "before_parked";
    AfterParked => "after_parked";
    BeforeRestored => "before_restored";
    AfterRestored => "after_restored";
    BeforeCheckpoint => "before_checkpoint";
    AfterCheckpoint => "after_checkpoint";
    BeforeCallClosed => "before_call_closed";
    AfterCallClosed => "after_call_closed";
    BeforeRunFinished => "before_run_finished";
    AfterRunFinished => "after_run_finished";
    BeforeClaim => "before_claim";
    AfterClaim => "after_claim";
    BeforeStart => "before_start";
    AfterStart => "after_start";
    Running => "running";
    BeforeKept => "before_kept";
    AfterKept => "after_kept";
    BeforeShared => "before_shared";
    AfterShared => "after_shared";
    BeforeHold => "before_hold";
    AfterHold => "after_hold";
    BeforeObservation => "before_observation";
    AfterObservation => "after_observation";
    BeforeAck => "before_ack";
    AfterAck => "after_ack";
}

/// What happens at the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The process ends as a crash ends it.
    Kill,
    /// It stands still until somebody resumes it.
    Stop,
}

#[derive(Debug)]
struct Armed {
    point: KillPoint,
    left: AtomicU64,
    act: Act,
    mark: Option<PathBuf>,
}

/// What a process says of itself at its point.
pub(crate) fn mark(point: KillPoint, process: u32) -> String {
    format!("{} {process}", point.as_str())
}

/// The one point that is armed, if any; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KillSwitch(Option<Arc<Armed>>);

impl KillSwitch {
    /// What the environment asks for.
    pub(crate) fn of(environment: &Environment) -> Result<Self, Failure> {
        let asked = environment.text(VARIABLE);
        let mark = environment.text(MARK).map(PathBuf::from);
        Self::read(asked.as_deref(), mark).map_err(|why| Failure::settings(vec![why]))
    }

    /// What the variable asks for.
    fn read(text: Option<&str>, mark: Option<PathBuf>) -> Result<Self, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self::default()) };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let point = KillPoint::ALL.iter().find(|point| point.as_str() == name);
        let point = *point.ok_or_else(|| format!("{VARIABLE}: there is no point `{name}`"))?;
        let (mut left, mut act) = (1, Act::Kill);
        for part in parts {
            match part.parse() {
                Ok(number) => left = number,
                Err(_) if part == "stop" => act = Act::Stop,
                Err(_) => return Err(format!("{VARIABLE}: `{part}` is no number and not `stop`")),
            }
        }
        Ok(Self(Some(Arc::new(Armed { point, left: AtomicU64::new(left), act, mark }))))
    }

    /// Whether any point is armed.
    pub(crate) fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    /// Ends or stops the process if this is the point and the time.
    pub(crate) fn reached(&self, point: KillPoint) {
        let Some(armed) = self.0.as_ref().filter(|armed| armed.point == point) else { return };
        // Far fewer than 2^64 come after the last one.
        if armed.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            armed.carry_out();
        }
    }

    /// A tool runs from now on; the process is ended a moment later, whatever it waits for.
    pub(crate) fn runs(&self) {
        let switch = self.clone();
        if self.0.as_ref().is_some_and(|armed| armed.point == KillPoint::Running) {
            std::thread::spawn(move || {
                std::thread::sleep(RUNNING);
                switch.reached(KillPoint::Running);
            });
        }
    }
}

impl Armed {
    fn carry_out(&self) {
        let signal = match self.act {
            Act::Kill => Signal::KILL,
            Act::Stop => Signal::STOP,
        };
        if let Err(error) = self.say_so() {
            tracing::error!(%error, "nobody is told that the kill point was reached");
        }
        if let Err(error) = kill_process(getpid(), signal) {
            tracing::error!(%error, "the kill point has no effect");
        }
    }

    fn say_so(&self) -> io::Result<()> {
        let Some(path) = &self.mark else { return Ok(()) };
        let mut file = std::fs::File::options().create(true).append(true).open(path)?;
        writeln!(file, "{}", mark(self.point, std::process::id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_read_with_its_time_and_its_act() {
        assert!(!KillSwitch::read(None, None).unwrap().is_armed());
        assert!(!KillSwitch::read(Some(""), None).unwrap().is_armed());
        let armed = KillSwitch::read(Some("before_ack:3:stop"), None).unwrap().0.unwrap();
        assert_eq!((armed.point, armed.act), (KillPoint::BeforeAck, Act::Stop));
        assert_eq!(armed.left.load(Ordering::Relaxed), 3);
        assert!(KillSwitch::read(Some("nowhere"), None).unwrap_err().contains("nowhere"));
        assert!(KillSwitch::read(Some("pulled:often"), None).unwrap_err().contains("often"));
    }

    #[test]
    fn other_points_pass() {
        let switch = KillSwitch::read(Some("before_ack:2"), None).unwrap();
        switch.reached(KillPoint::AfterAck);
        switch.reached(KillPoint::BeforeAck);
        assert_eq!(switch.0.unwrap().left.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn it_says_where_it_is_before_it_acts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        let switch = KillSwitch::read(Some("before_ack"), Some(path.clone())).unwrap();
        switch.0.unwrap().say_so().unwrap();
        let process = std::process::id();
        assert_eq!(std::fs::read_to_string(path).unwrap(), format!("before_ack {process}\n"));
    }
}
