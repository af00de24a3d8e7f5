//! What a bus, a clock or another program may do to a deployment: runs pause, say why, and go on.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::deployment::{Deployment, Nats, Node, Redis, free_port, nats_program, redis_program};
use crate::gateway::post;
use crate::home::{Ended, Home, until};

const AGENT: &str = "name: clerk\nrole: You do what you are told.\nmodel: rehearsal\n\
                     tools: [look, book, dump, write]\n";

/// The outcome of a thread's run with its code, judged by its last event.
fn outcome(ended: &Ended) -> (String, Value) {
    let last = ended.last();
    assert_eq!(last["type"], "run_finished", "{ended:?}");
    (last["outcome"].as_str().unwrap().to_owned(), last["code"].clone())
}

fn answered(ended: &Ended) {
    assert_eq!(outcome(ended).0, "answered", "{ended:?}");
}

/// Files of an agent whose words, arguments and results may be large, and what its tools wrote.
fn files(rehearsal: &str, tools: &str) -> Home {
    let home = Home::new();
    home.write("agents/clerk/agent.yaml", AGENT);
    home.write("rehearsal.yaml", rehearsal);
    home.write("tools.yaml", tools);
    home
}

fn log(world: &Deployment, name: &str) -> String {
    world.home.read(&format!("{name}.log"))
}

#[test]
fn a_full_bus_pauses_runs_and_they_go_on_when_there_is_room() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::over(program, "max_file_store: 8MB", "");
    let (planner, gateway) = (world.planner("planner"), world.gateway("gateway"));
    let worker = world.worker("worker");
    for node in [&planner, &gateway, &worker] {
        node.until_ready();
    }
    answered(&world.tail(&world.order("before")));
    // Their calls wait while the worker stands still.
    worker.signal(Signal::STOP);
    let threads: Vec<String> = (0..3).map(|n| world.order(&format!("n{n}"))).collect();
    let dispatched = || planner.metric("systole_planner_context_tokens_count", &[]) >= Some(6.0);
    until("their calls are out", dispatched);
    fill(&world.nats);

    let order = json!({ "agent": "clerk", "input": { "text": "order refused" } });
    let (status, said) = post(&gateway, "/v1/threads", "", &order);
    assert_eq!((status, &said["error"]["code"]), (507, &json!("store_full")), "{said}");
    let ended = world.send("order refused");
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("insufficient resources"), "{}", ended.err);

    // A worker that starts now cannot say what it offers: it waits, says why, and is not ready.
    let second = world.worker("second");
    let why = || log(&world, "second").contains("insufficient resources");
    until("the second worker says what it waits for", why);
    assert_ne!(second.get("/readyz").map(|answer| answer.0), Some(200));

    // Looks are made, and what came of them cannot be written down.
    worker.signal(Signal::CONT);
    until("the worker holds results", || log(&world, "worker").contains("was not published"));
    assert_eq!(world.booked(), ["before"], "no effect begins without its record");
    assert_eq!(worker.get("/livez").map(|answer| answer.0), Some(200));
    let purged = world.nats.ask("$JS.API.STREAM.PURGE.FILLER", "");
    assert!(purged.contains("\"success\":true"), "{purged}");
    second.until_ready();
    for thread in &threads {
        answered(&world.tail(thread));
    }
    assert_eq!(world.booked(), ["before", "n0", "n1", "n2"]);
}

/// Somebody else's stream takes all the room there is.
fn fill(nats: &Nats) {
    let config = json!({ "name": "FILLER", "subjects": ["filler"], "storage": "file" });
    nats.ask("$JS.API.STREAM.CREATE.FILLER", &config.to_string());
    for bytes in [500_000, 50_000, 5_000, 500, 50, 1] {
        let payload = "x".repeat(bytes);
        while !nats.ask("filler", &payload).contains("\"error\"") {}
    }
    let refused = nats.ask("filler", "x");
    assert!(refused.contains("10023"), "{refused}");
}

const LARGE: &str = "\
rules:
  - when: { last: user, user_matches: 'dump' }
    say: I dump it.
    calls: [{ tool: dump, arguments: {} }]
  - when: { last: user, user_matches: 'speak' }
    say: SPEECH
  - when: { last: user, user_matches: 'write' }
    say: I write it.
    calls: [{ tool: write, arguments: { text: SPEECH } }]
  - when: { last: tool }
    say: 'That was all.'
";

