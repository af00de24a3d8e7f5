//! `approval: { when: "<expression>" }` of a tool file: whether a call's arguments ask for a person.
//!
//! The expression is in CEL, the Common Expression Language. It sees each argument by its name, all of
//! them as `args`, and `tainted`: whether untrusted text has entered the context. It is compiled once,
//! when its file is read, and evaluated for each call. An evaluation that does not end in `true` or
//! `false` means that a person is asked.
//!
//! An evaluation is bounded by what it may be made from: the text is short, what goes over a list does
//! not lie within what goes over a list, and arguments beyond [`MOST_BYTES`] are not looked at.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use cel::objects::{Key, Map as CelMap};
use cel::{Context, Program, Value as Cel};
use serde_json::{Map, Value};

/// The longest expression, in bytes.
pub const LONGEST: usize = 500;
/// The largest arguments that an expression is evaluated over, in bytes of JSON.
pub const MOST_BYTES: usize = 16 * 1024;

/// Parts of an expression within each other.
const MOST_NESTED: usize = 24;
/// The stack that reading the longest expression may take, in bytes.
const ROOM: usize = 64 * 1024 * 1024;

/// All arguments.
const ARGS: &str = "args";
/// Whether untrusted text has entered the context.
const TAINTED: &str = "tainted";

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}. Fix: {fix}")]
pub struct BadRule {
    /// What is wrong with it.
    pub found: String,
    /// What to write instead.
    pub fix: String,
}

/// A compiled expression. Cloning is cheap.
#[derive(Clone)]
pub struct ApprovalRule {
    program: Arc<Program>,
    text: Arc<str>,
}

impl fmt::Debug for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovalRule").field(&self.text).finish()
    }
}

/// What an expression says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody has to be asked.
    Go,
    /// A person has to be asked, and why.
    Ask(String),
}

impl ApprovalRule {
    /// Compiles an expression over the parameters of a tool.
    pub fn parse<'p>(
        text: &str,
        parameters: impl Iterator<Item = &'p str>,
    ) -> Result<Self, BadRule> {
        if text.len() > LONGEST {
            let found = format!("an expression of {} bytes", text.len());
            return Err(bad(found, format!("write one of at most {LONGEST} bytes")));
        }
        let names: Vec<&str> = parameters.collect();
        let program = with_room(|| compile(text, &names));
        let program = program.unwrap_or_else(|| Err(no_expression("it cannot be read")))?;
        Ok(Self { program: Arc::new(program), text: text.into() })
    }

    /// Whether a call with these arguments asks for a person.
    pub fn judge(&self, arguments: &Map<String, Value>, tainted: bool) -> Verdict {
        let bytes = Value::Object(arguments.clone()).to_string().len();
        if bytes > MOST_BYTES {
            return Verdict::Ask(format!(
                "the arguments take {bytes} bytes, too much for the condition `{}`",
                self.text
            ));
        }
        match quietly(|| self.evaluate(arguments, tainted)) {
            Some(Ok(Cel::Bool(false))) => Verdict::Go,
            Some(Ok(Cel::Bool(true))) => Verdict::Ask(format!("`{}` holds", self.text)),
            Some(Ok(_)) => self.unclear("it is neither true nor false"),
            Some(Err(why)) => self.unclear(&why),
            None => self.unclear("it cannot be evaluated"),
        }
    }

    fn evaluate(&self, arguments: &Map<String, Value>, tainted: bool) -> Result<Cel, String> {
        let mut context = Context::default();
        for (name, value) in arguments {
            context.add_variable_from_value(name.as_str(), value_of(value));
        }
        context.add_variable_from_value(ARGS, map_of(arguments));
        context.add_variable_from_value(TAINTED, tainted);
        self.program.execute(&context).map_err(|error| short(&error.to_string()))
    }

    fn unclear(&self, why: &str) -> Verdict {
        Verdict::Ask(format!("the condition `{}` cannot be decided: {why}", self.text))
    }
}

/// The library is trusted to be right, not never to panic.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// The library reads by recursion, so that a short text may take a large stack.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(ROOM).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// Reads an expression and looks at all of it; what is too deep also goes where there is room.
fn compile(text: &str, names: &[&str]) -> Result<Program, BadRule> {
    let program = Program::compile(text).map_err(|errors| no_expression(&errors.to_string()))?;
    if height(program.expression()) > MOST_NESTED {
        let found = format!("more than {MOST_NESTED} parts within each other or in a row");
        return Err(bad(found, "write a shorter condition"));
    }
    let mut parts = Parts::default();
    if parts.add(program.expression()) > 1 {
        let found = "what goes over a list within what goes over a list";
        return Err(bad(found, "write `exists`, `all`, `map` or `filter` side by side"));
    }
    known(&parts, names.iter().copied())?;
    Ok(program)
}

