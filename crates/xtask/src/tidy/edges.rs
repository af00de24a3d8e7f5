//! Which crate may see which. cargo-deny guards the doors to other people's crates; this guards
//! the workspace's own edges, and that each member takes the workspace's lints.

use super::{Problem, TextFile};
use crate::house::{Dependency, Member};

const PURE: [&str; 7] = [
    "argument-check",
    "definitions",
    "invariants",
    "memory-core",
    "planner-core",
    "token-count",
    "tool-core",
];

/// What a pure crate may not depend on: runtimes, clocks, chance, I/O.
const IMPURE: [&str; 12] = [
    "axum",
    "fastrand",
    "getrandom",
    "hyper",
    "jiff",
    "rand",
    "reqwest",
    "rusqlite",
    "rustix",
    "tokio",
    "tokio-util",
    "tower",
];
const IMPURE_STARTS: [&str; 3] = ["async-", "futures", "rand_"];

/// True for crates that decide and never act.
pub fn is_pure(name: &str) -> bool {
    PURE.contains(&name)
}

/// True for crates that know one technology.
pub fn is_adapter(name: &str) -> bool {
    ["bus-", "working-", "recall-", "model-"].iter().any(|start| name.starts_with(start))
}

/// Checks every member's manifest.
pub fn check(members: &[Member], files: &[TextFile]) -> Vec<Problem> {
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in members {
        problems.extend(check_lints(member, files));
        problems.extend(check_edges(member, &names));
    }
    problems
}

fn check_lints(member: &Member, files: &[TextFile]) -> Option<Problem> {
    let manifest = files.iter().find(|file| file.path == member.manifest)?;
    let mut lines = manifest.text.lines().map(str::trim).skip_while(|line| *line != "[lints]");
    let table = lines.by_ref().skip(1).take_while(|line| !line.starts_with('['));
    let inherits = table.into_iter().any(|line| line.replace(' ', "") == "workspace=true");
    (!inherits).then(|| {
        let fix = "add `[lints]` with `workspace = true`";
        Problem::in_file(&member.manifest, "does not take the workspace's lints", fix)
    })
}

fn check_edges(member: &Member, names: &[&str]) -> Vec<Problem> {
    let Some(may_see) = may_see(&member.name) else {
        let fix =
            "decide what it may see and add it to `may_see` in crates/xtask/src/tidy/edges.rs";
        return vec![Problem::in_file(&member.manifest, "is a crate without known edges", fix)];
    };
    let is_own = |name: &str| names.contains(&name);
    let normal = member.dependencies.iter().filter(|dependency| is_normal(dependency));
    let mut problems = Vec::new();
    for Dependency { name, .. } in normal {
        if is_own(name) && !may_see(name) {
            problems.push(Problem::in_file(
                &member.manifest,
                format!("{} may not depend on {name}", member.name),
                "depend on `ports` or `proto`, or move the code to where both are allowed",
            ));
        }
        if is_pure(&member.name) && is_impure(name) {
            problems.push(Problem::in_file(
                &member.manifest,
                format!("{} is pure and may not depend on {name}", member.name),
                "take time, ids and chance as arguments and return effects",
            ));
        }
    }
    problems
}

/// Tests may see more: dev-dependencies never reach a program.
fn is_normal(dependency: &Dependency) -> bool {
    dependency.kind.as_deref() != Some("dev")
}

fn is_impure(name: &str) -> bool {
    IMPURE.contains(&name) || IMPURE_STARTS.iter().any(|start| name.starts_with(start))
}

/// Which workspace crates a crate may see; `None` for a crate that is not in the design.
fn may_see(member: &str) -> Option<fn(&str) -> bool> {
    match member {
        "proto" => Some(|_| false),
        "worker-conformance" | "xtask" => Some(|name| name == "proto"),
        // What a store of memories keeps, and the formula it ranks by, is memory-core's.
        "ports" => Some(|name| ["memory-core", "proto"].contains(&name)),
        "rehearsal" => Some(|name| ["argument-check", "definitions", "proto"].contains(&name)),
        "admission" | "service-runtime" => Some(sees_ports),
        "testkit" => Some(|name| sees_ports(name) || ["invariants", "memory-core"].contains(&name)),
        "planner" => Some(|name| {
            let own = ["planner-core", "memory-core", "invariants"];
            sees_service_parts(name) || own.contains(&name)
        }),
        "worker" => {
            Some(|name| sees_service_parts(name) || ["memory-core", "tool-core"].contains(&name))
        }
        // The fold of a thread is written once; what to do next is none of the gateway's business.
        "gateway" => {
            Some(|name| sees_service_parts(name) || ["memory-core", "planner-core"].contains(&name))
        }
        "simulation" => Some(|name| {
            let services = ["planner", "worker", "testkit"];
            sees_service_parts(name) || is_pure(name) || services.contains(&name)
        }),
        "systole" => {
            Some(|name| !["testkit", "simulation", "system-tests", "xtask"].contains(&name))
        }
        "system-tests" | "loadtest" => Some(|_| true),
        "argument-check" => Some(|name| name == "proto"),
        // Whoever counts tokens counts alike.
        "token-count" => Some(|_| false),
        "memory-core" => Some(|name| ["argument-check", "proto", "token-count"].contains(&name)),
        // What the model sees of a long conversation is decided by what memory keeps of it.
        "planner-core" => Some(|name| {
            ["approval-rule", "argument-check", "memory-core", "proto", "token-count"]
                .contains(&name)
        }),
        // Pure but for the stack that its parser is given.
        "approval-rule" => Some(|name| name == "argument-check"),
        recall if recall.starts_with("recall-") => {
            Some(|name| sees_ports(name) || name == "memory-core")
        }
        // How arguments are checked is one rule for model, planner and worker.
        pure if is_pure(pure) => {
            Some(|name| ["proto", "approval-rule", "argument-check"].contains(&name))
        }
        adapter if is_adapter(adapter) => Some(sees_ports),
        _ => None,
    }
}

