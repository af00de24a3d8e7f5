//! `systole doctor` against real servers: each fault of a setting is found, and gone once it is cured.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::servers::{find_server, require_server};

use crate::deployment::{Nats, Redis, ask_at, free_port, nats_program, redis_program};
use crate::home::{Home, until};

/// What `doctor` said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    found: BTreeSet<String>,
}

impl Said {
    fn has(&self, finding: &str) -> bool {
        self.found.contains(finding)
    }
}

fn doctor(home: &Home, words: &[&str]) -> Said {
    let ended = home.run([&["doctor", "--json"], words].concat());
    let said: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let all = said["findings"].as_array().unwrap().iter();
    let found: BTreeSet<String> =
        all.clone().map(|one| one["finding"].as_str().unwrap().to_owned()).collect();
    let is_worst = |one: &Value| one["severity"] == "not_durable";
    assert_eq!(said["durable"], !all.clone().any(is_worst), "{said}");
    assert_eq!(ended.code, Some(i32::from(said["durable"] == false)), "{said}");
    Said { code: ended.code, found }
}

/// One server that can be configured anew.
struct Clinic {
    home: Home,
    nats: Nats,
    port: u16,
    monitor: u16,
}

/// What a durable server says in its block.
const SOUND: &str = "sync_interval: always, max_file_store: 1GB";

impl Clinic {
    fn open(program: PathBuf) -> Self {
        let (home, port, monitor) = (Home::new(), free_port(), free_port());
        let lines = Self::lines(&home, port, monitor, SOUND, "");
        let nats = Nats::with_lines(&home, program, port, &lines);
        let clinic = Self { home, nats, port, monitor };
        clinic.until_ready();
        clinic
    }

    fn lines(home: &Home, port: u16, monitor: u16, block: &str, more: &str) -> String {
        let store = home.path().join("nats");
        let jetstream = if block.is_empty() {
            String::new()
        } else {
            format!("jetstream {{ store_dir: \"{}\", {block} }}\n", store.display())
        };
        format!("listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n{jetstream}{more}\n")
    }

    /// Restarts the server with another block for JetStream, none if it is empty, and more lines.
    fn configure(&mut self, block: &str, more: &str) {
        self.nats.kill();
        let lines = Self::lines(&self.home, self.port, self.monitor, block, more);
        self.home.write("nats.conf", &lines);
        self.nats.run();
        self.until_ready();
    }

    fn until_ready(&self) {
        until("NATS is well", || is_well(self.monitor));
    }

    fn create_streams(&self) {
        let words = ["send", "hello", "--agent", "clerk", "--nats", &self.nats.url()];
        let ended = self.home.run(words);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }

    fn ask(&self, more: &[&str]) -> Said {
        let monitor = format!("http://127.0.0.1:{}", self.monitor);
        let words = ["--nats", &self.nats.url(), "--monitor", &monitor];
        doctor(&self.home, &[&words[..], more].concat())
    }

    /// A request to JetStream that has to succeed.
    fn api(&self, subject: &str, body: &Value) -> Value {
        let answer = self.nats.ask(&format!("$JS.API.{subject}"), &body.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer.get("error"), None, "{subject}: {answer}");
        answer
    }

    /// Changes fields of a stream's configuration.
    fn edit_stream(&self, change: &Value) {
        let mut config = self.api("STREAM.INFO.SY_0", &json!({}))["config"].clone();
        merge(&mut config, change);
        self.api("STREAM.UPDATE.SY_0", &config);
    }

    /// The same of the bucket of freezes.
    fn edit_freezes(&self, change: &Value) {
        let name = "KV_SY_FREEZES";
        let mut config = self.api(&format!("STREAM.INFO.{name}"), &json!({}))["config"].clone();
        merge(&mut config, change);
        self.api(&format!("STREAM.UPDATE.{name}"), &config);
    }

    /// Another stream in place of the one that processes create.
    fn replace_stream(&self, config: &Value) {
        self.api("STREAM.DELETE.SY_0", &json!({}));
        let mut whole = json!({ "name": "SY_0", "subjects": ["sy.0.>"], "storage": "file" });
        merge(&mut whole, config);
        self.api("STREAM.CREATE.SY_0", &whole);
    }

