//! The rules, by what they are about. Each has an id, which `proto/PROTOCOL.md` refers to.

mod breaking;
mod calling;
mod claiming;
mod offering;
mod trying;

use anyhow::Result;
use futures_util::future::BoxFuture;

use crate::stage::Stage;

/// With whom a rule shares its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// With all others of this kind, side by side.
    Shared,
    /// The same, one after another when the others are over: it upsets them.
    Last,
    /// With none: it ends workers.
    Own,
    /// With none, and it starts its workers itself.
    Bare,
}

/// One rule.
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) says: &'static str,
    pub(crate) scene: Scene,
    pub(crate) check: for<'a> fn(&'a Stage) -> BoxFuture<'a, Result<()>>,
}

macro_rules! rules {
    ($($scene:ident $id:literal $module:ident::$name:ident: $says:literal,)*) => {
        /// All rules.
        pub(crate) const ALL: &[Rule] = &[
            $(Rule {
                id: $id,
                says: $says,
                scene: Scene::$scene,
                check: |stage| Box::pin($module::$name(stage)),
            },)*
        ];
    };
}

rules! {
    Shared "offer.contracts" offering::contracts: "the tools are on offer with their contracts",
    Shared "offer.renewed" offering::renewed: "an offer is renewed well before it fades",
    Shared "consumer.settings" offering::consumer: "a tool's consumer is made as agreed",
    Shared "call.observation" calling::observation: "a call has its one observation, complete, and is acknowledged after it",
    Shared "call.partitions" calling::partitions: "calls of every partition are served",
    Shared "call.unknown_fields" calling::unknown_fields: "fields that nobody knows are passed over",
    Shared "call.too_new" calling::too_new: "a call for newer readers is handed back untouched",
    Shared "call.unreadable" calling::unreadable: "what is no record is handed back until a planner has set it aside",
    Shared "call.arguments" calling::arguments: "arguments are checked here too, and the field is named",
    Shared "call.arguments_barred" calling::arguments_barred: "an invalid irreversible call is barred before it is answered",
    Shared "call.fingerprint" calling::fingerprint: "a call for another version of the tool is not started",
    Shared "call.start_by" calling::start_by: "nothing starts after its latest start",
    Shared "call.already_answered" calling::already_answered: "a late call that has an observation gets no other",
    Shared "call.already_closed" calling::already_closed: "a late call that a planner has closed is not started",
    Shared "call.artifact" calling::artifact: "a large result is shortened, and its whole is an artifact",
    Shared "call.frozen" calling::frozen: "what an operator holds back does not start",
    Shared "start.precedes" claiming::precedes: "an irreversible call has a fenced start record before its effect",
    Shared "start.barred" claiming::barred: "a call that is barred never starts",
    Shared "start.lost_race" claiming::lost_race: "of two that claim a call one begins: nothing happens behind a record that came first",
    Shared "start.foreign" claiming::foreign: "the start of another worker is waited out, then the call is in doubt",
    Shared "start.foreign_effect" claiming::foreign_effect: "a checkable call whose effect is there is reported done",
    Shared "start.foreign_nothing" claiming::foreign_nothing: "a checkable call without its effect is tried again behind the first start",
    Shared "start.used_up" claiming::used_up: "no attempt is made beyond those that the call allows",
    Shared "try.heartbeat" trying::heartbeat: "a call that takes longer than the ack wait is kept alive and not run twice",
    Shared "try.again" trying::again: "a repeatable call is tried again when the failure may pass",
    Shared "try.not_again" trying::not_again: "a failure that will not pass is not tried again",
    Shared "try.same_key" trying::same_key: "every attempt has the same idempotency key",
    Shared "try.limit" trying::limit: "an attempt is ended at its limit",
    Shared "try.limit_in_doubt" trying::limit_in_doubt: "an irreversible call that was ended at its limit is in doubt",
    Shared "try.crash_in_doubt" trying::crash_in_doubt: "an irreversible tool that breaks down leaves the call in doubt and is not tried again",
    Shared "try.nothing_began" trying::nothing_began: "a tool that proves that nothing began is told apart",
    Shared "cancel.running" trying::cancel: "a cancelled call is stopped and answered with a receipt",
    Shared "cancel.irreversible" trying::cancel_irreversible: "a cancelled irreversible call does not claim that nothing happened",
    Shared "again.while_running" breaking::twice_at_once: "a second delivery of a call under way changes nothing",
    Last "again.history" breaking::history: "history that is delivered once more repeats no effect and alters no answer",
    Last "consumer.recreated" breaking::recreated: "a consumer that is gone is made again, and calls are served",
    Last "log.secrets" breaking::secrets: "no password and no argument is in what the worker prints",
    Own "death.irreversible" breaking::death_irreversible: "a worker dies in an irreversible call: another says in doubt and repeats nothing",
    Own "death.read_only" breaking::death_read_only: "a worker dies in a call that may be repeated: another runs it",
    Own "bus.restarted" breaking::restarted: "a server that was away for a moment loses no call, and is served again",
    Own "stop.drains" breaking::drains: "SIGTERM: no new call, what is under way is ended, the offer is withdrawn, exit code 0",
    Bare "claim.answer_lost" breaking::answer_lost: "a claim whose answer is lost is repeated identically and begins once",
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::tools::TOOLS;

    const PROTOCOL: &str = include_str!("../../../../proto/PROTOCOL.md");
    const WRONG: &str = include_str!("../../wrong/wrong.py");

    #[test]
    fn every_rule_is_in_the_protocol_and_has_a_worker_that_breaks_it() {
        for rule in ALL {
            let group = rule.id.split('.').next().unwrap();
            let is_said = [format!("`{}`", rule.id), format!("`{group}.*`")];
            assert!(is_said.iter().any(|id| PROTOCOL.contains(id)), "PROTOCOL.md: {}", rule.id);
            assert!(WRONG.contains(&format!("\"{}\": ", rule.id)), "wrong.py: {}", rule.id);
        }
    }

    #[test]
    fn every_tool_is_in_the_protocol_as_it_is_asked_for() {
        for tool in &TOOLS {
            let line = PROTOCOL.lines().find(|line| line.contains(&format!("`{}` |", tool.name)));
            let line = line.unwrap_or_else(|| panic!("{} is missing", tool.name));
            let limits = format!("{}, {}", tool.timeout_ms, tool.max_attempts);
            assert!(line.contains(tool.effect.as_str()) && line.contains(&limits), "{line}");
        }
    }
}