/// How many parts lie within each other.
fn height(expression: &IdedExpr) -> usize {
    children(&expression.expr).into_iter().map(height).max().unwrap_or(0).saturating_add(1)
}

fn children(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => Vec::new(),
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|one| entry(&one.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(made) => made.entries.iter().flat_map(|one| entry(&one.expr)).collect(),
    }
}

fn bad(found: impl Into<String>, fix: impl Into<String>) -> BadRule {
    BadRule { found: found.into(), fix: fix.into() }
}

fn no_expression(why: &str) -> BadRule {
    let fix = "write a condition over the arguments, such as `amount > 100`";
    bad(format!("no expression in CEL ({})", short(why)), fix)
}

/// One line of at most 200 characters.
fn short(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

/// What an expression is made of.
#[derive(Debug, Default)]
struct Parts<'e> {
    /// Names that are bound by a loop around.
    bound: Vec<&'e str>,
    /// Names that are bound by nothing.
    free: BTreeSet<&'e str>,
    functions: BTreeSet<&'e str>,
}

/// Functions that CEL has without its extensions, besides its operators.
const FUNCTIONS: [&str; 14] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "endsWith",
    "has",
    "int",
    "max",
    "min",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

/// Every name in it is one of a parameter, or of a function.
fn known<'p>(parts: &Parts<'_>, parameters: impl Iterator<Item = &'p str>) -> Result<(), BadRule> {
    let mut names: BTreeSet<&str> = parameters.collect();
    names.extend([ARGS, TAINTED]);
    if let Some(name) = parts.free.iter().find(|name| !names.contains(*name)) {
        return Err(unknown(name, "parameter", &names));
    }
    let is_word = |name: &&&str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    let functions = BTreeSet::from(FUNCTIONS);
    match parts.functions.iter().filter(is_word).find(|name| !functions.contains(**name)) {
        Some(name) => Err(unknown(name, "function", &functions)),
        None => Ok(()),
    }
}

fn unknown(name: &str, what: &str, names: &BTreeSet<&str>) -> BadRule {
    let all: Vec<&str> = names.iter().copied().collect();
    let fix = argument_check::nearest(name, all.iter().copied()).map_or_else(
        || format!("the {what}s are {}", all.join(", ")),
        |meant| format!("write `{meant}`"),
    );
    bad(format!("`{name}`, which is no {what}"), fix)
}

impl<'e> Parts<'e> {
    /// Adds what the expression names; answers how many loops lie within each other.
    fn add(&mut self, expression: &'e IdedExpr) -> usize {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => 0,
            Expr::Ident(name) => {
                if !self.bound.contains(&name.as_str()) {
                    self.free.insert(name);
                }
                0
            }
            Expr::Comprehension(each) => self.add_loop(each),
            inner @ (Expr::Call(_)
            | Expr::List(_)
            | Expr::Map(_)
            | Expr::Select(_)
            | Expr::Struct(_)) => {
                if let Expr::Call(call) = inner {
                    self.functions.insert(&call.func_name);
                }
                self.deepest(children(inner).into_iter())
            }
        }
    }

    fn add_loop(&mut self, each: &'e ComprehensionExpr) -> usize {
        let over = self.add(&each.iter_range);
        let names = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
        let before = self.bound.len();
        self.bound.extend(names.into_iter().flatten().map(String::as_str));
        let within = [&each.accu_init, &each.loop_cond, &each.loop_step, &each.result];
        let inner = self.deepest(within.into_iter());
        self.bound.truncate(before);
        inner.saturating_add(1).max(over)
    }

    fn deepest(&mut self, parts: impl Iterator<Item = &'e IdedExpr>) -> usize {
        parts.map(|part| self.add(part)).max().unwrap_or(0)
    }
}

fn entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

fn map_of(object: &Map<String, Value>) -> Cel {
    let entries = object.iter().map(|(name, value)| (Key::from(name.as_str()), value_of(value)));
    Cel::Map(CelMap { map: Arc::new(entries.collect::<HashMap<Key, Cel>>()) })
}