const LARGE_TOOLS: &str = "\
tools:
  - name: dump
    description: Dumps everything that there is, which may be a great deal.
    parameters: {}
    effect: read_only
    result_tokens: 12000
    run: { command: [/bin/sh, -c, 'seq 1 20000'] }
  - name: write
    description: Writes down a text of any length, once and for all.
    parameters: { text: { type: string, required: true, description: The text. } }
    effect: irreversible
    run: { command: [/bin/sh, -c, 'echo wrote >> effects.log'] }
";

#[test]
fn what_does_not_fit_a_message_is_cut_or_told_and_holds_nothing_up() {
    let Some(program) = nats_program() else { return };
    let home = files(&LARGE.replace("SPEECH", &"word ".repeat(6000)), LARGE_TOOLS);
    let world = Deployment::open(home, program, "", "max_payload: 16384");
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    planner.until_ready();
    worker.until_ready();
    let send = |words: &str| {
        let ended = world.send(words);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        world.tail(ended.out.trim())
    };
    // A result is cut, and says so.
    let dumped = send("dump");
    answered(&dumped);
    let observation = dumped.observation_of("dump");
    assert!(observation["content"].as_str().unwrap().contains("is left out"), "{observation}");
    // Words and arguments of a model cannot be cut: the run ends and says why.
    for words in ["speak", "write"] {
        let (outcome, code) = outcome(&send(words));
        assert_eq!((outcome.as_str(), code), ("failed", json!("message_too_large")), "{words}");
    }
    assert_eq!(world.booked(), Vec::<String>::new());
    let ended = world.send(&"much ".repeat(6000));
    assert_eq!(ended.code, Some(5), "{}", ended.err);
    assert!(
        ended.err.contains("more than the 16384 the store takes in one message"),
        "{}",
        ended.err
    );
    assert_eq!((planner.stop(), worker.stop()), (Some(0), Some(0)), "nobody is stuck");
}

#[test]
fn a_process_that_the_bus_drops_because_it_is_slow_comes_back() {
    let Some(program) = nats_program() else { return };
    let monitor = free_port();
    let more =
        format!("http: \"127.0.0.1:{monitor}\"\nwrite_deadline: \"500ms\"\nmax_pending: 1MB");
    let world = Deployment::over(program, "", &more);
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    planner.until_ready();
    worker.until_ready();
    answered(&world.tail(&world.order("before")));
    planner.signal(Signal::STOP);
    flood(&world.nats, monitor);
    planner.signal(Signal::CONT);
    answered(&world.tail(&world.order("after")));
    until("the planner noticed", || log(&world, "planner").contains("connection to NATS is lost"));
    assert_eq!(world.booked(), ["after", "before"]);
    planner.until_ready();
}

/// Says more than somebody who stands still can take in, until the server has let go of it.
fn flood(nats: &Nats, monitor: u16) {
    let address = nats.url().trim_start_matches("nats://").to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"CONNECT {\"verbose\":false}\r\n").unwrap();
    let payload = "x".repeat(100_000);
    let word = format!("PUB syctl.default.nobody {}\r\n{payload}\r\n", payload.len());
    until("the server has met a slow consumer", || {
        for _ in 0..20 {
            stream.write_all(word.as_bytes()).unwrap();
        }
        slow_consumers(monitor) > Some(0)
    });
}

fn slow_consumers(monitor: u16) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", monitor)).ok()?;
    stream.write_all(b"GET /varz HTTP/1.0\r\nhost: test\r\n\r\n").ok()?;
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.contains("\"slow_consumers\""))?;
    line.rsplit(' ').next()?.trim_end_matches(',').parse().ok()
}

const OLD_TOOLS: &str = "\
tools:
  - name: look
    description: Looks whether an order can be booked at this moment.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: read_only
    run: { command: [/bin/sh, -c, 'echo old >> looks.log', '{order}'] }
";

