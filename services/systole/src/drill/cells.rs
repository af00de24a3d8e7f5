//! What a drill tries: one process, one point, one act.

use std::fmt;

use crate::nodes::kill::KillPoint as Point;

/// Which process is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Planner,
    Worker,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// kill -9.
    Killed,
    /// It stands still, others take over, and it goes on.
    Paused,
}

/// What the threads do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// Each looks and books.
    Orders,
    /// Each wants to book while no worker is there, and is cancelled.
    Cancels,
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) role: Role,
    pub(crate) point: Point,
    pub(crate) hit: Hit,
}

impl Cell {
    pub(crate) fn story(self) -> Story {
        match self.point {
            Point::BeforeBar
            | Point::AfterBar
            | Point::BeforeCallClosed
            | Point::AfterCallClosed => Story::Cancels,
            Point::Pulled
            | Point::BeforeTurnStarted
            | Point::AfterTurnStarted
            | Point::Streaming
            | Point::BeforeEarlyCall
            | Point::AfterEarlyCall
            | Point::BeforeTurnEnded
            | Point::AfterTurnEnded
            | Point::BeforeCall
            | Point::AfterCall
            | Point::BeforeSchedule
            | Point::AfterSchedule
            | Point::BeforeRunFinished
            | Point::AfterRunFinished
            | Point::BeforeClaim
            | Point::AfterClaim
            | Point::BeforeStart
            | Point::AfterStart
            | Point::Running
            | Point::BeforeKept
            | Point::AfterKept
            | Point::BeforeObservation
            | Point::AfterObservation
            | Point::BeforeAck
            | Point::AfterAck => Story::Orders,
        }
    }

    /// The value of the variable that arms it.
    pub(crate) fn arming(self) -> String {
        let stop = if self.hit == Hit::Paused { ":stop" } else { "" };
        format!("{}{stop}", self.point.as_str())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Planner => "planner",
            Role::Worker => "worker",
        };
        let hit = match self.hit {
            Hit::Killed => "killed",
            Hit::Paused => "paused",
        };
        write!(f, "{role}/{}/{hit}", self.point.as_str())
    }
}

/// The points of a planner and of a worker; some are of both.
const PLANNER: [Point; 20] = [
    Point::Pulled,
    Point::BeforeTurnStarted,
    Point::AfterTurnStarted,
    Point::Streaming,
    Point::BeforeEarlyCall,
    Point::AfterEarlyCall,
    Point::BeforeTurnEnded,
    Point::AfterTurnEnded,
    Point::BeforeCall,
    Point::AfterCall,
    Point::BeforeSchedule,
    Point::AfterSchedule,
    Point::BeforeBar,
    Point::AfterBar,
    Point::BeforeCallClosed,
    Point::AfterCallClosed,
    Point::BeforeRunFinished,
    Point::AfterRunFinished,
    Point::BeforeAck,
    Point::AfterAck,
];
const WORKER: [Point; 12] = [
    Point::Pulled,
    Point::BeforeClaim,
    Point::AfterClaim,
    Point::BeforeStart,
    Point::AfterStart,
    Point::Running,
    Point::BeforeKept,
    Point::AfterKept,
    Point::BeforeObservation,
    Point::AfterObservation,
    Point::BeforeAck,
    Point::AfterAck,
];
/// Where standing still is worse than being gone.
const PAUSES: [(Role, Point); 6] = [
    (Role::Planner, Point::AfterTurnStarted),
    (Role::Planner, Point::BeforeTurnEnded),
    (Role::Planner, Point::BeforeAck),
    (Role::Worker, Point::BeforeStart),
    (Role::Worker, Point::AfterStart),
    (Role::Worker, Point::BeforeObservation),
];

/// All cells, or those whose name holds `only`.
pub(crate) fn all(only: Option<&str>) -> Vec<Cell> {
    let killed = |role| move |point: &Point| Cell { role, point: *point, hit: Hit::Killed };
    let planner = PLANNER.iter().map(killed(Role::Planner));
    let worker = WORKER.iter().map(killed(Role::Worker));
    let paused =
        PAUSES.iter().map(|(role, point)| Cell { role: *role, point: *point, hit: Hit::Paused });
    let all = planner.chain(worker).chain(paused);
    all.filter(|cell| only.is_none_or(|only| cell.to_string().contains(only))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kill_point_is_in_the_matrix() {
        let all = all(None);
        for point in Point::ALL {
            assert!(all.iter().any(|cell| cell.point == *point), "{point:?}");
        }
    }

    #[test]
    fn cells_are_picked_by_a_part_of_their_name() {
        let names: Vec<String> = all(Some("before_bar")).iter().map(Cell::to_string).collect();
        assert_eq!(names, ["planner/before_bar/killed"]);
    }
}