/// A JSON value; whole numbers are `int`, as the literals of an expression are.
fn value_of(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => number.as_i64().map_or_else(
            || number.as_u64().map_or(Cel::Float(number.as_f64().unwrap_or(f64::NAN)), Cel::UInt),
            Cel::Int,
        ),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(value_of).collect())),
        Value::Object(object) => map_of(object),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 4] = ["amount", "to", "tags", "deep"];

    fn rule(text: &str) -> Result<ApprovalRule, BadRule> {
        ApprovalRule::parse(text, NAMES.into_iter())
    }

    fn judge(text: &str, arguments: Value) -> Verdict {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        rule(text).unwrap().judge(&arguments, false)
    }

    fn asks(text: &str, arguments: Value) -> bool {
        judge(text, arguments) != Verdict::Go
    }

    #[test]
    fn a_condition_over_arguments_decides() {
        for (text, arguments, expected) in [
            ("amount > 100", json!({"amount": 101}), true),
            ("amount > 100", json!({"amount": 100}), false),
            ("amount > 100.5", json!({"amount": 100.75}), true),
            (
                "amount >= 100 && to.endsWith('.example')",
                json!({"amount": 100, "to": "a.com"}),
                false,
            ),
            ("!(to in ['a', 'b'])", json!({"to": "c"}), true),
            ("tags.exists(t, t == 'prod')", json!({"tags": ["dev", "prod"]}), true),
            ("deep.a.b == 1", json!({"deep": {"a": {"b": 1}}}), true),
            ("has(args.amount) && args.amount > 1", json!({}), false),
            ("size(to) > 3", json!({"to": "\u{1f600}bcd"}), true),
            (
                "amount > 9223372036854775807",
                json!({"amount": 18_446_744_073_709_551_615_u64}),
                true,
            ),
            ("tainted", json!({}), false),
            ("true", json!({}), true),
        ] {
            assert_eq!(asks(text, arguments), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_decided_asks_and_says_why() {
        for (text, arguments) in [
            ("amount > 100", json!({})),
            ("amount > 100", json!({"amount": "many"})),
            ("amount", json!({"amount": 5})),
            ("1 / amount > 1", json!({"amount": 0})),
            ("tags[9] == 'x'", json!({"tags": []})),
        ] {
            let Verdict::Ask(why) = judge(text, arguments) else { panic!("{text} asks nobody") };
            assert!(why.contains(text) && why.contains("cannot be decided"), "{why}");
        }
        let large = json!({"to": "x".repeat(MOST_BYTES)});
        assert!(matches!(judge("false", large), Verdict::Ask(why) if why.contains("too much")));
    }

    #[test]
    fn a_bad_expression_is_told_with_its_fix() {
        for (text, found, fix) in [
            ("amount >", "no expression in CEL", "write a condition"),
            ("amuont > 1", "`amuont`, which is no parameter", "write `amount`"),
            ("zzz", "`zzz`, which is no parameter", "the parameters are amount, args"),
            ("tags.exist(t)", "`t`, which is no parameter", "the parameters"),
            ("to.endswith(to)", "`endswith`, which is no function", "write `endsWith`"),
            ("tags.all(a, tags.all(b, a == b))", "within what goes over a list", "side by side"),
        ] {
            let error = rule(text).unwrap_err();
            assert!(error.found.contains(found) && error.fix.contains(fix), "{error}");
        }
        for text in ["(", "!", "-", "[", "{1:", "true ? true : ", "1 + ", "f(", "!("] {
            for times in [1, 5, 12, 13, 400] {
                assert!(rule(&text.repeat(times)).is_err(), "{text} {times}");
            }
        }
    }

    #[test]
    fn the_longest_chains_are_read_and_decided() {
        for text in ["amount+", "true&&", "to.", "1<2&&", "amount*", "'a'+"] {
            let times = (LONGEST - 8) / text.len();
            let chain = format!("{}amount", text.repeat(times));
            if let Ok(rule) = rule(&chain) {
                drop(rule.judge(json!({"amount": 1, "to": {}}).as_object().unwrap(), false));
            }
        }
        let deep = format!("{}amount > 1", "1 > 2 || ".repeat(20));
        assert!(asks(&deep, json!({"amount": 2})));
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(
            text in "[ -~]{0,60}|([(){}!?:.a1,&|<>=' +-]|amount|\\[|\\]){0,120}",
            amount in any::<i64>(),
        ) {
            if let Ok(rule) = rule(&text) {
                let arguments = json!({"amount": amount, "to": text, "tags": [1, "a"]});
                drop(rule.judge(arguments.as_object().unwrap(), true));
            }
        }

        #[test]
        fn the_condition_of_the_manual_is_exact(amount in any::<i32>()) {
            prop_assert_eq!(asks("amount > 100", json!({"amount": amount})), amount > 100);
        }
    }
}
