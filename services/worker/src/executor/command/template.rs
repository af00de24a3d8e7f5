//! From an argument-vector template and a call's arguments to the argument vector.
//!
//! [`definitions::template`] says how one element is filled. Here is what a value may not do:
//!
//! - It never becomes an option: a filled element that begins with `-` where the template's own
//!   text does not decide which option it is (`{name}`, `-{name}`, `--{name}`) is refused, unless
//!   an earlier element is `--`, behind which programs read no options. An element with more text
//!   before its value, such as `--zone={zone}` or `-n{count}`, takes any value.
//! - It never becomes the program.
//!
//! An element with an argument that is absent or null is left out. So `--zone={zone}` may be
//! optional, while `--zone` and `{zone}` as two elements may not.

use definitions::template::Template;
use serde_json::{Map, Value};

/// Fills the templates; the error says which element cannot be filled and what to do.
pub(in crate::executor) fn fill(
    argv: &[String],
    arguments: &Map<String, Value>,
) -> Result<Vec<String>, String> {
    let mut filled = Vec::with_capacity(argv.len());
    let mut options_over = false;
    for (index, element) in argv.iter().enumerate() {
        let template = Template::parse(element);
        if index == 0 && template.names().next().is_some() {
            return Err(format!("the program `{element}` of the tool's command must be fixed"));
        }
        if let Some(text) = template.fill(arguments) {
            check(element, &template, &text, options_over)?;
            filled.push(text);
        }
        options_over |= index > 0 && element == "--";
    }
    Ok(filled)
}

fn check(element: &str, template: &Template, text: &str, options_over: bool) -> Result<(), String> {
    if text.contains('\0') {
        return Err(format!("the value for `{element}` contains a zero byte: leave it out"));
    }
    if text.starts_with('-') && !options_over && is_open(template) {
        return Err(format!(
            "the value for `{element}` begins with `-` and would be read as an option: \
             use a value that does not, or let the tool's command have `--` before `{element}`"
        ));
    }
    Ok(())
}

/// Whether a value decides what kind of argument the element is: nothing but dashes before it.
fn is_open(template: &Template) -> bool {
    const HOLE: &str = "\0";
    let holes = template.names().map(|name| (name.to_owned(), Value::from(HOLE))).collect();
    let text = template.fill(&holes).unwrap_or_default();
    text.split_once(HOLE).is_some_and(|(before, _)| before.chars().all(|c| c == '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn filled(argv: &[&str], arguments: Value) -> Result<Vec<String>, String> {
        let argv: Vec<String> = argv.iter().map(|element| (*element).to_owned()).collect();
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        fill(&argv, &arguments)
    }

    fn ok(argv: &[&str], arguments: Value) -> Vec<String> {
        filled(argv, arguments).unwrap()
    }

    #[test]
    fn text_is_taken_as_it_is_and_never_split() {
        let text = "a b; rm -rf / $(x) 'y' \"z\" {other}\n";
        assert_eq!(ok(&["p", "{a}"], json!({"a": text})), ["p", text]);
    }

    #[test]
    fn other_values_are_compact_json() {
        let arguments = json!({"n": 3, "b": true, "l": [1, "x"], "o": {"k": null}});
        let expected = ["p", "3", "true", "[1,\"x\"]", "{\"k\":null}"];
        assert_eq!(ok(&["p", "{n}", "{b}", "{l}", "{o}"], arguments), expected);
    }

    #[test]
    fn several_arguments_fill_one_element() {
        let arguments = json!({"zone": "eu", "host": "h1"});
        assert_eq!(ok(&["p", "--at={zone}/{host}:"], arguments), ["p", "--at=eu/h1:"]);
    }

    #[test]
    fn an_element_with_an_absent_or_null_argument_is_left_out() {
        let argv = ["p", "{a}", "--b={b}", "{c}", "end"];
        assert_eq!(ok(&argv, json!({"c": "x", "b": null})), ["p", "x", "end"]);
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        for (element, value) in
            [("{a}", "-rf"), ("{a}", "--"), ("{a}.txt", "-x"), ("-{a}", "x"), ("--{a}", "x")]
        {
            let error = filled(&["p", element], json!({"a": value})).unwrap_err();
            let expected = format!(
                "the value for `{element}` begins with `-` and would be read as an option: use a \
                 value that does not, or let the tool's command have `--` before `{element}`"
            );
            assert_eq!(error, expected);
        }
        assert!(filled(&["p", "{n}"], json!({"n": -5})).is_err());
    }

    #[test]
    fn a_value_may_begin_with_a_dash_where_it_cannot_be_an_option() {
        assert_eq!(ok(&["p", "--", "{a}"], json!({"a": "-x"})), ["p", "--", "-x"]);
        assert_eq!(ok(&["p", "--n={a}"], json!({"a": "-x"})), ["p", "--n=-x"]);
        assert_eq!(ok(&["p", "-n{a}"], json!({"a": "-5"})), ["p", "-n-5"]);
    }

    #[test]
    fn the_program_is_fixed() {
        let error = filled(&["{a}"], json!({"a": "sh"})).unwrap_err();
        assert_eq!(error, "the program `{a}` of the tool's command must be fixed");
    }

    #[test]
    fn a_zero_byte_is_refused() {
        let error = filled(&["p", "x{a}"], json!({"a": "b\0"})).unwrap_err();
        assert_eq!(error, "the value for `x{a}` contains a zero byte: leave it out");
    }

    proptest! {
        #[test]
        fn no_value_adds_an_element_or_an_option(value in any::<String>(), other in any::<String>()) {
            let argv = ["p", "{a}", "{a}{b}", "{b}={a}"];
            if let Ok(filled) = filled(&argv, json!({"a": value, "b": other})) {
                prop_assert_eq!(filled.len(), 4);
                prop_assert!(filled.iter().all(|element| !element.starts_with('-')));
            }
        }
    }
}
