//! Cancel and interrupt.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_cancel_before_the_first_turn_ends_the_run_before_it_starts() {
    check(
        "in a message look
         in b cancel
         in c message something else
         go
         state",
        &expect![[r#"
            cancel_unstarted: run 1 Stopped Cancelled, seen 2, 0 turns, 0 calls: "The run was cancelled before it started." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 3, seen 4 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn a_cancel_that_races_with_the_first_turn_is_not_lost() {
    check(
        "in a message look
         race in b cancel
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            seal_stopped: sealed Interrupted "" [observing]
            cancel_done: run 1 Stopped Cancelled, seen 2, 1 turns, 0 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_cancel_without_anything_to_cancel_does_nothing() {
    check(
        "in a cancel
         go
         in b message look
         go",
        &expect![[r#"
            at_rest: rest [terminating]
            new_run: turn 1.1 start 1 of main by p1 holding 2, seen 2 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_cancel_cuts_the_reply_whoever_owns_it() {
    check(
        "in a message look
         go
         call probe
         call restart
         planner p2
         kept I was
         in b cancel
         hints
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              [CancelCall { tool_call_id: ToolCallId("c00000001") }]
            seal_stopped: sealed Interrupted "I was"; c1 probe [acting]
            cancel_repeatable: close c1 cancelled Unknown [observing]
            cancel_done: run 1 Stopped Cancelled, seen 4, 1 turns, 1 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_cancel_bars_what_has_not_started_and_waits_for_what_has() {
    check(
        "in a message fix
         go
         call restart x=1
         call restart x=2
         call deploy x=3
         end
         go
         start c1 until=5
         in b cancel
         race start c3 until=9
         go
         state
         failed c1 cancelled stopped in time
         go
         wait 9
         tick
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart; c2 restart; c3 deploy [acting]
            complete_dispatch: dispatch c1 restart [acting]
            complete_dispatch: dispatch c2 restart [acting]
            complete_dispatch: dispatch c3 deploy [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            cancel_bar: bar c2 [acting]
            cancel_barred: close c2 cancelled NeverStarted [acting]
            arm: arm for 5 s [acting]
            wait: rest [acting]
              unread [], open ["c1", "c3"], notes [], late 0, stopping true
            arm: arm for 9 s [acting]
            wait: rest [acting]
            cancel_started: close c3 in_doubt Unknown [observing]
            cancel_done: run 1 Stopped Cancelled, seen 8, 1 turns, 3 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_started_call_without_a_word_is_in_doubt_and_its_late_result_is_told_in_the_next_run() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         start c1 until=5
         in b cancel
         go
         wait 5
         tick
         go
         obs c1 restarted
         go
         state
         in c message and?
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 5 s [acting]
            wait: rest [acting]
            cancel_started: close c1 in_doubt Unknown [observing]
            cancel_done: run 1 Stopped Cancelled, seen 6, 1 turns, 1 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
            at_rest: rest [terminating]
              unread [], open [], notes ["The outcome of restart (call c00000001), which was in doubt, is known: it succeeded. Its result: restarted"], late 1, stopping false
            new_run: turn 2.1 start 1 of main by p1 holding 11, seen 11 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 1, stopping false
        "#]],
    );
}

#[test]
fn a_late_result_of_a_barred_or_cancelled_call_changes_nothing() {
    check(
        "in a message look
         go
         call probe
         call restart
         end
         go
         in b cancel
         go
         obs c1 up
         go
         state
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe; c2 restart [acting]
            complete_dispatch: dispatch c2 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            cancel_repeatable: close c1 cancelled Unknown [acting]
            cancel_bar: bar c2 [acting]
            cancel_barred: close c2 cancelled NeverStarted [observing]
            cancel_done: run 1 Stopped Cancelled, seen 6, 1 turns, 2 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
            at_rest: rest [terminating]
              unread [], open [], notes [], late 1, stopping false
        "#]],
    );
}

#[test]
fn what_is_said_after_a_cancel_starts_the_next_run() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         start c1 until=5
         in b steer hurry
         in c cancel
         in d steer do this instead
         go
         obs c1 restarted
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 5 s [acting]
            wait: rest [acting]
            cancel_done: run 1 Stopped Cancelled, seen 7, 1 turns, 1 calls: "The run was cancelled." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 9, seen 10 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn an_interrupt_answers_open_calls_and_goes_on_with_its_words() {
    check(
        "in a message fix
         go
         call probe
         call restart
         end
         go
         in b interrupt no, only look
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe; c2 restart [acting]
            complete_dispatch: dispatch c2 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            cancel_repeatable: close c1 cancelled Unknown [acting]
            cancel_bar: bar c2 [acting]
            cancel_barred: close c2 cancelled NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 9 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn an_interrupt_waits_for_a_started_call() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         start c1 until=5
         in b interrupt stop that
         go
         obs c1 restarted
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 5 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 7, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn an_interrupt_of_a_run_that_spent_its_limits_starts_the_next_run() {
    check(
        "agent main max_turns=1
         in a message fix
         go
         say I
         kept I
         in b interrupt no
         owner working
         go
         state
         say fine
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            seal_stopped: sealed Interrupted "I" [observing]
            limit: run 1 Stopped MaxTurns, seen 2, 1 turns, 0 calls: "The run reached its turn limit." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 3, seen 5 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
              completed "fine" [evaluating]
            finish: run 2 Answered Answer, seen 7, 1 turns, 0 calls: "fine" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn an_interrupt_that_lands_as_the_run_ends_starts_the_next_run() {
    check(
        "in a message look
         go
         say done
         end
         race in b interrupt wait
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "done" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "done" [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 1, seen 5 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn an_interrupt_that_races_with_a_turn_cuts_it() {
    check(
        "in a message look
         race in b interrupt do that
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            seal_stopped: sealed Interrupted "" [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 1, seen 4 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}
