//! What was found, for people and for programs.

use serde_json::{Value, json};

use super::finding::{Finding, Severity};

/// Whether "durable" is true.
pub(crate) fn is_durable(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.kind.severity() != Severity::NotDurable)
}

/// As one line of JSON.
pub(crate) fn json(place: &str, findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        json!({
            "finding": finding.kind.as_str(),
            "severity": finding.kind.severity(),
            "what": finding.what,
            "consequence": finding.consequence,
            "fix": finding.fix,
        })
    };
    let all: Vec<Value> = findings.iter().map(one).collect();
    format!("{}\n", json!({ "place": place, "durable": is_durable(findings), "findings": all }))
}

/// For people, worst first.
pub(crate) fn text(place: &str, findings: &[Finding]) -> String {
    let verdict = if is_durable(findings) {
        format!("{place}: durable. What was acknowledged survives a crash and a power cut.\n")
    } else {
        format!("{place}: not durable. What was acknowledged can be lost.\n")
    };
    let parts = findings.iter().map(|finding| {
        format!(
            "\n{} {}\n  {}\n  So:  {}\n  Fix: {}\n",
            finding.kind.severity().as_str(),
            finding.kind.as_str(),
            finding.what,
            finding.consequence,
            finding.fix
        )
    });
    verdict + &parts.collect::<String>()
}
