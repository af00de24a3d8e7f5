//! Planners and workers as processes of their own over a real NATS server.

use serde_json::json;

use crate::deployment::{Deployment, Nats, Node, nats_program, redis_program};
use crate::gateway::{Events, post};
use crate::home::{Ended, Home, until};

/// The outcome of a thread's run, judged by its events.
fn outcome(ended: &Ended) -> String {
    let last = ended.last();
    assert_eq!(last["type"], "run_finished", "{ended:?}");
    assert_eq!(last["outcome"], "answered", "{last}");
    last["answer"].as_str().unwrap().to_owned()
}

#[test]
fn twenty_threads_are_answered_though_a_planner_and_a_worker_are_killed() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let world = Deployment::with_redis(program, &redis);
    let (planner, worker) = (world.planner("planner-a"), world.worker("worker-a"));
    let others = (world.planner("planner-b"), world.worker("worker-b"));
    for node in [&planner, &worker, &others.0, &others.1] {
        node.until_ready();
    }
    let threads: Vec<String> = (0..20).map(|n| world.order(&format!("n{n}"))).collect();
    until("some orders are booked", || world.booked().len() >= 3);
    planner.kill();
    worker.kill();
    let mut doubts = Vec::new();
    for (n, thread) in threads.iter().enumerate() {
        let ended = world.tail(thread);
        outcome(&ended);
        let booking = ended.observation_of("book");
        if booking["code"] == "in_doubt" {
            doubts.push(format!("n{n}"));
        }
    }
    let booked = world.booked();
    let mut once = booked.clone();
    once.dedup();
    assert_eq!(once, booked, "nothing is booked twice");
    for n in 0..20 {
        let name = format!("n{n}");
        assert!(booked.contains(&name) || doubts.contains(&name), "{name}: {booked:?} {doubts:?}");
    }
    assert!(doubts.len() < 20, "most orders are certain: {doubts:?}");
}

#[test]
fn a_rolling_restart_loses_nothing_and_doubts_nothing() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    let mut planner = world.planner("planner-1");
    let mut worker = world.worker("worker-1");
    planner.until_ready();
    worker.until_ready();
    let mut threads = Vec::new();
    for round in 0..3 {
        threads.extend((0..4).map(|n| world.order(&format!("r{round}n{n}"))));
        let next = world.planner(&format!("planner-{}", round + 2));
        next.until_ready();
        assert_eq!(std::mem::replace(&mut planner, next).stop(), Some(0));
        let next = world.worker(&format!("worker-{}", round + 2));
        next.until_ready();
        assert_eq!(std::mem::replace(&mut worker, next).stop(), Some(0));
    }
    for thread in &threads {
        assert!(outcome(&world.tail(thread)).contains("booked"), "{thread}");
    }
    let expected: Vec<String> =
        (0..3).flat_map(|round| (0..4).map(move |n| format!("r{round}n{n}"))).collect();
    assert_eq!(world.booked(), expected);
}

#[test]
fn a_model_is_not_asked_without_its_tools_because_a_worker_comes_late() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    let planner = world.planner("planner");
    planner.until_ready();
    let early = world.order("early");
    until("the planner has taken it", || {
        planner.metric("systole_planner_turns_in_flight", &[]) == Some(1.0)
    });
    let worker = world.worker("worker-1");
    assert!(outcome(&world.tail(&early)).contains("booked"));
    assert_eq!(worker.stop(), Some(0));
    let between = world.order("between");
    until("the planner has dispatched a call", || {
        planner.metric("systole_planner_context_tokens_count", &[]) >= Some(4.0)
    });
    let _worker = world.worker("worker-2");
    assert!(outcome(&world.tail(&between)).contains("booked"));
}