fn sees_ports(name: &str) -> bool {
    ["ports", "proto"].contains(&name)
}

fn sees_service_parts(name: &str) -> bool {
    sees_ports(name) || ["argument-check", "definitions", "service-runtime"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn member(name: &str, dependencies: &[(&str, Option<&str>)]) -> Member {
        let dependencies = dependencies.iter().map(|(name, kind)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
        });
        Member {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml"),
            dependencies: dependencies.collect(),
        }
    }

    fn edge(from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        wrongs(&check(&[member(from, &[(to, kind)]), member(to, &[])], &[]))
    }

    #[test]
    fn edges_outside_the_design_are_named() {
        let forbidden = [
            ("proto", "ports"),
            ("ports", "planner-core"),
            ("planner-core", "ports"),
            ("definitions", "ports"),
            ("bus-sqlite", "model-openai"),
            ("bus-sqlite", "service-runtime"),
            ("rehearsal", "ports"),
            ("service-runtime", "planner-core"),
            ("planner", "bus-sqlite"),
            ("planner", "tool-core"),
            ("worker", "planner-core"),
            ("testkit", "bus-sqlite"),
            ("simulation", "bus-sqlite"),
            ("systole", "testkit"),
            ("xtask", "ports"),
        ];
        for (from, to) in forbidden {
            let expected = format!("{from}/Cargo.toml: {from} may not depend on {to}");
            assert_eq!(edge(from, to, None), [expected]);
        }
    }

    #[test]
    fn edges_of_the_design_pass() {
        let allowed = [
            ("planner", "planner-core"),
            ("worker", "definitions"),
            ("tool-core", "argument-check"),
            ("systole", "bus-sqlite"),
            ("system-tests", "bus-sqlite"),
            ("simulation", "invariants"),
            ("model-openai", "ports"),
        ];
        for (from, to) in allowed {
            assert_eq!(edge(from, to, None), Vec::<String>::new());
        }
    }

    #[test]
    fn tests_may_see_what_programs_may_not() {
        assert_eq!(edge("model-openai", "rehearsal", Some("dev")), Vec::<String>::new());
        assert_eq!(edge("model-openai", "rehearsal", Some("build")).len(), 1);
    }

    #[test]
    fn a_pure_crate_takes_no_runtime_clock_or_chance() {
        for impure in ["tokio", "async-trait", "futures-util", "fastrand", "getrandom", "rand_core"]
        {
            let problems = check(&[member("tool-core", &[(impure, None)])], &[]);
            let expected =
                format!("tool-core/Cargo.toml: tool-core is pure and may not depend on {impure}");
            assert_eq!(wrongs(&problems), [expected]);
        }
    }

    #[test]
    fn a_crate_that_nobody_placed_is_named() {
        let problems = check(&[member("misc", &[])], &[]);
        assert_eq!(wrongs(&problems), ["misc/Cargo.toml: is a crate without known edges"]);
    }

    #[test]
    fn a_member_without_the_workspace_lints_is_named() {
        let bad = [
            "[package]\n",
            "[lints]\n[dependencies]\nworkspace = true\n",
            "[lints]\nworkspace = false\n",
        ];
        for text in bad {
            let problems = check(&[member("ports", &[])], &[file("ports/Cargo.toml", text)]);
            let expected = "ports/Cargo.toml: does not take the workspace's lints";
            assert_eq!(wrongs(&problems), [expected], "{text}");
        }
        let good = file("ports/Cargo.toml", "[lints]\nworkspace = true\n");
        assert_eq!(check(&[member("ports", &[])], &[good]), []);
    }
}
