//! Agents made for a test: one turn of calls, then an answer that tells what came of them.

use crate::home::Home;

/// An agent with one tool. `tool` is the tool's entry in the manifest without its name; `call` is
/// what the rehearsal calls it with.
pub(crate) fn with_tool(home: &Home, tool: &str, arguments: &str) {
    home.write(
        "agent.yaml",
        "name: tester\nrole: You test one tool.\nmodel: rehearsed\ntools: [probe]\npermissions: [test]\n",
    );
    home.write("tools.yaml", &format!("tools:\n  - name: probe\n{tool}"));
    home.write(
        "rehearsal.yaml",
        &format!(
            r#"pace: {{ tokens_per_second: 50, first_token_ms: 50 }}
rules:
  - when: {{ last: user, not_called: [probe] }}
    reasoning: I try the tool and see.
    say: I try it.
    calls:
      - tool: probe
        arguments: {arguments}
  - when: {{ last: tool }}
    say: "It said: {{{{observed.probe|nothing}}}}"
"#
        ),
    );
}

/// A manifest entry for a command.
pub(crate) fn command(argv: &str, effect: &str, more: &str) -> String {
    format!(
        "    description: A tool that does what this test needs and nothing else.\n    \
         effect: {effect}\n    parameters: {{}}\n{more}    run: {{ command: {argv} }}\n"
    )
}

/// An agent whose one call waits for a person and then writes a line.
pub(crate) fn dangerous(home: &Home) {
    let tool = command(
        "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\"]",
        "irreversible",
        "    approval: always\n",
    );
    with_tool(home, &tool, "{}");
}

/// An agent that talks for a long time and then answers.
pub(crate) fn talker(home: &Home) {
    home.write("agent.yaml", "name: talker\nrole: You talk.\nmodel: rehearsed\ntools: []\n");
    let words = "and so on ".repeat(200);
    home.write(
        "rehearsal.yaml",
        &format!(
            "pace: {{ tokens_per_second: 20, first_token_ms: 10 }}\nrules:\n  - say: \"begin {words}\"\n"
        ),
    );
}
