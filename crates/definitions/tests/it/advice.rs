use definitions::lint::lint;
use expect_test::expect;

use crate::{lines, manifest};

#[test]
fn a_weak_manifest_gets_advice_on_each_weakness() {
    let text = r#"tools:
  - name: do_restart
    description: Does the restart.
    parameters:
      type: object
      properties:
        service: {}
        hosts: { type: array, description: The hosts. }
        options: { type: object, description: Options. }
        deep: { type: object, description: D., properties: { a: { type: object, description: D., properties: { b: { type: object, description: D., properties: { c: { type: object, description: D., properties: { d: { type: string } } } } } } } } }
    run: { command: ["./bin", "{service}", "--hosts", "{hosts}", "{ service }"] }
"#;
    let lines = lines(&lint(&manifest(text).unwrap()));
    expect![[r"
        tools.yaml:2: do_restart.description: is too vague to choose the tool by. Advice: say what it does, to what, and what it returns
        tools.yaml:2: do_restart.timeout_ms: is not stated, so an attempt ends after 3 seconds. Advice: add `timeout_ms`, twice what it takes on a bad day
        tools.yaml:2: do_restart.effect: is not stated, so it counts as irreversible. Advice: say `read_only`, `idempotent`, `checkable` or `irreversible`
        tools.yaml:2: do_restart.parameters.deep: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters.deep.a: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters.deep.a.b: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters.deep.a.b.c: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters.deep.a.b.c: are nested too deeply for a model to fill. Advice: flatten them
        tools.yaml:2: do_restart.parameters.hosts: is a list of anything. Advice: add `items: {type: string}` or what they are
        tools.yaml:2: do_restart.parameters.hosts: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters.options: is an object of anything; models guess its fields. Advice: list its properties
        tools.yaml:2: do_restart.parameters.service: has no description. Advice: say what to put there, with an example
        tools.yaml:2: do_restart.parameters.service: has no type, so anything fits. Advice: add `type: string` or what it is
        tools.yaml:2: do_restart.parameters.service: is optional without a default. Advice: add `default:`, or say in its description what happens without it
        tools.yaml:2: do_restart.parameters: accept fields that nobody knows. Advice: add `additionalProperties: false`, so that a slip of the pen is told
        tools.yaml:2: do_restart.run.hosts: is optional, so its flag may be left alone. Advice: write both in one element: `--name={name}`
        tools.yaml:2: do_restart.run: has `{ service }`, which stands for no argument. Advice: write `{name}` without blanks, if one is meant"]].assert_eq(&lines);
}

#[test]
fn the_files_of_the_fixtures_need_no_advice_but_where_it_is_due() {
    let weather = lint(&manifest(include_str!("../../fixtures/get_weather.yaml")).unwrap());
    assert_eq!(weather, []);
    let everything = lint(&manifest(include_str!("../../fixtures/everything.yaml")).unwrap());
    assert_eq!(everything, []);
}
