use expect_test::{Expect, expect};
use proptest::prelude::*;
use proto::error_code::ErrorCode;
use proto::hash::fingerprint;

use super::*;
use crate::fixtures::{call, contract, started};

const ME: &str = "w1";

/// The world of one call, as the looks find it.
#[derive(Clone, Debug)]
struct World {
    call: ToolCall,
    tool: ToolContract,
    now: Timestamp,
    again: bool,
    running_here: bool,
    problems: Option<String>,
    history: History,
    done: Kept,
    start: StartState,
    cancelled: bool,
    lease: Lease,
    gate: Gate,
    probed: Probed,
    wants: Wants,
    deliveries: u64,
    share: Share,
    room: Room,
    resource: Resource,
}

impl World {
    fn of(effect: Effect) -> Self {
        Self {
            call: call(effect),
            tool: contract(effect),
            now: Timestamp(500),
            again: false,
            running_here: false,
            problems: None,
            history: History::Open,
            done: Kept::Nothing,
            start: StartState::None,
            cancelled: false,
            lease: Lease::Ours,
            gate: Gate::Open,
            probed: Probed::NotHappened,
            wants: Wants::default(),
            deliveries: 1,
            share: Share::Lead,
            room: Room::Free,
            resource: Resource::Ours,
        }
    }

    fn started(self, attempt: u32, until: i64) -> Self {
        let started = started(attempt, Timestamp(100), Timestamp(until));
        Self {
            start: StartState::Started { sequence: Sequence(9), started, unused: false },
            ..self
        }
    }

    /// Decides until an act comes up; the looks on the way, then the act.
    fn walk(&self) -> (Vec<Look>, Step) {
        let me = InstanceId::new(ME).unwrap();
        let mut known = Known::new(&self.call, &self.tool, &me, self.now);
        known.again = self.again;
        known.running_here = self.running_here;
        known.argument_problems.clone_from(&self.problems);
        known.wants = self.wants;
        known.deliveries = self.deliveries;
        let mut looks = Vec::new();
        loop {
            let step = decide(&known);
            let Step::Look(look) = step else { return (looks, step) };
            assert!(!looks.contains(&look), "{look:?} is asked for twice");
            looks.push(look);
            match look {
                Look::History => known.history = Some(self.history),
                Look::Done => known.done = Some(self.done.clone()),
                Look::Start => known.start = Some(self.start.clone()),
                Look::Cancelled => known.cancelled = Some(self.cancelled),
                Look::Lease => known.lease = Some(self.lease),
                Look::Gate => known.gate = Some(self.gate.clone()),
                Look::Share => known.share = Some(self.share.clone()),
                Look::Room => known.room = Some(self.room.clone()),
                Look::Resource => known.resource = Some(self.resource.clone()),
                Look::Probe => known.probed = Some(self.probed.clone()),
            }
        }
    }
}

fn act(step: &Step) -> String {
    let told = |answer: &Answer| {
        let code = answer.code.map_or("ok", ErrorCode::as_str);
        let receipt = answer.receipt.map_or_else(String::new, |receipt| format!(" {receipt:?}"));
        format!("{code}{receipt}")
    };
    match step {
        Step::Answer(answer) => format!("answer {}", told(answer)),
        Step::Bar { expected, answer } => format!("bar after {expected}, answer {}", told(answer)),
        Step::Republish(observation) => format!("republish `{}`", observation.content),
        Step::Wait(span) => format!("wait {} ms", span.as_millis()),
        Step::Start { attempt, expected } => format!("start {attempt} after {expected}"),
        Step::Drop => "drop".into(),
        Step::Run => "run".into(),
        Step::Look(look) => format!("look {look:?}"),
    }
}

fn check(world: &World, expected: &Expect) {
    let (looks, step) = world.walk();
    let looks: Vec<String> = looks.iter().map(|look| format!("{look:?}")).collect();
    expected.assert_eq(&format!("{} -> {}", looks.join(" "), act(&step)));
}

