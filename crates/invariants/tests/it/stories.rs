//! One history per way to break a rule.

use expect_test::{Expect, expect};
use invariants::{check_at_rest, check_left};

use crate::history::history;

fn check(words: &str, expected: &Expect) {
    let found: Vec<String> =
        check_at_rest(&history(words)).iter().map(ToString::to_string).collect();
    expected.assert_eq(&found.join("\n"));
}

fn holds(words: &str) {
    check(words, &expect![[""]]);
}

#[test]
fn a_run_without_calls_keeps_every_rule() {
    holds("msg turn end finish");
}

#[test]
fn a_run_with_early_and_late_calls_keeps_every_rule() {
    holds("msg turn call:a obs:a end:a,b call:b go:b obs:b turn end finish");
}

#[test]
fn an_approved_call_a_denied_one_and_an_answered_one_keep_every_rule() {
    holds("msg turn end:a?,b?,c! call:a:approved=yes close:b obs:a turn end finish");
}

#[test]
fn a_barred_call_that_is_closed_keeps_every_rule() {
    holds("msg turn end:a call:a:effect=irreversible bar:a close:a turn end finish");
}

#[test]
fn a_late_result_keeps_every_rule() {
    holds("msg turn end:a call:a close:a turn end finish obs:a");
}

#[test]
fn a_repeated_result_keeps_every_rule() {
    holds("msg turn end:a call:a obs:a obs:a turn end finish");
}

#[test]
fn a_turn_that_is_started_three_times_keeps_every_rule() {
    holds("msg turn turn turn end finish");
}

#[test]
fn a_sealed_turn_keeps_every_rule() {
    holds("msg turn call:a seal:a obs:a turn end finish");
}

#[test]
fn a_sealed_turn_that_leaves_out_what_was_not_dispatched_keeps_every_rule() {
    holds("msg turn call:b:position=1 seal:b obs:b turn end finish");
}

#[test]
fn a_call_that_is_cancelled_instead_of_dispatched_keeps_every_rule() {
    holds("msg turn end:a cancel close:a stop");
}

#[test]
fn a_queued_message_that_starts_the_next_run_keeps_every_rule() {
    holds("msg turn msg end finish turn end finish");
}

#[test]
fn a_steer_that_ends_with_a_stopped_run_keeps_every_rule() {
    holds("msg turn steer cancel stop");
}

#[test]
fn a_repeated_key_is_the_same_input() {
    holds("msg:key=k turn end finish msg:key=k");
}

#[test]
fn a_sequence_that_comes_again_is_reported() {
    check(
        "msg turn end:at=2:started=2 finish",
        &expect!["sequences_increase at 2: it follows sequence 2"],
    );
}

#[test]
fn an_observation_of_a_call_that_nobody_dispatched_is_reported() {
    check(
        "msg turn end obs:a finish",
        &expect!["one_observation at 4: an observation of 00000000a, which was never dispatched"],
    );
}

#[test]
fn closing_a_call_that_nobody_asked_for_is_reported() {
    check(
        "msg turn end close:a finish",
        &expect!["one_observation at 4: 00000000a is closed, nobody asked for it"],
    );
}

#[test]
fn closing_a_call_twice_is_reported() {
    check(
        "msg turn end:a call:a close:a close:a finish",
        &expect!["one_observation at 6: a planner answered 00000000a before"],
    );
}

#[test]
fn a_call_of_a_finished_run_that_stays_open_is_reported() {
    check(
        "msg turn end:a call:a finish",
        &expect!["one_observation at 5: 00000000a of turn 1 of run 1 is open for ever"],
    );
}

#[test]
fn a_second_dispatch_is_reported() {
    check(
        "msg turn end:a call:a call:a obs:a finish",
        &expect!["no_double_dispatch at 5: 00000000a was dispatched at 4"],
    );
}

#[test]
fn a_turn_that_forgets_an_early_call_is_reported() {
    check(
        "msg turn call:a end obs:a finish",
        &expect!["calls_are_named at 4: 00000000a, dispatched at 3, is missing"],
    );
}

#[test]
fn a_sealed_turn_that_drops_a_call_is_reported() {
    check(
        "msg turn call:a call:b seal:a obs:a obs:b finish",
        &expect!["calls_are_named at 5: 00000000b, dispatched at 4, is missing"],
    );
}

#[test]
fn a_sealed_turn_that_invents_a_call_is_reported() {
    check(
        "msg turn seal:a close:a finish",
        &expect!["calls_are_named at 3: 00000000a is sealed and was never dispatched"],
    );
}

