//! People are asked, agree, refuse, or say nothing.

use expect_test::expect;

use crate::story::check;

#[test]
fn an_agreed_call_goes_out_and_its_siblings_do_not_wait_for_it() {
    check(
        "in a message clean up
         go
         call erase x=1
         call probe
         end
         go
         obs c2 up
         go
         in b approve c1
         go
         in c deny c1
         go
         start c1 until=3
         obs c1 erased
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c2 probe goes out early
              completed ""; c1 erase awaits approval; c2 probe [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            approved: dispatch c1 erase, agreed by ann [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 11, seen 11 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_decision_about_other_arguments_decides_nothing() {
    check(
        "in a message clean up
         go
         call erase x=1
         end
         go
         in b approve c1 hash=other
         go
         in c deny c1 by=bob
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            denied: close c1 denied NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn silence_denies() {
    check(
        "in a message clean up
         go
         call erase x=1
         end
         go
         wait 600
         tick
         go
         in b approve c1
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            approval_expired: close c1 approval_expired NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 6 [reasoning]
            reason: reason [reasoning]
            owner_works: rest [reasoning]
        "#]],
    );
}

#[test]
fn an_approval_that_came_before_the_expiry_was_noticed_counts() {
    check(
        "in a message clean up
         go
         call erase
         end
         go
         in b approve c1
         wait 700
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            approved: dispatch c1 erase, agreed by ann [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn inputs_bring_approvals_along() {
    check(
        "in a message clean up approve=erase
         go
         call erase
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            pre_approved: dispatch c1 erase, agreed by pre-approved [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_steer_brings_its_approval_at_once_and_a_queued_message_does_not() {
    check(
        "in a message clean up
         go
         call erase
         end
         go
         in b message next approve=erase
         go
         in c steer yes approve=erase
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            pre_approved: dispatch c1 erase, agreed by pre-approved [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_refusal_counts_even_when_the_tool_is_approved_afterwards() {
    check(
        "in a message clean up
         go
         call erase
         end
         go
         in b deny c1
         in c steer fine approve=erase
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            denied: close c1 denied NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn untrusted_text_in_the_context_makes_a_tainted_tool_ask() {
    check(
        "in a message write
         go
         call mail x=1
         end
         go
         start c1 until=3
         obs c1 sent
         go
         call mail x=2
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 mail [acting]
            complete_dispatch: dispatch c1 mail [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 6 [reasoning]
            reason: reason [reasoning]
              completed ""; c2 mail awaits approval [acting]
            ask_approval: ask about c2 mail for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_cancel_answers_waiting_approvals() {
    check(
        "in a message clean up
         go
         call erase
         end
         go
         in b cancel
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            cancel_waiting: close c1 cancelled NeverStarted [observing]
            cancel_done: run 1 Stopped Cancelled, seen 5, 1 turns, 1 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_word_about_another_version_of_the_tool_decides_nothing() {
    check(
        "in a message clean up
         go
         call erase x=1
         end
         go
         in b approve c1 tool=other
         go
         in c approve c1
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            approved: dispatch c1 erase, agreed by ann [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_word_after_the_expiry_decides_nothing_even_before_it_is_noticed() {
    check(
        "in a message clean up
         go
         call erase x=1
         end
         go
         wait 601
         in b approve c1
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 erase awaits approval [acting]
            ask_approval: ask about c1 erase for 600 s [acting]
            arm: arm for 600 s [acting]
            wait: rest [acting]
            approval_expired: close c1 approval_expired NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 6 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_condition_over_the_arguments_asks_for_the_calls_it_holds_for_and_siblings_go_on() {
    check(
        "in a message clean up
         go
         call refund x=1
         call refund x=100
         call refund x=200
         end
         go
         in b deny c3
         go
         in c approve c2
         go
         in d approve c3
         in e approve c2
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 refund; c2 refund awaits approval; c3 refund awaits approval [acting]
            complete_dispatch: dispatch c1 refund [acting]
            ask_approval: ask about c2 refund for 600 s [acting]
            ask_approval: ask about c3 refund for 600 s [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            denied: close c3 denied NeverStarted [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            approved: dispatch c2 refund, agreed by ann [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}