fn result() -> Kept {
    let id = call(Effect::ReadOnly).tool_call_id;
    let made = Observation::synthesised(id, ErrorCode::Internal, "result");
    Kept::Result(Box::new(Observation { code: None, ..made }))
}

#[test]
fn a_reading_call_is_leased_and_runs() {
    check(&World::of(Effect::ReadOnly), &expect!["Done Cancelled Lease Gate -> run"]);
}

#[test]
fn an_irreversible_call_starts_by_a_record() {
    check(
        &World::of(Effect::Irreversible),
        &expect!["Done Start Cancelled Gate -> start 1 after 0"],
    );
}

#[test]
fn a_second_delivery_in_the_same_process_waits() {
    let world = World { running_here: true, ..World::of(Effect::Irreversible) };
    check(&world, &expect![" -> wait 5000 ms"]);
}

#[test]
fn a_kept_result_is_published_again() {
    let world = World { done: result(), ..World::of(Effect::Irreversible) };
    check(&world, &expect!["Done -> republish `result`"]);
}

#[test]
fn a_late_call_that_nobody_answered_is_refused() {
    let world = World { now: Timestamp(1_001), ..World::of(Effect::ReadOnly) };
    check(&world, &expect!["History Done -> answer unavailable NeverStarted"]);
}

#[test]
fn a_late_irreversible_call_is_barred_before_it_is_refused() {
    let world = World { now: Timestamp(1_001), ..World::of(Effect::Irreversible) };
    check(&world, &expect!["History Done Start -> bar after 0, answer unavailable NeverStarted"]);
}

#[test]
fn a_replayed_call_that_has_its_observation_is_dropped() {
    let late = Timestamp(1_001);
    let world = World { now: late, history: History::Observed, ..World::of(Effect::Irreversible) };
    check(&world, &expect!["History -> drop"]);
}

#[test]
fn a_late_call_that_its_planner_closed_is_dropped() {
    let late = Timestamp(1_001);
    for effect in [Effect::ReadOnly, Effect::Irreversible] {
        let world = World { now: late, history: History::Closed, ..World::of(effect) };
        assert_eq!(world.walk().1, Step::Drop);
    }
}

#[test]
fn a_kept_result_is_news_for_a_planner_that_gave_up() {
    let world = World {
        now: Timestamp(1_001),
        history: History::Closed,
        done: result(),
        ..World::of(Effect::Irreversible)
    };
    check(&world, &expect!["History Done -> republish `result`"]);
}

#[test]
fn another_version_of_the_tool_is_refused() {
    let mut world = World::of(Effect::ReadOnly);
    world.tool.fingerprint = fingerprint("v2");
    check(&world, &expect!["Done -> answer version_mismatch NeverStarted"]);
}

#[test]
fn another_version_that_is_irreversible_here_is_barred_first() {
    let mut world = World::of(Effect::ReadOnly);
    world.tool = ToolContract { fingerprint: fingerprint("v2"), ..contract(Effect::Irreversible) };
    check(&world, &expect!["Done Start -> bar after 0, answer version_mismatch NeverStarted"]);
}

#[test]
fn invalid_arguments_are_refused() {
    let problems = Some("`a` is required and missing. Fix: send it".to_owned());
    let world = World { problems, ..World::of(Effect::Irreversible) };
    check(&world, &expect!["Done Start -> bar after 0, answer invalid_arguments NeverStarted"]);
}

#[test]
fn a_cancelled_call_never_starts() {
    let world = World { cancelled: true, ..World::of(Effect::Idempotent) };
    check(&world, &expect!["Done Cancelled -> answer cancelled NeverStarted"]);
}

#[test]
fn a_cancelled_irreversible_call_is_barred() {
    let world = World { cancelled: true, ..World::of(Effect::Irreversible) };
    check(&world, &expect!["Done Start Cancelled -> bar after 0, answer cancelled NeverStarted"]);
}