#[test]
fn a_bus_that_goes_away_pauses_threads_and_they_go_on() {
    let Some(program) = nats_program() else { return };
    let mut world = Deployment::start(program);
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    planner.until_ready();
    worker.until_ready();
    let threads: Vec<String> = (0..5).map(|n| world.order(&format!("n{n}"))).collect();
    world.nats.kill();
    until("the planner says that it cannot work", || {
        planner.get("/readyz").is_some_and(|(status, body)| status == 503 && body.contains("NATS"))
    });
    assert_eq!(planner.get("/livez").map(|answer| answer.0), Some(200));
    world.nats.run();
    planner.until_ready();
    for thread in &threads {
        outcome(&world.tail(thread));
    }
    let booked = world.booked();
    let mut once = booked.clone();
    once.dedup();
    assert_eq!(once, booked, "nothing is booked twice");
}

#[test]
fn what_operators_ask_for_is_counted() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    planner.until_ready();
    worker.until_ready();
    outcome(&world.tail(&world.order("one")));
    until("the journal was judged", || {
        planner.metric("systole_planner_judged_journals_total", &[]) == Some(1.0)
    });
    let book = "tool=\"book\"";
    let expected: &[(&Node, &str, &[&str], Option<f64>)] = &[
        (&planner, "planner_runs_total", &["outcome=\"answered\""], Some(1.0)),
        (&planner, "planner_turns_per_run_sum", &[], Some(3.0)),
        (&planner, "planner_context_tokens_count", &[], Some(3.0)),
        (&planner, "planner_phases_total", &["phase=\"reasoning\""], Some(3.0)),
        (&planner, "planner_phases_total", &["phase=\"terminating\""], Some(1.0)),
        (&planner, "planner_deliveries_total", &["queue=\"in\""], Some(1.0)),
        (&planner, "planner_queue_wait_seconds_count", &["queue=\"in\""], Some(1.0)),
        (&planner, "planner_turns_in_flight", &[], Some(0.0)),
        (&planner, "planner_turn_slots", &[], Some(2048.0)),
        (&planner, "planner_conflicts_total", &[], Some(0.0)),
        (&planner, "planner_takeovers_total", &[], Some(0.0)),
        (&planner, "planner_doubts_total", &[], Some(0.0)),
        (&planner, "planner_late_results_total", &[], Some(0.0)),
        (&planner, "planner_invariant_violations_total", &[], None),
        (&planner, "planner_abnormal_ends_total", &[], None),
        (&worker, "worker_observations_total", &[book, "code=\"ok\""], Some(1.0)),
        (&worker, "worker_tool_call_seconds_count", &[book], Some(1.0)),
        (&worker, "worker_deliveries_total", &[book], Some(1.0)),
        (&worker, "worker_queue_wait_seconds_count", &[book], Some(1.0)),
        (&worker, "worker_slots", &[], Some(16.0)),
        (&worker, "worker_slots_in_use", &[], Some(0.0)),
        (&worker, "worker_doubts_total", &[book], None),
    ];
    for (node, name, labels, value) in expected {
        assert_eq!(node.metric(&format!("systole_{name}"), labels), *value, "{name} {labels:?}");
    }
    let took = worker.metric("systole_worker_tool_call_seconds_sum", &[book]);
    assert!(took.is_some_and(|seconds| (0.1..5.0).contains(&seconds)), "{took:?}");
}

/// `freeze` or `thaw` in a deployment; it needs no working memory.
fn operator(world: &Deployment, words: &[&str]) -> Ended {
    let nats = world.nats.url();
    let more = ["--nats", &nats, "--redis", "redis://127.0.0.1:1"];
    world.home.run([words, &more].concat())
}

fn is_frozen(world: &Deployment, order: &str, tool: &str, words: &str) {
    let ended = world.tail(&world.order(order));
    let observation = ended.observation_of(tool);
    assert_eq!(observation["code"], "frozen", "{observation}");
    assert!(observation["content"].as_str().unwrap().contains(words), "{observation}");
    assert_eq!(world.booked(), Vec::<String>::new());
}

/// What a worker offers is known; a name that none offers is frozen with a warning.
fn freezes_by_name(world: &Deployment) {
    let known = operator(world, &["freeze", "--tool", "look"]);
    assert_eq!((known.code, known.err.as_str()), (Some(0), ""), "{known:?}");
    let slip = operator(world, &["freeze", "--tool", "boook"]);
    assert_eq!(slip.code, Some(0), "{slip:?}");
    assert!(slip.err.contains("no tool boook") && slip.err.contains("mean book?"), "{}", slip.err);
}

