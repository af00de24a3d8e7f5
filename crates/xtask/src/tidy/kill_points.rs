//! Whatever makes work durable has a kill point beside it: a drill can end the process there.
//!
//! Services act through ports only (that is [`super::edges`]'s rule), and the points sit in the ports.
//! So it is enough that every such method of every port is wrapped, that no record passes a wrapper
//! without a point of its own, and that every process of a deployment wears the wrappers.

use super::source::{Function, Source, Token};
use super::{Problem, TextFile};

const NODES: &str = "services/systole/src/nodes/";
const KILL: &str = "services/systole/src/nodes/kill";
const RECORDS: &str = "services/systole/src/nodes/kill_ports.rs";
const COMMANDS: &str = "services/systole/src/commands/";
const WIRING: &str = "services/systole/src/wiring/servers.rs";

/// Methods that append, arm, claim, keep, say or acknowledge. What is said cannot be lost before it
/// is said: a point behind it is enough.
const DURABLE: [(&str, Where); 6] = [
    ("append", Where::Around),
    ("schedule", Where::Around),
    ("claim", Where::Around),
    ("keep_done", Where::Around),
    ("ack", Where::Around),
    ("publish", Where::Behind),
];
/// Records that no process of ours appends.
const OTHERS: [&str; 1] = ["Tick"];
/// The processes of a deployment.
const PROCESSES: [&str; 3] = ["planner", "worker", "gateway"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Around,
    Behind,
}

/// Checks the wrappers and who wears them, once there are any.
pub fn check(files: &[TextFile]) -> Vec<Problem> {
    let wrappers: Vec<(&TextFile, Source)> = files
        .iter()
        .filter(|file| file.path.starts_with(KILL))
        .filter_map(|file| Some((file, Source::parse(&file.text).ok()?)))
        .collect();
    if wrappers.is_empty() {
        return Vec::new();
    }
    let mut problems: Vec<Problem> = DURABLE
        .iter()
        .filter_map(|(method, place)| check_method(&wrappers, method, *place))
        .collect();
    let records = wrappers.iter().filter(|(file, _)| file.path == RECORDS);
    problems.extend(records.flat_map(|(file, source)| passed_over(file, source)));
    problems.extend(wearers(files));
    problems
}

/// A method is wrapped somewhere, and wherever it is, its points are beside the call.
fn check_method(wrappers: &[(&TextFile, Source)], method: &str, place: Where) -> Option<Problem> {
    let mut found = false;
    for (file, source) in wrappers {
        for function in source.functions.iter().filter(|function| function.name == method) {
            let body = body(source, function);
            let Some(call) = body.iter().position(|token| token.text == "inner") else { continue };
            found = true;
            let is_point = |tokens: &[&Token]| tokens.iter().any(|token| token.text == "reached");
            let (before, after) = body.split_at(call);
            let is_beside = is_point(after) && (place == Where::Behind || is_point(before));
            if !is_beside {
                let wrong = format!("`{method}` has no kill point beside it");
                return Some(Problem::at(&file.path, function.open, wrong, FIX));
            }
        }
    }
    let wrong = format!("no kill point is beside `{method}` of any port");
    (!found).then(|| Problem::in_file(NODES, wrong, FIX))
}

const FIX: &str = "call `self.switch.reached(…)` before and after it, with points of its own";

fn body<'s>(source: &'s Source, function: &Function) -> Vec<&'s Token> {
    let lines = function.open..=function.close;
    source.tokens.iter().filter(|token| lines.contains(&token.line)).collect()
}

/// Arms that end in `None` name records without a point.
fn passed_over(file: &TextFile, source: &Source) -> Vec<Problem> {
    let functions = source.functions.iter().filter(|function| function.name.starts_with("around"));
    let arms = functions.flat_map(|function| without_points(&body(source, function)));
    let wrong = arms.filter(|(_, name)| !OTHERS.contains(&name.as_str()));
    wrong
        .map(|(line, name)| {
            let wrong = format!("`{name}` is appended without a kill point");
            Problem::at(&file.path, line, wrong, "give it a pair of points, before and after")
        })
        .collect()
}

/// Variants in the pattern of each arm `… => None`.
fn without_points(body: &[&Token]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut pattern: Vec<&Token> = Vec::new();
    let mut tokens = body.iter().peekable();
    while let Some(token) = tokens.next() {
        match token.text.as_str() {
            "=" if tokens.peek().is_some_and(|next| next.text == ">") => {
                tokens.next();
                if tokens.peek().is_some_and(|next| next.text == "None") {
                    found.extend(variants(&pattern));
                }
                pattern.clear();
            }
            "," | "{" | "}" => pattern.clear(),
            _ => pattern.push(token),
        }
    }
    found
}

