//! What a rehearsal names: tools, and groups of the user's words.

use definitions::problem::Report;
use definitions::yaml::{Kind, Node, Place};

use crate::script::{ArgumentPlace, Mention};
use crate::template::Template;

/// Every tool that a list of rules names, wherever it does.
pub(crate) fn of(rules: &Place<'_>) -> Vec<Mention> {
    let mut found = Vec::new();
    // Whether it is a list is told when the rules are read.
    let Kind::List(items) = &rules.node().kind else { return found };
    for (index, node) in items.iter().enumerate() {
        let rule = &rules.item(index, node);
        if let Some(node) = rule.node().get("when") {
            of_condition(&rule.child("when", node), &mut found);
        }
        for_items(rule, "calls", |call| of_call(call, &mut found));
    }
    found
}

fn of_condition(when: &Place<'_>, found: &mut Vec<Mention>) {
    for name in ["called", "not_called"] {
        for_items(when, name, |item| found.extend(of_text(item)));
        let alone = when.node().get(name).filter(|node| node.as_text().is_some());
        found.extend(alone.and_then(|node| of_text(&when.child(name, node))));
    }
    found.extend(when.node().get("tool").and_then(|node| of_text(&when.child("tool", node))));
    for name in ["times", "observed"] {
        let Some(node) = when.node().get(name) else { continue };
        let whole = when.child(name, node);
        found.extend(node.entries().iter().map(|entry| Mention {
            tool: entry.name.clone(),
            line: entry.name_at.0,
            column: entry.name_at.1,
            field: whole.child(&entry.name, &entry.node).field().to_owned(),
            arguments: None,
        }));
    }
}

fn of_call(call: &Place<'_>, found: &mut Vec<Mention>) {
    let Some(tool) = call.node().get("tool") else { return };
    let given = call.node().get("arguments").map(Node::entries).unwrap_or_default();
    let arguments = given.iter().map(|entry| ArgumentPlace {
        name: entry.name.clone(),
        line: entry.name_at.0,
        column: entry.name_at.1,
    });
    let mention = of_text(&call.child("tool", tool));
    found
        .extend(mention.map(|mention| Mention { arguments: Some(arguments.collect()), ..mention }));
}

fn of_text(place: &Place<'_>) -> Option<Mention> {
    Some(Mention {
        tool: place.node().as_text()?.to_owned(),
        line: place.node().line,
        column: place.node().column,
        field: place.field().to_owned(),
        arguments: None,
    })
}

fn for_items<'n>(place: &Place<'n>, name: &str, mut each: impl FnMut(&Place<'n>)) {
    let Some(node) = place.node().get(name) else { return };
    let whole = place.child(name, node);
    // Whether it is a list was told when the rule was read.
    let Kind::List(items) = &node.kind else { return };
    for (index, node) in items.iter().enumerate() {
        each(&whole.item(index, node));
    }
}

/// Tells every `{{user.name}}` of a rule that no group of its `user_matches` fills.
pub(crate) fn check_groups(rule: &Place<'_>, groups: &[String], report: &mut Report) {
    for name in ["say", "reasoning", "calls"] {
        if let Some(node) = rule.node().get(name) {
            check_node(&rule.child(name, node), groups, report);
        }
    }
}

fn check_node(place: &Place<'_>, groups: &[String], report: &mut Report) {
    if let Some(text) = place.node().as_text() {
        check_text(place, text, groups, report);
    }
    if let Kind::List(items) = &place.node().kind {
        for (index, node) in items.iter().enumerate() {
            check_node(&place.item(index, node), groups, report);
        }
    }
    for entry in place.node().entries() {
        check_node(&place.child(&entry.name, &entry.node), groups, report);
    }
}

fn check_text(place: &Place<'_>, text: &str, groups: &[String], report: &mut Report) {
    let Ok(template) = Template::parse(text) else { return };
    for group in template.user_groups().filter(|group| !groups.iter().any(|known| known == group)) {
        let known = groups.iter().map(|group| format!("user.{group}")).collect::<Vec<_>>();
        let fix = match argument_check::nearest(group, groups.iter().map(String::as_str)) {
            Some(meant) => format!("write `{{{{user.{meant}}}}}`"),
            None if groups.is_empty() => "add `user_matches: '(?P<name>…)'` to the rule".to_owned(),
            None => format!("name a group: `(?P<{group}>…)`"),
        };
        let expected = if known.is_empty() {
            "a group of the rule's `user_matches`, which it does not have".to_owned()
        } else {
            format!("a group of the rule's `user_matches`: {}", known.join(", "))
        };
        report.broken(place, expected, format!("`{{{{user.{group}}}}}`"), fix);
    }
}