#[test]
fn a_freeze_reaches_every_worker_at_once_and_outlives_restarts() {
    let Some(program) = nats_program() else { return };
    let mut world = Deployment::start(program);
    let planner = world.planner("planner");
    let workers = [world.worker("worker-a"), world.worker("worker-b")];
    for node in [&planner, &workers[0], &workers[1]] {
        node.until_ready();
    }
    assert_eq!(world.home.run(["freeze", "--all"]).code, Some(0), "the store's own switch");
    let frozen = operator(&world, &["freeze", "--all", "--reason", "incident 7"]);
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    assert!(frozen.out.starts_with("frozen every irreversible tool by "), "{}", frozen.out);
    assert!(frozen.out.ends_with("Z: incident 7\n"), "{}", frozen.out);
    for n in 0..6 {
        is_frozen(&world, &format!("n{n}"), "book", "incident 7");
    }
    for worker in workers {
        assert_eq!(worker.stop(), Some(0));
    }
    world.nats.kill();
    world.nats.run();
    let worker = world.worker("worker-c");
    worker.until_ready();
    planner.until_ready();
    is_frozen(&world, "later", "book", "every irreversible tool");
    freezes_by_name(&world);
    is_frozen(&world, "blind", "look", "the tool look");
    let thawed = operator(&world, &["thaw", "--all", "--json"]);
    let told: Vec<_> = thawed.events().iter().map(|line| line["thawed"].clone()).collect();
    assert_eq!((thawed.code, told), (Some(0), vec!["all".into(), "tool".into(), "tool".into()]));
    assert!(outcome(&world.tail(&world.order("free"))).contains("booked"));
    assert_eq!(world.booked(), ["free"]);
    let mut listing = world.home.command(["freeze"]);
    listing.env("SYSTOLE_NATS", world.nats.url());
    let listed = String::from_utf8(listing.output().unwrap().stdout).unwrap();
    assert_eq!(listed, "nothing is frozen\n", "the variable names the deployment");
}

fn refused(home: &Home, nats: &str, more: &[&str]) -> Ended {
    let words = ["worker", "--tools", "tools.yaml", "--listen", "off", "--nats", nats];
    home.write("tools.yaml", TOOL);
    home.run([&words[..], more].concat())
}

const TOOL: &str = "\
tools:
  - name: look
    description: Looks whether something is there at this moment.
    parameters: {}
    effect: read_only
    run: { command: [/bin/true] }
";

#[test]
fn settings_are_refused_with_all_their_problems_at_once() {
    let home = Home::new();
    home.write("s.yaml", "natz: nats://a:1\nslots: many\n");
    let more = ["--config", "s.yaml", "--nats-token", "t", "--nats-user", "u"];
    let ended = refused(&home, "http://nowhere", &more);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in
        ["s.yaml:1:1: natz", "s.yaml:2: slots", "--nats: nats", "nats_password", "one login"]
    {
        assert!(ended.err.contains(part), "{part} in {}", ended.err);
    }
}

#[test]
fn a_server_that_is_not_there_is_waited_for_and_given_up() {
    let ended = refused(&Home::new(), "nats://127.0.0.1:1", &["--wait-s", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("waiting for NATS"), "{}", ended.err);
    assert!(ended.err.contains("did not answer for 1 s"), "{}", ended.err);
}

#[test]
fn working_memory_that_is_not_there_is_given_up_with_a_way_out() {
    let Some(program) = nats_program() else { return };
    let home = Home::new();
    let nats = Nats::start(&home, program, "");
    let more = ["--redis", "redis://127.0.0.1:1", "--wait-s", "1"];
    let ended = refused(&home, &nats.url(), &more);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("waiting for Redis"), "{}", ended.err);
    assert!(ended.err.contains("leave it out"), "{}", ended.err);
}

