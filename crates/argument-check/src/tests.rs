use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn restart() -> Value {
    json!({
        "type": "object",
        "properties": {
            "service": { "type": "string", "pattern": "^[a-z0-9-]+$", "description": "The unit." },
            "mode": { "enum": ["graceful", "hard"] },
            "retries": { "type": "integer", "minimum": 0, "maximum": 5 },
            "target": {
                "type": "object",
                "properties": { "hosts": { "type": "array", "items": { "type": "string" }, "minItems": 1 } },
                "required": ["hosts"],
                "additionalProperties": false
            },
            "mail": { "type": "string", "format": "email" }
        },
        "required": ["service"],
        "additionalProperties": false
    })
}

fn check(arguments: Value, expected: &Expect) {
    let check = ArgumentCheck::new(&restart()).unwrap();
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let text = match check.check(&arguments) {
        Ok(()) => "fine".to_owned(),
        Err(problems) => describe(&problems),
    };
    expected.assert_eq(&text);
}

fn bad_schema(schema: &Value, expected: &Expect) {
    let error = ArgumentCheck::new(schema).unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_text_is_checked_as_one_json_value() {
    let check = ArgumentCheck::new(&restart()).unwrap();
    let of = |text: &str| check_json(&check, text.as_bytes());
    assert_eq!(of(" {\"service\": \"web\"}\n"), Ok(()));
    let broken = of("{\"service\": 7}").unwrap_err();
    assert!(broken.contains("`service`") && broken.contains("Fix:"), "{broken}");
    let no_json = of("all fine").unwrap_err();
    assert!(no_json.contains("not one JSON value"), "{no_json}");
}

#[test]
fn valid_arguments_pass() {
    let arguments =
        json!({"service": "web", "mode": "hard", "retries": 5, "target": {"hosts": ["a"]}});
    check(arguments, &expect![["fine"]]);
}

#[test]
fn a_missing_field_is_described_as_the_schema_describes_it() {
    check(
        json!({}),
        &expect!["`service` is required and missing. Fix: add `service` (string): The unit."],
    );
    check(
        json!({"service": "web", "target": {}}),
        &expect!["`target.hosts` is required and missing. Fix: add `hosts` (array)"],
    );
}

#[test]
fn every_problem_is_reported_at_once() {
    let arguments = json!({"sevice": "web", "mode": "gracefull", "retries": 9, "mail": "nobody"});
    check(
        arguments,
        &expect![[r#"
        `mail` must be in the format email. Fix: change the value "nobody"
        `mode` must be one of "graceful", "hard". Fix: send "graceful" instead of "gracefull"
        `retries` must be at most 5. Fix: change the value 9
        `service` is required and missing. Fix: add `service` (string): The unit.
        `sevice` is not a parameter. Fix: rename it to `service`"#]],
    );
}

#[test]
fn a_wrong_type_says_how_to_write_the_right_one() {
    check(
        json!({"service": 5, "retries": "3"}),
        &expect![[r#"
        `retries` must be an integer. Fix: send 3 without quotes
        `service` must be a string. Fix: put it in quotes: "5""#]],
    );
    check(
        json!({"service": "web", "target": {"hosts": "a"}}),
        &expect![[r#"`target.hosts` must be an array. Fix: put it in a list: ["a"]"#]],
    );
    check(
        json!({"service": "web", "target": {"hosts": ["a", null]}}),
        &expect!["`target.hosts[1]` must be a string. Fix: change the value null"],
    );
    check(
        json!({"service": "web", "retries": "many"}),
        &expect![[r#"`retries` must be an integer. Fix: change the value "many""#]],
    );
    check(
        json!({"service": "web", "target": {"hosts": []}}),
        &expect!["`target.hosts` must have at least 1 items. Fix: change the value []"],
    );
}

#[test]
fn a_pattern_is_shown() {
    check(
        json!({"service": "Web Server"}),
        &expect![[
            r#"`service` must match the pattern ^[a-z0-9-]+$. Fix: change the value "Web Server""#
        ]],
    );
}

#[test]
fn an_unexpected_field_without_a_likeness_names_the_known_ones() {
    check(
        json!({"service": "web", "colour": "red"}),
        &expect![
            "`colour` is not a parameter. Fix: leave it out; the parameters are mail, mode, retries, service, target"
        ],
    );
    check(
        json!({"service": "web", "target": {"hosts": ["a"], "host": 1}}),
        &expect!["`target.host` is not a parameter. Fix: rename it to `target.hosts`"],
    );
}

#[test]
fn a_flood_of_problems_is_cut_and_counted() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let check = ArgumentCheck::new(&schema).unwrap();
    let arguments = (0..100).map(|n| (format!("f{n:03}"), json!(n))).collect();
    let problems = check.check(&arguments).unwrap_err();
    assert_eq!(problems.len(), LISTED + 1);
    assert_eq!(
        problems[LISTED].to_string(),
        "`arguments` break 80 further rules. Fix: repair the ones above first"
    );
}

#[test]
fn a_long_value_is_cut() {
    let check = ArgumentCheck::new(&restart()).unwrap();
    let arguments = json!({"service": "Ä".repeat(100_000)});
    let problems = check.check_value(&arguments).unwrap_err();
    assert!(describe(&problems).len() < 1000);
}

#[test]
fn alternatives_are_named() {
    let schema = json!({
        "type": "object",
        "properties": { "at": { "anyOf": [{"type": "string"}, {"type": "integer"}] } }
    });
    let check = ArgumentCheck::new(&schema).unwrap();
    let problems = check.check_value(&json!({"at": true})).unwrap_err();
    expect!["`at` fits none of its alternatives (must be a string; must be an integer). Fix: change the value true"].assert_eq(&describe(&problems));
}

#[test]
fn a_schema_has_to_be_an_object_schema() {
    bad_schema(
        &json!("text"),
        &expect![
            "the schema must be a JSON Schema of type object. Fix: write `type: object` with `properties`"
        ],
    );
    bad_schema(
        &json!(true),
        &expect![
            "the schema must be a JSON Schema of type object. Fix: write `type: object` with `properties`"
        ],
    );
    bad_schema(
        &json!({"properties": {}}),
        &expect![
            "the schema needs `type: object`: arguments are one JSON object. Fix: write `type: object` with `properties`"
        ],
    );
    bad_schema(
        &json!({"type": "string"}),
        &expect![
            "/type must be `object`: arguments are one JSON object. Fix: write `type: object` with `properties`"
        ],
    );
}

#[test]
fn a_schema_that_breaks_its_draft_names_every_place() {
    let schema = json!({
        "type": "object",
        "properties": { "a": {"type": "strng"}, "b": {"minimum": "1"} },
        "required": "a"
    });
    bad_schema(
        &schema,
        &expect![[r#"
            /properties/a/type must be one of string, number, integer, boolean, array, object, null. Fix: write `string`
            /properties/b/minimum must be a number. Fix: change "1"
            /required must be an array. Fix: change "a""#]],
    );
}

#[test]
fn a_reference_out_of_the_schema_is_an_error_and_no_request() {
    let remote = "https://example.com/a.json";
    bad_schema(
        &json!({"type": "object", "properties": {"a": {"$ref": remote}}}),
        &expect![[
            r##"the schema has a reference that cannot be followed: Resource 'https://example.com/a.json' is not present in a registry and retrieving it failed: Retrieval is disabled, cannot fetch https://example.com/a.json. Fix: references stay inside the schema: write `$ref: "#/$defs/…"`, nothing is fetched"##
        ]],
    );
    bad_schema(
        &json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        &expect![[
            r##"the schema has a reference that cannot be followed: Resource 'file:///etc/passwd' is not present in a registry and retrieving it failed: Retrieval is disabled, cannot fetch file:///etc/passwd. Fix: references stay inside the schema: write `$ref: "#/$defs/…"`, nothing is fetched"##
        ]],
    );
    bad_schema(
        &json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}),
        &expect![[
            r##"the schema has a reference that cannot be followed: Pointer '/$defs/none' does not exist. Fix: references stay inside the schema: write `$ref: "#/$defs/…"`, nothing is fetched"##
        ]],
    );
    bad_schema(
        &json!({"$schema": "https://example.com/draft", "type": "object"}),
        &expect![[
            r##"the schema has a reference that cannot be followed: Unknown meta-schema: 'https://example.com/draft'. Custom meta-schemas must be registered in the registry before use. Fix: references stay inside the schema: write `$ref: "#/$defs/…"`, nothing is fetched"##
        ]],
    );
}

#[test]
fn a_reference_inside_the_schema_works() {
    let schema = json!({
        "type": "object",
        "properties": { "a": {"$ref": "#/$defs/word"} },
        "$defs": { "word": {"type": "string"} }
    });
    let check = ArgumentCheck::new(&schema).unwrap();
    assert_eq!(check.check_value(&json!({"a": "b"})), Ok(()));
    let problems = check.check_value(&json!({"a": 1})).unwrap_err();
    assert_eq!(describe(&problems), "`a` must be a string. Fix: put it in quotes: \"1\"");
}

#[test]
fn a_result_may_be_of_any_type() {
    let check =
        ArgumentCheck::of_any(&json!({"type": "array", "items": {"type": "integer"}})).unwrap();
    assert_eq!(check.check_value(&json!([1])), Ok(()));
    let problems = check.check_value(&json!(["1"])).unwrap_err();
    assert_eq!(describe(&problems), "`0` must be an integer. Fix: send 1 without quotes");
    let problems = check.check_value(&json!("1")).unwrap_err();
    assert_eq!(describe(&problems), "`arguments` must be an array. Fix: put it in a list: [\"1\"]");
}

#[test]
fn an_unreadable_pattern_is_a_bad_schema() {
    bad_schema(
        &json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
        &expect!["/properties/a/pattern must be in the format regex. Fix: change it"],
    );
}

#[test]
fn a_pattern_that_backtracks_for_ever_is_given_up() {
    let schema = json!({
        "type": "object",
        "properties": { "a": {"type": "string", "pattern": "^(?=(a+)+$)(a|aa)+(?<!b)$"} }
    });
    let check = ArgumentCheck::new(&schema).unwrap();
    let arguments = json!({"a": format!("{}!", "a".repeat(60))});
    assert!(check.check_value(&arguments).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/~ä]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                "(service|mode|retries|target|hosts|[a-z]{1,3})",
                inner,
                0..4
            )
            .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The text for people and the verdict never disagree.
    #[test]
    fn a_refusal_always_names_field_rule_and_fix(value in any_value()) {
        let schema = restart();
        let check = ArgumentCheck::new(&schema).unwrap();
        let verdict = check.check_value(&value);
        prop_assert_eq!(verdict.is_ok(), jsonschema::options().should_validate_formats(true).build(&schema).unwrap().is_valid(&value));
        for problem in verdict.err().into_iter().flatten() {
            prop_assert!(!problem.field.is_empty() && !problem.rule.is_empty() && !problem.fix.is_empty());
        }
    }
}