#[test]
fn a_repeatable_call_that_was_delivered_before_is_not_said_to_have_never_started() {
    let told = |effect| {
        let world = World { now: Timestamp(1_001), again: true, ..World::of(effect) };
        act(&world.walk().1)
    };
    let told = [Effect::ReadOnly, Effect::Idempotent, Effect::Irreversible].map(told);
    let expected = [
        "answer unavailable StoppedBeforeEffect",
        "answer unavailable Unknown",
        "bar after 0, answer unavailable NeverStarted",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_call_that_another_worker_leased_waits_for_the_lease() {
    let world =
        World { lease: Lease::Held(Duration::from_millis(2_500)), ..World::of(Effect::ReadOnly) };
    check(&world, &expect!["Done Cancelled Lease -> wait 2500 ms"]);
}

#[test]
fn a_reading_call_runs_without_working_memory() {
    let world = World { lease: Lease::Unknown, ..World::of(Effect::ReadOnly) };
    check(&world, &expect!["Done Cancelled Lease Gate -> run"]);
}

#[test]
fn an_open_breaker_answers_at_once() {
    let world = World { gate: Gate::Shut, ..World::of(Effect::ReadOnly) };
    check(&world, &expect!["Done Cancelled Lease Gate -> answer unavailable NeverStarted"]);
}

#[test]
fn a_frozen_call_is_barred_and_answered() {
    let gate = Gate::Frozen("Ask ops.".to_owned());
    let world = World { gate: gate.clone(), ..World::of(Effect::Irreversible) };
    check(&world, &expect!["Done Start Cancelled Gate -> bar after 0, answer frozen NeverStarted"]);
    let world = World { gate, ..World::of(Effect::ReadOnly) };
    check(&world, &expect!["Done Cancelled Lease Gate -> answer frozen NeverStarted"]);
}

#[test]
fn a_barred_call_is_dropped() {
    let world = World { start: StartState::Barred, ..World::of(Effect::Irreversible) };
    check(&world, &expect!["Done Start -> drop"]);
}

#[test]
fn a_start_of_another_worker_is_waited_for() {
    let world = World::of(Effect::Irreversible).started(1, 700);
    check(&world, &expect!["Done Start -> wait 200 ms"]);
}

#[test]
fn a_start_without_a_result_is_in_doubt_once_nobody_can_still_run_it() {
    let world = World::of(Effect::Irreversible).started(1, 500);
    check(&world, &expect!["Done Start -> answer in_doubt Unknown"]);
}

#[test]
fn a_start_of_this_process_that_nothing_works_on_is_over() {
    let mut world = World::of(Effect::Irreversible).started(1, 700);
    if let StartState::Started { started, .. } = &mut world.start {
        started.worker = InstanceId::new(ME).unwrap();
    }
    check(&world, &expect!["Done Start -> answer in_doubt Unknown"]);
}

#[test]
fn a_start_that_this_process_never_used_had_no_effect() {
    let mut world = World::of(Effect::Irreversible).started(1, 700);
    if let StartState::Started { unused, .. } = &mut world.start {
        *unused = true;
    }
    check(&world, &expect!["Done Start -> answer unavailable StoppedBeforeEffect"]);
}

#[test]
fn a_doubt_waits_while_a_result_may_be_kept_somewhere() {
    let world = World { done: Kept::Unknown, ..World::of(Effect::Irreversible) };
    check(&world.started(1, 500), &expect!["Done Start -> wait 1000 ms"]);
}

#[test]
fn a_doubt_that_its_planner_told_is_not_told_again() {
    let world = World {
        now: Timestamp(5_000),
        history: History::Closed,
        ..World::of(Effect::Irreversible)
    };
    check(&world.started(1, 500), &expect!["History Done Start -> drop"]);
}

#[test]
fn a_checkable_call_whose_effect_is_found_is_answered() {
    let world = World { probed: Probed::Happened("active".into()), ..World::of(Effect::Checkable) };
    check(&world.started(1, 500), &expect!["Done Start Probe -> answer ok Completed"]);
}

#[test]
fn a_checkable_call_without_effect_is_tried_again_behind_the_first_start() {
    let world = World::of(Effect::Checkable).started(1, 500);
    check(&world, &expect!["Done Start Probe Cancelled Gate -> start 2 after 9"]);
}

#[test]
fn a_checkable_call_whose_attempts_are_used_up_is_barred() {
    let world = World::of(Effect::Checkable).started(3, 500);
    check(
        &world,
        &expect!["Done Start Probe -> bar after 9, answer tool_failed StoppedBeforeEffect"],
    );
}

#[test]
fn a_check_that_cannot_tell_leaves_a_doubt() {
    let world = World { probed: Probed::Unclear("?".into()), ..World::of(Effect::Checkable) };
    check(&world.started(1, 500), &expect!["Done Start Probe -> answer in_doubt Unknown"]);
}

#[test]
fn a_checkable_call_is_not_tried_again_when_it_is_late() {
    let world = World { now: Timestamp(1_001), ..World::of(Effect::Checkable) };
    check(
        &world.started(1, 500),
        &expect!["History Done Start Probe -> bar after 9, answer unavailable StoppedBeforeEffect"],
    );
}

fn effects() -> impl Strategy<Value = Effect> {
    prop::sample::select(vec![
        Effect::ReadOnly,
        Effect::Idempotent,
        Effect::Checkable,
        Effect::Irreversible,
    ])
}

fn starts() -> impl Strategy<Value = StartState> {
    prop_oneof![
        Just(StartState::None),
        Just(StartState::Barred),
        (1..5_u32, 0..3_000_i64, any::<bool>()).prop_map(|(attempt, until, ours)| {
            let mut started = started(attempt, Timestamp(100), Timestamp(until));
            if ours {
                started.worker = InstanceId::new(ME).unwrap();
            }
            StartState::Started { sequence: Sequence(9), started, unused: false }
        }),
    ]
}

prop_compose! {
    fn worlds()(
        effect in effects(),
        now in 0..3_000_i64,
        running_here in prop::bool::weighted(0.1),
        history in prop::sample::select(vec![History::Open, History::Closed, History::Observed]),
        done in prop::bool::weighted(0.2),
        start in starts(),
        cancelled in prop::bool::weighted(0.2),
        lease in prop::sample::select(vec![Lease::Ours, Lease::Unknown, Lease::Held(Duration::MAX)]),
        gate in prop::sample::select(vec![Gate::Open, Gate::Shut, Gate::Frozen(String::new())]),
        probed in prop::sample::select(vec![
            Probed::Happened(String::new()), Probed::NotHappened, Probed::Unclear(String::new()),
        ]),
    ) -> World {
        World {
            now: Timestamp(now),
            running_here,
            history,
            done: if done { result() } else { Kept::Nothing },
            start,
            cancelled,
            lease,
            gate,
            probed,
            ..World::of(effect)
        }
    }
}

proptest! {
    #[test]
    fn an_irreversible_call_starts_only_on_an_empty_subject(world in worlds()) {
        if let (_, Step::Start { attempt, expected }) = world.walk()
            && world.call.terms.effect == Effect::Irreversible
        {
            prop_assert_eq!(&world.start, &StartState::None);
            prop_assert_eq!((attempt, expected), (1, Sequence::NONE));
        }
    }

    #[test]
    fn a_call_whose_start_is_a_record_never_runs_without_one(world in worlds()) {
        if matches!(world.walk().1, Step::Run) {
            prop_assert!(!world.call.terms.effect.needs_start());
        }
    }

    #[test]
    fn a_barred_call_never_begins(world in worlds()) {
        let barred = World { start: StartState::Barred, ..world };
        if barred.call.terms.effect.needs_start() {
            let begins = matches!(barred.walk().1, Step::Start { .. } | Step::Answer(_));
            prop_assert!(!begins);
        }
    }

    #[test]
    fn nothing_begins_after_start_by(world in worlds()) {
        if matches!(world.walk().1, Step::Start { .. } | Step::Run) {
            prop_assert!(world.now <= world.call.start_by);
        }
    }

    #[test]
    fn nothing_begins_beside_a_start_that_may_still_run(world in worlds()) {
        if let (StartState::Started { started, .. }, (_, Step::Start { .. })) =
            (&world.start, world.walk())
        {
            let is_over = started.until <= world.now || started.worker.as_str() == ME;
            prop_assert!(is_over);
        }
    }

    #[test]
    fn a_call_that_others_may_start_is_barred_before_it_is_refused(world in worlds()) {
        if let (_, Step::Answer(answer)) = world.walk()
            && world.call.terms.effect.needs_start()
        {
            let told = answer.receipt != Some(proto::observation::Receipt::NeverStarted);
            prop_assert!(told);
        }
    }

    #[test]
    fn attempts_are_bounded(world in worlds()) {
        if let (_, Step::Start { attempt, .. }) = world.walk() {
            prop_assert!(attempt <= world.call.terms.retry.max_attempts);
        }
    }

    #[test]
    fn a_wait_is_never_endless(world in worlds()) {
        if let (_, Step::Wait(span)) = world.walk() {
            prop_assert!(span >= LEAST_WAIT && span <= LONGEST_WAIT);
        }
    }
}

fn sharing(effect: Effect) -> World {
    let wants = Wants { share: true, room: true, resource: true };
    World { wants, ..World::of(effect) }
}

fn busy(rests: Option<u64>) -> Resource {
    let rests = rests.map(Duration::from_millis);
    Resource::Busy(Busy { rests, words: "`x` is held.".into() })
}

#[test]
fn what_a_call_shares_is_looked_at_last() {
    check(
        &sharing(Effect::ReadOnly),
        &expect!["Done Cancelled Lease Gate Share Room Resource -> run"],
    );
    check(
        &sharing(Effect::Irreversible),
        &expect!["Done Start Cancelled Gate Share Room Resource -> start 1 after 0"],
    );
}

#[test]
fn a_shared_read_is_waited_for_longer_each_time_and_made_alone_in_the_end() {
    let held = |deliveries, now| World {
        share: Share::Held(Duration::from_secs(9)),
        deliveries,
        now: Timestamp(now),
        ..sharing(Effect::ReadOnly)
    };
    check(&held(1, 0), &expect!["Done Cancelled Lease Gate Share -> wait 100 ms"]);
    check(&held(4, 0), &expect!["Done Cancelled Lease Gate Share -> wait 800 ms"]);
    check(&held(9, 0), &expect!["Done Cancelled Lease Gate Share Room Resource -> run"]);
    check(&held(1, 950), &expect!["Done Cancelled Lease Gate Share Room Resource -> run"]);
}

#[test]
fn a_call_without_room_waits_and_says_in_the_end_what_is_used_up() {
    let full = |now| World {
        room: Room::Full("All taken.".into()),
        now: Timestamp(now),
        ..sharing(Effect::Idempotent)
    };
    check(&full(0), &expect!["Done Cancelled Lease Gate Share Room -> wait 100 ms"]);
    check(
        &full(950),
        &expect!["Done Cancelled Lease Gate Share Room -> answer exhausted NeverStarted"],
    );
}

#[test]
fn a_resource_is_waited_for_while_there_is_time() {
    let world = |rests, now| World {
        resource: busy(rests),
        now: Timestamp(now),
        ..sharing(Effect::Irreversible)
    };
    check(
        &world(None, 0),
        &expect!["Done Start Cancelled Gate Share Room Resource -> wait 100 ms"],
    );
    check(
        &world(None, 950),
        &expect![
            "Done Start Cancelled Gate Share Room Resource -> bar after 0, answer conflict NeverStarted"
        ],
    );
    check(
        &world(Some(600), 0),
        &expect!["Done Start Cancelled Gate Share Room Resource -> wait 600 ms"],
    );
    check(
        &world(Some(1_500), 0),
        &expect![
            "Done Start Cancelled Gate Share Room Resource -> bar after 0, answer conflict NeverStarted"
        ],
    );
}

#[test]
fn a_call_that_nobody_agreed_to_is_barred() {
    let mut world = World::of(Effect::Irreversible);
    world.tool.approval = proto::tool::Approval::Always;
    check(&world, &expect!["Done Start -> bar after 0, answer not_approved NeverStarted"]);
}