#[test]
fn a_wrong_login_and_a_server_without_jetstream_are_told_apart() {
    let Some(program) = nats_program() else { return };
    let home = Home::new();
    let users = "authorization { user: ann, password: right }";
    let nats = Nats::start(&home, program.clone(), users);
    let login = ["--nats-user", "ann", "--nats-password", "wrong"];
    let ended = refused(&home, &nats.url(), &login);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("refused the login"), "{}", ended.err);
    let home = Home::new();
    let nats = Nats::without_jetstream(&home, program);
    let ended = refused(&home, &nats.url(), &["--wait-s", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("JetStream is not enabled"), "{}", ended.err);
}

#[test]
fn a_stream_that_could_lose_records_is_left_alone() {
    let Some(program) = nats_program() else { return };
    let home = Home::new();
    let nats = Nats::start(&home, program, "");
    let answer = nats.ask(
        "$JS.API.STREAM.CREATE.SY_0",
        r#"{"name":"SY_0","subjects":["sy.0.>"],"storage":"file","max_age":60000000000}"#,
    );
    assert!(answer.contains("\"max_age\":60000000000"), "{answer}");
    let ended = refused(&home, &nats.url(), &[]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("has another configuration"), "{}", ended.err);
    assert!(ended.err.contains("discards records"), "{}", ended.err);
}

#[test]
fn every_point_at_which_a_process_can_die_is_reached_and_no_promise_is_broken() {
    let (Some(nats), Some(redis)) = (nats_program(), redis_program()) else { return };
    let home = Home::new();
    let mut command = home.command(["drill", "--short", "--jobs", "3", "--json"]);
    command.env("SYSTOLE_NATS_SERVER", nats).env("SYSTOLE_REDIS_SERVER", redis);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let cells: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(cells.len() >= 79, "{} cells", cells.len());
    for cell in &cells {
        assert_eq!(cell["reached"], true, "{cell}");
        for broken in ["runs_lost", "effects_repeated", "claimed_in_vain"] {
            assert_eq!(cell[broken], 0, "{cell}");
        }
        assert_eq!(cell["violations"], serde_json::json!([]), "{cell}");
    }
}

/// Books an order over HTTP and waits for the end.
fn order_over_http(gateway: &Node, name: &str) {
    let order = json!({ "agent": "clerk", "input": { "text": format!("order {name}") } });
    let (status, begun) = post(gateway, "/v1/threads", "", &order);
    assert_eq!(status, 201, "{begun}");
    let thread = begun["thread"].as_str().unwrap();
    let told = Events::open(gateway, thread, None).until("run_finished");
    assert_eq!(told.last().unwrap()["outcome"], "answered");
}

#[test]
fn a_dev_joins_a_deployment_as_any_part_of_it() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let world = Deployment::with_redis(program, &redis);
    let whole = world.joined("whole", &[]);
    whole.until_ready();
    order_over_http(&whole, "one");
    for name in ["systole_planner_runs_total", "systole_worker_slots", "systole_gateway_readers"] {
        let (_, text) = whole.get("/metrics").unwrap();
        assert!(text.contains(name), "{name} is missing: {text}");
    }
    assert_eq!(whole.stop(), Some(0));
    let hands = world.joined("hands", &["--roles", "worker"]);
    let head = world.joined("head", &["--roles", "planner,gateway"]);
    for node in [&hands, &head] {
        node.until_ready();
    }
    order_over_http(&head, "two");
    assert_eq!(world.booked(), ["one", "two"]);
    assert_eq!((head.stop(), hands.stop()), (Some(0), Some(0)));
}

#[test]
fn a_dev_is_a_part_of_something_or_on_its_own() {
    let home = Home::new();
    let alone = home.run(["dev", "--roles", "worker"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.err.contains("--nats"), "{}", alone.err);
    let dry = home.run(["dev", "--dry-run", "--nats", "nats://127.0.0.1:1"]);
    assert_eq!(dry.code, Some(2), "{dry:?}");
    assert!(dry.err.contains("no dry run"), "{}", dry.err);
}
