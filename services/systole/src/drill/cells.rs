//! What a drill tries: one process, one point, one act.

use std::fmt;

use crate::nodes::kill::KillPoint as Point;

/// Which process is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Planner,
    Worker,
    Gateway,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Planner => "planner",
            Self::Worker => "worker",
            Self::Gateway => "gateway",
        })
    }
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
    /// Each looks, which may be repeated, and then books.
    Orders,
    /// Each books at once, which must not happen twice.
    Bookings,
    /// Each wants to book while no worker is there, and is cancelled.
    Cancels,
    /// Each wants to sign, which a person agrees to over HTTP.
    Signatures,
    /// Each looks and books, and a record that nobody can read comes in between.
    Poison,
    /// Each books at once with a tool of an MCP server, which must not happen twice.
    Servers,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Orders => "orders",
            Self::Bookings => "bookings",
            Self::Cancels => "cancels",
            Self::Signatures => "signatures",
            Self::Poison => "poison",
            Self::Servers => "mcp",
        })
    }
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) role: Role,
    pub(crate) point: Point,
    pub(crate) hit: Hit,
    pub(crate) story: Story,
}

impl Cell {
    /// The value of the variable that arms it.
    pub(crate) fn arming(self) -> String {
        let stop = if self.hit == Hit::Paused { ":stop" } else { "" };
        format!("{}{stop}", self.point.as_str())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hit = match self.hit {
            Hit::Killed => "killed",
            Hit::Paused => "paused",
        };
        let Self { role, point, story, .. } = self;
        write!(f, "{role}/{}/{hit}/{story}", point.as_str())
    }
}

const PLANNER: [Point; 18] = [
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
    Point::BeforeRunFinished,
    Point::AfterRunFinished,
    Point::BeforeCheckpoint,
    Point::AfterCheckpoint,
    Point::BeforeAck,
    Point::AfterAck,
];
/// The points of a planner that ends calls itself.
const ENDING: [Point; 4] =
    [Point::BeforeBar, Point::AfterBar, Point::BeforeCallClosed, Point::AfterCallClosed];
/// The points of a planner around a person's word: it asks for it, and carries it out.
const DECIDING: [Point; 6] = [
    Point::BeforeApprovalAsked,
    Point::AfterApprovalAsked,
    Point::BeforeCall,
    Point::AfterCall,
    Point::BeforeAck,
    Point::AfterAck,
];
/// The points of a planner that comes to a record which nobody can read.
const PARKING: [Point; 2] = [Point::BeforeParked, Point::AfterParked];
/// The points of a gateway.
const SAYING: [Point; 2] = [Point::BeforeInput, Point::AfterInput];
/// The points of a worker whose calls may be repeated; its first calls are such.
const REPEATABLE: [Point; 3] = [Point::Pulled, Point::BeforeClaim, Point::AfterClaim];
/// The points of a worker whose calls may not.
const IRREVERSIBLE: [Point; 4] =
    [Point::Pulled, Point::BeforeStart, Point::AfterStart, Point::Running];
/// The points of a worker that has a result.
const RESULTS: [Point; 6] = [
    Point::BeforeKept,
    Point::AfterKept,
    Point::BeforeObservation,
    Point::AfterObservation,
    Point::BeforeAck,
    Point::AfterAck,
];
/// The points of a worker whose calls an MCP server of its own carries out.
const SERVING: [Point; 5] = [
    Point::BeforeStart,
    Point::AfterStart,
    Point::Running,
    Point::BeforeObservation,
    Point::AfterObservation,
];
/// The points of a worker whose call a person agreed to.
const SIGNING: [Point; 2] = [Point::BeforeStart, Point::AfterStart];
/// Where standing still is worse than being gone.
const PLANNER_PAUSES: [Point; 3] =
    [Point::AfterTurnStarted, Point::BeforeTurnEnded, Point::BeforeAck];
const WORKER_PAUSES: [Point; 3] = [Point::BeforeStart, Point::AfterStart, Point::BeforeObservation];

/// All cells, or those whose name holds `only`.
pub(crate) fn all(only: Option<&str>) -> Vec<Cell> {
    let killed = |role, story, points: &[Point]| row(role, story, Hit::Killed, points);
    let paused = |role, story, points: &[Point]| row(role, story, Hit::Paused, points);
    let all = [
        killed(Role::Planner, Story::Orders, &PLANNER),
        killed(Role::Planner, Story::Cancels, &ENDING),
        killed(Role::Planner, Story::Signatures, &DECIDING),
        killed(Role::Planner, Story::Poison, &PARKING),
        killed(Role::Worker, Story::Orders, &REPEATABLE),
        killed(Role::Worker, Story::Orders, &RESULTS),
        killed(Role::Worker, Story::Bookings, &IRREVERSIBLE),
        killed(Role::Worker, Story::Bookings, &RESULTS),
        killed(Role::Worker, Story::Signatures, &SIGNING),
        killed(Role::Worker, Story::Servers, &SERVING),
        killed(Role::Gateway, Story::Orders, &SAYING),
        killed(Role::Gateway, Story::Signatures, &SAYING),
        paused(Role::Planner, Story::Orders, &PLANNER_PAUSES),
        paused(Role::Worker, Story::Bookings, &WORKER_PAUSES),
    ];
    let all = all.into_iter().flatten();
    all.filter(|cell| only.is_none_or(|only| cell.to_string().contains(only))).collect()
}

fn row(role: Role, story: Story, hit: Hit, points: &[Point]) -> Vec<Cell> {
    points.iter().map(|point| Cell { role, point: *point, hit, story }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fault;
    use super::*;

    #[test]
    fn every_kill_point_is_in_the_matrix() {
        let cells = all(None).into_iter().map(|cell| cell.point);
        let faults = fault::all(None).into_iter().filter_map(fault::Fault::point);
        let points: Vec<Point> = cells.chain(faults).collect();
        for point in Point::ALL {
            assert!(points.contains(point), "{point:?}");
        }
    }

    #[test]
    fn cells_are_picked_by_a_part_of_their_name() {
        let names: Vec<String> = all(Some("before_bar")).iter().map(Cell::to_string).collect();
        assert_eq!(names, ["planner/before_bar/killed/cancels"]);
    }
}