#[test]
fn a_worker_whose_tool_is_another_version_refuses_and_nothing_is_run() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    let planner = world.planner("planner");
    let worker = world.worker("worker-1");
    planner.until_ready();
    worker.until_ready();
    // Offered by one, called, and taken by another with an older file.
    worker.kill();
    let thread = world.order("one");
    let dispatched = || planner.metric("systole_planner_context_tokens_count", &[]) >= Some(1.0);
    until("the call is out", dispatched);
    let newer = world.home.read("tools.yaml");
    world.home.write("tools.yaml", OLD_TOOLS);
    let old = world.worker("worker-old");
    old.until_ready();
    let refused = || old.metric("systole_worker_observations_total", &["version_mismatch"]);
    until("the old worker refuses", || refused() == Some(1.0));
    old.kill();
    world.home.write("tools.yaml", &newer);
    let worker = world.worker("worker-2");
    worker.until_ready();
    let ended = world.tail(&thread);
    answered(&ended);
    assert_eq!(ended.observation_of("look")["code"], "version_mismatch");
    assert_eq!(world.home.read("looks.log"), "", "the other version did not run");
    assert_eq!(world.booked(), ["one"]);
}

#[test]
fn servers_that_come_late_are_waited_for() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let home = files("rules: [{ say: Yes. }]\n", OLD_TOOLS);
    let port = free_port();
    let nats = format!("nats://127.0.0.1:{port}");
    let words = ["worker", "--tools", "tools.yaml", "--listen", "127.0.0.1:0", "--nats", &nats];
    let worker = Node::start(&home, "late", &words);
    let said = |words: &str| home.read("late.log").contains(words);
    until("it says what it waits for", || said("waiting for NATS"));
    assert_eq!(worker.get("/livez").map(|answer| answer.0), Some(200));
    assert_eq!(worker.get("/readyz").map(|answer| answer.0), Some(503));
    let store = home.path().join("nats");
    let lines = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n",
        store.display()
    );
    let bus = Nats::with_lines(&home, program, port, &lines);
    worker.until_ready();
    assert_eq!(worker.stop(), Some(0));

    // Redis the same: its address is known before it is there.
    let early = Redis::start(&home, &redis);
    let address = early.url();
    drop(early);
    let bus_url = bus.url();
    let words = [
        "worker",
        "--tools",
        "tools.yaml",
        "--listen",
        "127.0.0.1:0",
        "--nats",
        &bus_url,
        "--redis",
        &address,
    ];
    let worker = Node::start(&home, "late-redis", &words);
    let waits = || home.read("late-redis.log").contains("waiting for Redis");
    until("it says what it waits for", waits);
    assert_eq!(worker.get("/readyz").map(|answer| answer.0), Some(503));
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let _redis = Redis::start_at(&home, &redis, port, &[]);
    worker.until_ready();
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn a_login_that_may_not_use_jetstream_is_told_so() {
    let Some(program) = nats_program() else { return };
    let home = files("rules: [{ say: Yes. }]\n", OLD_TOOLS);
    let users = "authorization { users: [{ user: ann, password: right, permissions: { publish: [\"_INBOX.>\"], subscribe: [\">\"] } }] }";
    let nats = Nats::start(&home, program, users);
    let url = nats.url();
    let words = [
        "worker",
        "--tools",
        "tools.yaml",
        "--listen",
        "off",
        "--nats",
        &url,
        "--nats-user",
        "ann",
        "--nats-password",
        "right",
        "--wait-s",
        "2",
    ];
    let ended = home.run(words);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("may not do what is needed: Permissions"), "{}", ended.err);
    assert!(ended.err.contains("$JS.API.>"), "{}", ended.err);
}

#[test]
fn a_record_that_nobody_can_read_is_counted_and_never_delivered_again() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    planner.until_ready();
    worker.until_ready();
    let thread = world.order("one");
    answered(&world.tail(&thread));
    let strays = (0..2).map(|part| format!("sy.{part}.default.nobody.in"));
    let broken = (0..2).map(|part| format!("sy.{part}.default.{thread}.in"));
    for subject in strays.chain(broken) {
        let stored = world.nats.ask(&subject, "no record");
        assert!(stored.contains("\"seq\""), "{stored}");
    }
    let parked = || planner.metric("systole_planner_parked_records_total", &[]);
    until("the records are set aside", || parked() == Some(2.0));
    until("the strays are set aside", || {
        log(&world, "planner").matches("a message of no thread was set aside").count() == 2
    });
    // Nothing of them is held or waits: nothing will come again.
    until("nothing is held", || {
        (0..2).all(|part| {
            let subject = format!("$JS.API.CONSUMER.INFO.SY_{part}.planner_in");
            let info: Value = serde_json::from_str(&world.nats.ask(&subject, "")).unwrap();
            info["num_ack_pending"] == 0 && info["num_pending"] == 0
        })
    });
    answered(&world.tail(&world.order("two")));
    assert_eq!(world.booked(), ["one", "two"]);
}