#[test]
fn a_call_that_its_turn_does_not_name_is_reported() {
    check(
        "msg turn end call:a obs:a finish",
        &expect!["calls_are_named at 4: 00000000a: no open or ended turn 1 of run 1 asks for it"],
    );
}

#[test]
fn an_early_call_that_changes_its_place_is_reported() {
    check(
        "msg turn call:a call:b end:b,a obs:a obs:b finish",
        &expect![[r"
            calls_are_named at 5: 00000000b differs from its record at 4
            calls_are_named at 5: 00000000a differs from its record at 3"]],
    );
}

#[test]
fn a_run_that_ends_over_an_early_call_is_reported() {
    check(
        "msg turn call:a obs:a stop",
        &expect!["calls_are_named at 5: turn 1 of run 1 is open and a call of it was dispatched"],
    );
}

#[test]
fn a_named_call_that_is_forgotten_is_reported() {
    check(
        "msg turn end:a,b call:a obs:a turn end finish",
        &expect![[r"
            named_calls_are_dispatched at 6: 00000000b was neither dispatched nor answered
            transcript_is_valid at 6: 00000000b is still open
            one_observation at 8: 00000000b of turn 1 of run 1 is open for ever"]],
    );
}

#[test]
fn an_id_that_is_used_in_two_turns_is_reported() {
    check(
        "msg turn end:a call:a obs:a turn end:a finish",
        &expect!["ids_are_unique at 7: 00000000a belongs to turn 1 of run 1"],
    );
}

#[test]
fn a_dispatch_that_nobody_approved_is_reported() {
    check(
        "msg turn end:a? call:a obs:a finish",
        &expect!["approval_binds_arguments at 4: 00000000a: nobody agreed"],
    );
}

#[test]
fn an_approval_of_other_arguments_is_reported() {
    check(
        "msg turn end:a? call:a:approved=other obs:a finish",
        &expect!["approval_binds_arguments at 4: 00000000a: other arguments"],
    );
}

#[test]
fn a_second_start_of_an_irreversible_call_is_reported() {
    check(
        "msg turn end:a call:a:effect=irreversible go:a go:a:attempt=2 obs:a finish",
        &expect!["no_second_start at 6: 00000000a is irreversible and had started"],
    );
}

#[test]
fn a_start_after_the_bar_is_reported() {
    check(
        "msg turn end:a call:a:effect=checkable bar:a go:a close:a finish",
        &expect!["bar_is_final at 6: the call was barred before"],
    );
}

/// A checkpoint purges what the one before it stands for.
#[test]
fn a_bar_is_renewed_after_two_checkpoints_and_not_before() {
    let began = "msg turn end:a call:a:effect=irreversible bar:a close:a turn end finish";
    holds(&format!("{began} keep keep bar:a"));
    let before = expect!["bar_is_final at 11: the call was barred before"];
    check(&format!("{began} keep bar:a"), &before);
    let start = expect![[r"
        bar_is_final at 12: the call was barred before
        no_start_after_answer at 12: 00000000a was answered and not barred"]];
    check(&format!("{began} keep keep go:a"), &start);
}

#[test]
fn attempts_out_of_order_are_reported() {
    check(
        "msg turn end:a call:a:effect=checkable go:a go:a:attempt=3 obs:a finish",
        &expect!["attempts_are_counted at 6: attempt 3 where 2 was next"],
    );
}

#[test]
fn a_start_without_a_call_is_reported() {
    check(
        "msg turn end go:a finish",
        &expect!["attempts_are_counted at 4: 00000000a was never dispatched"],
    );
}

#[test]
fn a_start_after_a_close_without_a_bar_is_reported() {
    check(
        "msg turn end:a call:a:effect=irreversible close:a go:a finish",
        &expect!["no_start_after_answer at 6: 00000000a was answered and not barred"],
    );
}

#[test]
fn a_turn_that_starts_while_another_is_open_is_reported() {
    check(
        "msg turn turn:turn=2 end finish",
        &expect!["turns_are_ordered at 3: turn 2 of run 1 starts while turn 1 of run 1 is open"],
    );
}

#[test]
fn an_answer_without_a_complete_reply_is_reported() {
    check(
        "msg turn finish",
        &expect!["turns_are_ordered at 3: an answer while turn 1 of run 1 is open"],
    );
}

#[test]
fn a_skipped_turn_number_is_reported() {
    check(
        "msg turn end turn:turn=3 end finish",
        &expect!["turns_are_ordered at 4: turn 3 of run 1 starts after turn 1"],
    );
}

#[test]
fn the_end_of_a_turn_that_is_not_open_is_reported() {
    check(
        "msg turn end end finish",
        &expect!["turns_are_ordered at 4: turn 1 of run 1 ends and is not open"],
    );
}

#[test]
fn the_end_of_a_superseded_start_is_reported() {
    check(
        "msg turn turn end:started=2 finish",
        &expect![
            "turns_are_ordered at 4: turn 1 of run 1 from 2 ends, turn 1 of run 1 from 3 is open"
        ],
    );
}

#[test]
fn a_fourth_start_is_reported() {
    check(
        "msg turn turn turn turn end finish",
        &expect!["turn_starts_are_bounded at 5: start 4 of turn 1 of run 1"],
    );
}

#[test]
fn a_start_again_after_a_dispatch_is_reported() {
    check(
        "msg turn call:a turn end:a obs:a finish",
        &expect![
            "turn_starts_are_bounded at 4: turn 1 of run 1 starts again, a call of it was dispatched"
        ],
    );
}

#[test]
fn a_second_run_beside_the_first_is_reported() {
    check(
        "msg turn end turn:run=2:turn=1 end stop:run=1",
        &expect![[r"
            one_active_run at 4: a turn of run 2, run 1 is next
            one_active_run at 5: the end of a turn of run 2, run 1 is next"]],
    );
}

#[test]
fn a_turn_after_the_end_of_its_run_is_reported() {
    check(
        "msg turn end finish turn:run=1:turn=2 end finish",
        &expect![[r"
            nothing_after_run_end at 5: a turn of run 1
            nothing_after_run_end at 6: the end of a turn of run 1
            nothing_after_run_end at 7: another end of run 1"]],
    );
}

#[test]
fn closing_and_dispatching_calls_of_a_finished_run_is_reported() {
    check(
        "msg turn end:a call:a stop close:a call:b:run=1 obs:b",
        &expect![[r"
            nothing_after_run_end at 6: 00000000a of turn 1 of run 1 is closed
            nothing_after_run_end at 7: 00000000b of turn 0 of run 1 is dispatched"]],
    );
}

#[test]
fn seen_that_shrinks_or_reaches_ahead_is_reported() {
    check(
        "msg turn end turn:seen=0 end turn:seen=6 end finish",
        &expect![[r"
            seen_advances at 4: 0 after 1
            seen_advances at 6: 6 does not lie before it"]],
    );
}

#[test]
fn a_turn_over_an_open_call_is_reported() {
    check(
        "msg turn end:a call:a turn obs:a end finish",
        &expect!["transcript_is_valid at 5: 00000000a is still open"],
    );
}

#[test]
fn a_turn_that_has_not_seen_an_observation_is_reported() {
    check(
        "msg turn end:a call:a obs:a turn:seen=4 end finish",
        &expect!["transcript_is_valid at 6: 00000000a was answered at 5, the turn has seen 4"],
    );
}

#[test]
fn a_message_that_no_turn_reads_is_reported() {
    check(
        "msg turn msg end finish",
        &expect!["inputs_are_answered at 3: no turn has read the input"],
    );
}

#[test]
fn a_queued_message_is_not_read_by_the_run_it_waits_for() {
    check(
        "msg turn msg end:a call:a obs:a turn end finish",
        &expect!["inputs_are_answered at 3: no turn has read the input"],
    );
}

#[test]
fn a_steer_that_an_answer_passes_over_is_reported() {
    check(
        "msg turn steer end finish",
        &expect!["inputs_are_answered at 3: no turn has read the input"],
    );
}

#[test]
fn a_steer_that_the_end_of_a_run_has_not_seen_is_reported() {
    check(
        "msg turn steer stop:seen=2",
        &expect!["inputs_are_answered at 3: no turn has read the input"],
    );
}

#[test]
fn a_run_that_never_ends_is_reported() {
    check("msg turn end", &expect!["every_run_ends at 3: run 1 is still active"]);
}

#[test]
fn what_was_decided_from_a_lost_tail_is_void_where_one_may_be_lost() {
    // The observation at 9 was lost, and the turn that had read it took the number 6.
    let words = "msg turn end:a call:a turn:seen=9 obs:a turn:turn=2:start=1:seen=6 end finish";
    assert!(check_at_rest(&history(words)).len() > 1, "elsewhere it is a planner's mistake");
    assert_eq!(check_left(&history(words), true), []);
    // Nothing else is forgiven.
    let double = "msg turn end:a call:a turn:seen=9 obs:a close:a close:a finish";
    assert!(!check_left(&history(double), true).is_empty());
}