/// The last name of each path; `_` stands for all that are not named.
fn variants(pattern: &[&Token]) -> Vec<(usize, String)> {
    let alternatives = pattern.split(|token| token.text == "|");
    let names = alternatives.filter_map(|alternative| {
        let is_name =
            |token: &&&Token| token.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let until = alternative.iter().position(|token| token.text == "(");
        let path = alternative.get(..until.unwrap_or(alternative.len()))?;
        path.iter().rev().find(is_name).map(|token| (token.line, token.text.clone()))
    });
    names.collect()
}

/// Ports of a deployment are wrapped, and each process reads which point is armed.
fn wearers(files: &[TextFile]) -> Vec<Problem> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &file.text);
    let mut problems = Vec::new();
    if text(WIRING).is_some_and(|wiring| !wiring.contains("with_switch(")) {
        let wrong = "the ports of a deployment are used without kill points";
        problems.push(Problem::in_file(WIRING, wrong, "wrap them by `with_switch`"));
    }
    for process in PROCESSES {
        let path = format!("{COMMANDS}{process}.rs");
        if text(&path).is_some_and(|command| !command.contains("KillSwitch::of(")) {
            let wrong = format!("`systole {process}` arms no kill point");
            let fix = "read the variable by `KillSwitch::of(&context.environment)`";
            problems.push(Problem::in_file(&path, wrong, fix));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn method(name: &str) -> String {
        let points = "self.switch.reached(Point::Before); self.inner.it().await?; self.switch.reached(Point::After);";
        format!("async fn {name}(&self) {{ {points} }}\n")
    }

    fn wrapper() -> String {
        let methods: String = DURABLE.iter().map(|(name, _)| method(name)).collect();
        format!("impl Port for Kill {{\n{methods}}}\n")
    }

    const AROUND: &str = "fn around(record: &Record) -> Option<Points> {\n    match record {\n        \
        Record::Fact(fact) => around_fact(fact),\n        Record::Call(_) => Some((A, B)),\n        \
        Record::Tick => None,\n    }\n}\n";

    fn found(text: &str) -> Vec<String> {
        wrongs(&check(&[file(RECORDS, text)]))
    }

    #[test]
    fn wrapped_methods_and_records_with_points_pass() {
        assert_eq!(found(&format!("{AROUND}{}", wrapper())), Vec::<String>::new());
        assert_eq!(check(&[]), []);
    }

    #[test]
    fn a_method_without_its_points_is_named() {
        for (name, place) in DURABLE {
            let whole = wrapper();
            let bare = whole.replace(&method(name), "");
            assert_eq!(
                found(&bare),
                [format!("{NODES}: no kill point is beside `{name}` of any port")]
            );
            let before = method(name).replace(" self.switch.reached(Point::After);", "");
            let line = found(&whole.replace(&method(name), &before));
            assert_eq!(line.len(), 1, "{name}: {line:?}");
            let after = method(name).replace("self.switch.reached(Point::Before); ", "");
            let line = found(&whole.replace(&method(name), &after));
            assert_eq!(line.is_empty(), place == Where::Behind, "{name}: {line:?}");
        }
    }

    #[test]
    fn a_record_that_passes_without_a_point_is_named() {
        let more = AROUND.replace("Record::Tick =>", "Record::Input(_) | Record::Tick =>");
        let expected = "`Input` is appended without a kill point";
        assert_eq!(found(&format!("{more}{}", wrapper())), [format!("{RECORDS}:5: {expected}")]);
        let rest = AROUND.replace("Record::Tick =>", "_ =>");
        let expected = "`_` is appended without a kill point";
        assert_eq!(found(&format!("{rest}{}", wrapper())), [format!("{RECORDS}:5: {expected}")]);
    }

    #[test]
    fn a_process_without_points_is_named() {
        let files = |wiring: &str, gateway: &str| {
            wrongs(&check(&[
                file(RECORDS, &wrapper()),
                file(WIRING, wiring),
                file("services/systole/src/commands/gateway.rs", gateway),
            ]))
        };
        let (worn, armed) = ("with_switch(ports, switch)", "KillSwitch::of(&context.environment)");
        assert_eq!(files(worn, armed), Vec::<String>::new());
        let bare = "services/systole/src/wiring/servers.rs: the ports of a deployment are used without kill points";
        assert_eq!(files("", armed), [bare]);
        let gateway =
            "services/systole/src/commands/gateway.rs: `systole gateway` arms no kill point";
        assert_eq!(files(worn, "KillSwitch::default()"), [gateway]);
    }
}
