//! The ready agents in both protocols, over HTTP, with a model that streams as each family of
//! endpoints does and refuses what that family refuses: they end answered, with the right effects.

mod quirks;
mod server;
mod strict;

use std::fs;
use std::path::{Path, PathBuf};

use self::server::{Family, serve};
use crate::home::{Ended, Home, finish};

fn shipped(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents").join(agent)
}

fn in_protocol(agent: &str, protocol: &str) -> String {
    let text = fs::read_to_string(shipped(agent).join("agent.yaml")).unwrap();
    assert_eq!(text.matches("protocol: native").count(), 1);
    text.replace("protocol: native", &format!("protocol: {protocol}"))
}

/// Runs an agent against a model of this family.
fn run(home: &Home, (family, profile): (Family, &str), agent: &str, words: &[&str]) -> Ended {
    let rehearsal = fs::read_to_string(shipped(agent).join("rehearsal.yaml")).unwrap();
    let url = serve(family, &rehearsal);
    // The file is named by the agent; the endpoint answers.
    home.write(&format!("{agent}/rehearsal.yaml"), &rehearsal);
    let file = format!("{agent}/agent.yaml");
    let own = ["run", &file, "--json", "--base-url", &url, "--profile", profile];
    let mut command = home.command(own.iter().chain(words));
    command.env("SYSTOLE_CODE_DIR", home.path().join("code/work"));
    finish(command)
}

/// The ops agent with a service that is well once it was restarted.
fn ops(family: (Family, &str), protocol: &str) {
    let home = Home::new();
    home.write("ops/agent.yaml", &in_protocol("ops", protocol));
    let tools = fs::read_to_string(shipped("ops").join("tools.yaml")).unwrap();
    let ill = r#"{"healthy":false,"status":500,"error_rate":0.8,"uptime_s":61,"pid":4711}"#;
    let well = r#"{"healthy":true,"status":200,"error_rate":0,"uptime_s":2,"pid":4712}"#;
    home.write("ill", ill);
    home.write("well", well);
    home.write("restarted.json", r#"{"restarted":true,"pid":4712}"#);
    let at = |name: &str| home.path().join(name).display().to_string();
    let probe = format!(
        "if [ -e {0} ]; then cat {1}; else cat {2}; fi",
        at("effects"),
        at("well"),
        at("ill")
    );
    let restart = format!("echo restart >> {0}; cat {1}", at("effects"), at("restarted.json"));
    let shell = |script: &str| format!("command: [/bin/sh, -c, '{script}']");
    let tools = tools
        .replace("command: [systole, demo-tool, probe]", &shell(&probe))
        .replace(
            "command: [systole, demo-tool, log, \"--lines={lines}\"]",
            &shell("echo ERROR pool exhausted"),
        )
        .replace("command: [systole, demo-tool, restart, \"--reason={reason}\"]", &shell(&restart))
        .replace("${SYSTOLE_DEMO_DIR:-.}/out", &at("out"))
        .replace("      env: [SYSTOLE_DEMO_DIR]\n", "");
    assert!(!tools.contains("systole, demo-tool") && !tools.contains("${"), "{tools}");
    home.write("ops/tools.yaml", &tools);
    fs::create_dir_all(home.path().join("out")).unwrap();
    let alert = fs::read_to_string(shipped("ops").join("alert.json")).unwrap();
    let ended = run(&home, family, "ops", &["--approve", "restart_service", &alert]);
    let answer = ended.answer();
    assert!(answer.contains("is fixed") && !answer.contains("not fixed"), "{family:?} {answer}");
    assert_eq!(home.read("effects"), "restart\n", "{family:?}");
    assert!(home.read("out/postmortem.md").contains("Outcome: fixed"), "{family:?}");
}

fn both(profile: &str, family: Family) {
    for protocol in ["native", "contract"] {
        ops((family, profile), protocol);
        let home = crate::code::agent(protocol);
        let ended = run(&home, (family, profile), "code", &[crate::code::TASK]);
        crate::code::assert_button_is_complete(&home, &ended);
    }
}

#[test]
fn agents_work_with_a_model_that_streams_like_openai() {
    both("openai", Family::Openai);
}

#[test]
fn agents_work_with_a_model_that_streams_like_mistral() {
    both("mistral", Family::Mistral);
}

#[test]
fn agents_work_with_a_model_that_streams_like_anthropic() {
    both("anthropic-compatible", Family::Anthropic);
}

#[test]
fn agents_work_with_a_model_that_streams_like_gemini() {
    both("gemini-compatible", Family::Gemini);
}

#[test]
fn agents_work_with_a_model_that_streams_like_llama_cpp() {
    both("llama.cpp", Family::LlamaCpp);
}

#[test]
fn agents_work_with_a_model_that_streams_like_ollama() {
    both("ollama", Family::Ollama);
}

#[test]
fn agents_work_with_a_model_that_streams_like_vllm() {
    both("vllm", Family::Vllm);
}