    /// Creates the consumer anew with these fields.
    fn consumer(&self, change: &Value) {
        let name = "planner_in";
        let gone = self.nats.ask(&format!("$JS.API.CONSUMER.DELETE.SY_0.{name}"), "");
        assert!(gone.contains("success") || gone.contains("not found"), "{gone}");
        let mut config = json!({
            "durable_name": name, "ack_policy": "explicit", "ack_wait": 6_000_000_000_u64,
            "max_deliver": -1, "max_ack_pending": 1_000_000, "filter_subject": "sy.0.*.*.in",
        });
        merge(&mut config, change);
        let body = json!({ "stream_name": "SY_0", "config": config });
        self.api(&format!("CONSUMER.DURABLE.CREATE.SY_0.{name}"), &body);
    }
}

fn merge(into: &mut Value, change: &Value) {
    for (name, value) in change.as_object().unwrap() {
        into[name] = value.clone();
    }
}

fn is_well(port: u16) -> bool {
    let ask = || -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\nhost: test\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    ask().is_some_and(|answer| answer.contains(" 200 "))
}

#[test]
fn a_server_that_flushes_later_is_not_durable_and_one_that_nobody_sees_neither() {
    let Some(program) = nats_program() else { return };
    let mut clinic = Clinic::open(program);
    clinic.create_streams();
    let sound = clinic.ask(&[]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    assert!(sound.has("acks_forgotten") && sound.has("one_copy"), "{sound:?}");
    clinic.configure("max_file_store: 1GB", "");
    let late = clinic.ask(&[]);
    assert!(late.has("sync_late") && !late.has("sync_unknown"), "{late:?}");
    assert!(!late.has("acks_forgotten"), "{late:?}");
    clinic.configure("sync_interval: \"10s\", max_file_store: 1GB", "");
    assert!(clinic.ask(&[]).has("sync_late"));
    clinic.configure(SOUND, "");
    assert_eq!(clinic.ask(&[]).found, sound.found);

    let unseen = doctor(&clinic.home, &["--nats", &clinic.nats.url()]);
    assert!(unseen.has("sync_unknown") && !unseen.has("monitor_unreachable"), "{unseen:?}");
    // The client's port is no monitoring port.
    let wrong = format!("http://127.0.0.1:{}", clinic.port);
    let wrong = doctor(&clinic.home, &["--nats", &clinic.nats.url(), "--monitor", &wrong]);
    assert!(wrong.has("sync_unknown") && wrong.has("monitor_unreachable"), "{wrong:?}");
}

#[test]
fn a_server_that_lacks_what_is_needed_is_told_apart() {
    let Some(program) = nats_program() else { return };
    let mut clinic = Clinic::open(program);
    clinic.configure(SOUND, "max_payload: 65536");
    assert!(clinic.ask(&[]).has("message_limit"));
    clinic.configure(SOUND, "");
    assert!(!clinic.ask(&[]).has("message_limit"));
    clinic.configure("", "");
    assert!(clinic.ask(&[]).has("bus_keeps_nothing"));
    clinic.configure(SOUND, "authorization { token: secret }");
    assert!(clinic.ask(&[]).has("bus_unreachable"), "the login is refused");
    assert!(!clinic.ask(&["--nats-token", "secret"]).has("bus_unreachable"));
    clinic.nats.kill();
    let gone = clinic.ask(&["--wait-s", "0"]);
    assert!(gone.has("bus_unreachable"), "{gone:?}");
}

/// A server of another version, where `cargo xtask` puts it.
fn installed(folder: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let mut places =
        test.ancestors().map(|dir| dir.join("servers").join(folder).join("bin/nats-server"));
    places.find(|path| path.is_file())
}

#[test]
fn an_old_server_is_noted_and_one_that_is_too_old_refused() {
    let newest = find_server("nats-server", "SYSTOLE_NATS_SERVER");
    let versions = [
        ("NATS 2.11", installed("nats-2.11"), (true, false)),
        ("NATS 2.12", installed("nats-2.12"), (false, true)),
        ("nats-server", newest, (false, false)),
    ];
    for (name, program, expected) in versions {
        let Some(program) = require_server(name, program) else { continue };
        let said = Clinic::open(program).ask(&[]);
        assert_eq!((said.has("bus_too_old"), said.has("bus_old")), expected, "{name}: {said:?}");
    }
}

#[test]
fn a_server_that_is_nearly_full_or_may_outgrow_its_disk_is_named() {
    let Some(program) = nats_program() else { return };
    let mut clinic = Clinic::open(program);
    clinic.configure("sync_interval: always, max_file_store: 900TB", "");
    let large = clinic.ask(&[]);
    assert!(large.has("bus_beyond_disk") && !large.has("bus_nearly_full"), "{large:?}");
    clinic.configure("sync_interval: always, max_file_store: 2MB", "");
    clinic.api(
        "STREAM.CREATE.OTHER",
        &json!({ "name": "OTHER", "subjects": ["other"], "storage": "file" }),
    );
    let payload = "x".repeat(900_000);
    for _ in 0..2 {
        let stored = clinic.nats.ask("other", &payload);
        assert!(stored.contains("\"seq\""), "{stored}");
    }
    let full = clinic.ask(&[]);
    assert!(full.has("bus_nearly_full") && !full.has("bus_beyond_disk"), "{full:?}");
    clinic.api("STREAM.PURGE.OTHER", &json!({}));
    assert!(!clinic.ask(&[]).has("bus_nearly_full"));
}

#[test]
fn a_stream_that_may_forget_is_named_and_one_as_processes_create_it_is_not() {
    let Some(program) = nats_program() else { return };
    let clinic = Clinic::open(program);
    assert!(clinic.ask(&[]).has("log_missing"));
    clinic.create_streams();
    let sound = clinic.ask(&[]);
    assert!(!sound.has("log_missing") && sound.code == Some(0), "{sound:?}");

    for (field, limit, none) in [
        ("max_msgs", 1000, -1),
        ("max_bytes", 1_000_000, -1),
        ("max_age", 3_600_000_000_000_i64, 0),
        ("max_msgs_per_subject", 7, -1),
    ] {
        clinic.edit_stream(&json!({ field: limit }));
        assert!(clinic.ask(&[]).has("log_limited"), "{field}");
        clinic.edit_stream(&json!({ field: none }));
        assert_eq!(clinic.ask(&[]).found, sound.found, "{field}");
    }
    clinic.edit_freezes(&json!({ "max_age": 3_600_000_000_000_i64 }));
    assert!(clinic.ask(&[]).has("log_limited"), "a freeze would end by itself");
    clinic.edit_freezes(&json!({ "max_age": 0 }));
    assert_eq!(clinic.ask(&[]).found, sound.found);
    clinic.api("STREAM.DELETE.KV_SY_FREEZES", &json!({}));
    assert!(clinic.ask(&[]).has("log_missing"));
    clinic.create_streams();
    assert_eq!(clinic.ask(&[]).found, sound.found);

    let three = clinic.ask(&["--replicas", "3"]);
    assert!(three.has("copies_differ") && !sound.has("copies_differ"), "{three:?}");

    clinic.replace_stream(&json!({ "storage": "memory", "allow_msg_schedules": true }));
    assert!(clinic.ask(&[]).has("log_in_memory"));
    clinic.replace_stream(&json!({ "retention": "workqueue" }));
    assert!(clinic.ask(&[]).has("log_forgets"));
    clinic.replace_stream(&json!({}));
    assert!(clinic.ask(&[]).has("no_schedules"));
    // A process migrates what may be changed in place.
    clinic.create_streams();
    assert_eq!(clinic.ask(&[]).found, sound.found);
}

#[test]
fn a_consumer_that_stops_or_stalls_is_named() {
    let Some(program) = nats_program() else { return };
    let clinic = Clinic::open(program);
    clinic.create_streams();
    clinic.consumer(&json!({}));
    let sound = clinic.ask(&[]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let faults = [
        ("queue_gives_up", json!({ "max_deliver": 5 })),
        ("queue_held_limit", json!({ "max_ack_pending": 1000 })),
        ("queue_ack_wait", json!({ "ack_wait": 30_000_000_000_u64 })),
        ("queue_deleted", json!({ "inactive_threshold": 600_000_000_000_u64 })),
        ("queue_unacknowledged", json!({ "ack_policy": "all" })),
        ("queue_paused", json!({ "pause_until": "2200-01-01T00:00:00Z" })),
    ];
    for (finding, fault) in faults {
        clinic.consumer(&fault);
        let said = clinic.ask(&[]);
        let expected: BTreeSet<String> =
            sound.found.iter().cloned().chain([finding.to_owned()]).collect();
        assert_eq!(said.found, expected, "{fault}");
        clinic.consumer(&json!({}));
        assert_eq!(clinic.ask(&[]).found, sound.found, "{fault} is cured");
    }
    // The setting may change in place of the consumer.
    clinic.consumer(&json!({ "ack_wait": 30_000_000_000_u64 }));
    assert!(!clinic.ask(&["--ack-wait-s", "30"]).has("queue_ack_wait"));
}

/// Three servers that know each other.
struct Cluster {
    servers: Vec<Child>,
    ports: Vec<u16>,
    monitors: Vec<String>,
}

impl Cluster {
    fn start(home: &Home, program: &Path, block: &str) -> Self {
        let [ports, routes, monitors] = [(); 3].map(|()| [(); 3].map(|()| free_port()));
        let all = routes.map(|port| format!("nats://127.0.0.1:{port}")).join(", ");
        let start = |index: usize| {
            let store = home.path().join(format!("n{index}"));
            let lines = format!(
                "server_name: n{index}\nlisten: \"127.0.0.1:{}\"\nhttp: \"127.0.0.1:{}\"\n\
                 jetstream {{ store_dir: \"{}\", {block} }}\n\
                 cluster {{ name: c, listen: \"127.0.0.1:{}\", routes: [{all}] }}\n",
                ports[index],
                monitors[index],
                store.display(),
                routes[index],
            );
            let name = format!("n{index}.conf");
            home.write(&name, &lines);
            let mut command = Command::new(program);
            command.arg("-c").arg(home.path().join(name)).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let servers = (0..3).map(start).collect();
        until("the cluster is well", || monitors.iter().all(|port| is_well(*port)));
        let monitors = monitors.map(|port| format!("http://127.0.0.1:{port}")).to_vec();
        Self { servers, ports: ports.to_vec(), monitors }
    }

    fn set_copies(&self, stream: &str, copies: u64) {
        let info = ask_at(self.ports[0], &format!("$JS.API.STREAM.INFO.{stream}"), "");
        let info: Value = serde_json::from_str(&info).unwrap();
        let mut config = info["config"].clone();
        merge(&mut config, &json!({ "num_replicas": copies }));
        let subject = format!("$JS.API.STREAM.UPDATE.{stream}");
        let answer = ask_at(self.ports[0], &subject, &config.to_string());
        assert!(!answer.contains("\"error\""), "{answer}");
    }

    fn url(&self) -> String {
        self.ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

#[test]
fn three_servers_that_sync_and_are_all_seen_keep_every_promise() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let home = Home::new();
    let cluster = Cluster::start(&home, &program, SOUND);
    let redis = Redis::start_with(&home, &redis, &["--appendonly", "yes"]);
    let (url, redis) = (cluster.url(), redis.url());
    let servers = ["--nats", &url, "--replicas", "3"];
    let sent = home.run([&["send", "hello", "--agent", "clerk"], &servers[..]].concat());
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    let seen = |count: usize| {
        let monitors = cluster.monitors.iter().take(count);
        let monitors: Vec<&str> = monitors.flat_map(|url| ["--monitor", url.as_str()]).collect();
        doctor(&home, &[&servers[..], &["--redis", &redis], &monitors].concat())
    };
    let sound = seen(3);
    assert_eq!((sound.code, sound.found), (Some(0), BTreeSet::new()));
    // Buckets are counted like streams, and the next process that starts gives them their copies back.
    for bucket in ["KV_SY_FREEZES", "OBJ_SY_ARTIFACTS"] {
        cluster.set_copies(bucket, 1);
        let one = seen(3);
        assert!(one.has("copies_differ"), "{bucket}: {one:?}");
        let sent = home.run([&["send", "again", "--agent", "clerk"], &servers[..]].concat());
        assert_eq!(sent.code, Some(0), "{}", sent.err);
        until("the copies are back", || seen(3).found.is_empty());
    }
    // The third server keeps records too, and nobody knows when it writes them down.
    assert_eq!(seen(2).found, BTreeSet::from(["sync_unknown".to_owned()]));
}

#[test]
fn working_memory_that_forgets_is_a_risk_and_no_lie() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let clinic = Clinic::open(program);
    clinic.create_streams();
    let without = clinic.ask(&[]);
    assert!(without.has("memory_none") && without.code == Some(0), "{without:?}");
    let gone = format!("redis://127.0.0.1:{}", free_port());
    let gone = clinic.ask(&["--redis", &gone]);
    assert!(gone.has("memory_unreachable") && gone.code == Some(0), "{gone:?}");

    let redis = Redis::start_with(&clinic.home, &redis, &["--appendonly", "yes"]);
    let url = redis.url();
    let ask = || clinic.ask(&["--redis", &url]);
    let memory = |said: &Said| -> Vec<String> {
        said.found.iter().filter(|name| name.starts_with("memory_")).cloned().collect()
    };
    assert_eq!(memory(&ask()), Vec::<String>::new());
    for (sick, finding, cure) in [
        ("maxmemory-policy allkeys-lru", "memory_evicts", "maxmemory-policy noeviction"),
        ("appendonly no", "memory_not_on_disk", "appendonly yes"),
        ("maxmemory 1", "memory_nearly_full", "maxmemory 0"),
    ] {
        assert_eq!(redis.say(&format!("CONFIG SET {sick}")), "+OK");
        assert_eq!(memory(&ask()), [finding], "{sick}");
        assert_eq!(redis.say(&format!("CONFIG SET {cure}")), "+OK");
        assert_eq!(memory(&ask()), Vec::<String>::new(), "{cure}");
    }
}

#[test]
fn a_store_in_one_file_is_judged_with_its_disk() {
    let home = Home::new();
    let missing = doctor(&home, &[]);
    assert!(missing.has("store_missing"), "{missing:?}");
    let new = home.run(["new", "agent", "it"]);
    assert_eq!(new.code, Some(0), "{}", new.err);
    let run = home.run(["run", "agents/it/agent.yaml", "hello"]);
    assert!(home.store().is_file(), "{run:?}");
    let there = doctor(&home, &[]);
    assert!(!there.has("store_missing") && !there.has("store_journal_mode"), "{there:?}");

    let store = home.store();
    let change = |mode: &str| {
        let script = format!(
            "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode={mode}')"
        );
        let status = Command::new("python3").args(["-c", &script]).arg(&store).status().unwrap();
        assert!(status.success());
    };
    change("DELETE");
    assert!(doctor(&home, &[]).has("store_journal_mode"));
    change("WAL");
    assert!(!doctor(&home, &[]).has("store_journal_mode"));

    let bytes = std::fs::metadata(&store).unwrap().len();
    let limited = |most: u64| {
        let mut command = home.command(["doctor", "--json"]);
        let output = command.env("SYSTOLE_STORE_MAX_BYTES", most.to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(limited(bytes).contains("store_nearly_full"));
    assert!(!limited(bytes * 2).contains("store_nearly_full"));

    std::fs::write(home.path().join("strange.db"), "no database at all, only text ".repeat(100))
        .unwrap();
    let strange = doctor(&home, &["--store", "strange.db"]);
    assert!(strange.has("store_unreadable"), "{strange:?}");
    if Path::new("/dev/shm").is_dir() {
        let volatile = doctor(&home, &["--store", "/dev/shm/systole-doctor/none.db"]);
        assert!(volatile.has("store_volatile") && !there.has("store_volatile"), "{volatile:?}");
    }
}
