//! Dispatch, deadlines, results, late truth.

use expect_test::expect;

use crate::story::check;

#[test]
fn safe_calls_go_out_early_and_the_rest_when_the_reply_has_ended() {
    check(
        "in a message fix it
         go
         say looking
         call probe x=1
         call restart x=web
         call note
         end
         go
         obs c1 up
         go
         obs c3 noted
         go
         start c2 until=3
         obs c2 restarted
         go
         say all good
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              c3 note goes out early
              completed "looking"; c1 probe; c2 restart; c3 note [acting]
            complete_dispatch: dispatch c2 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 10, seen 10 [reasoning]
            reason: reason [reasoning]
              completed "all good" [evaluating]
            finish: run 1 Answered Answer, seen 12, 2 turns, 3 calls: "all good" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn all_goes_out_early_when_the_agent_says_so() {
    check(
        "agent main early=all
         in a message fix it
         go
         call restart
         call erase
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 restart goes out early
              completed ""; c1 restart; c2 erase awaits approval [acting]
            ask_approval: ask about c2 erase for 600 s [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn nothing_goes_out_early_when_the_agent_says_so() {
    check(
        "agent main early=off
         in a message fix it
         go
         call probe
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 probe [acting]
            complete_dispatch: dispatch c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn whoever_holds_the_delivery_next_dispatches_what_is_missing() {
    check(
        "in a message fix it
         go
         call restart x=1
         call restart x=2
         end
         step
         planner p2
         wake 1
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart; c2 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            complete_dispatch: dispatch c2 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_result_before_the_reply_has_ended_counts_and_wakes_nobody_else() {
    check(
        "in a message look
         go
         call probe
         planner p2
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
            not_mine: arm for 300 s [reasoning]
            not_mine: rest [reasoning]
        "#]],
    );
    check(
        "in a message look
         go
         call probe
         race obs c1 up
         obs c1 up
         owner working
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 4, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_result_that_comes_after_the_reply_starts_the_next_turn() {
    check(
        "in a message look
         go
         call probe
         end
         go
         planner p2
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p2 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn the_earliest_deadline_is_armed_before_the_delivery_is_let_go() {
    check(
        "in a message fix it
         go
         call probe
         wait 10
         call erase
         end
         go
         wait 1
         tick
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe; c2 erase awaits approval [acting]
            ask_approval: ask about c2 erase for 600 s [acting]
            arm: arm for 55 s [acting]
            wait: rest [acting]
            arm: arm for 54 s [acting]
            wait: rest [acting]
        "#]],
    );
    check(
        "in a message fix it
         go
         call probe
         call note
         end
         go
         obs c1 up
         armed others
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              c2 note goes out early
              completed ""; c1 probe; c2 note [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn an_overdue_call_is_closed_by_a_tick_and_a_result_afterwards_is_only_late() {
    check(
        "in a message look
         go
         call probe
         end
         go
         wait 65
         tick
         go
         obs c1 up
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            overdue_repeatable: close c1 timed_out [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 6 [reasoning]
            reason: reason [reasoning]
            owner_works: rest [reasoning]
              unread [], open [], notes [], late 1, stopping false
        "#]],
    );
}

#[test]
fn an_overdue_call_that_never_started_is_barred_first() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         wait 65
         tick
         go
         start c1 until=3",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            overdue_bar: bar c1 [acting]
            overdue_barred: close c1 unavailable NeverStarted [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 7 [reasoning]
            reason: reason [reasoning]
              (the start is refused)
        "#]],
    );
}

#[test]
fn a_lost_bar_means_that_the_call_started_and_is_waited_for() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         wait 65
         tick
         race start c1 until=9
         go
         wait 9
         tick
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
              (the bar is refused)
            overdue_bar: bar c1 [acting]
            arm: arm for 9 s [acting]
            wait: rest [acting]
            overdue_started: close c1 in_doubt Unknown [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 7, seen 8 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn the_late_outcome_of_a_doubtful_call_is_told_to_the_next_turn_and_wakes_nobody() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         start c1 until=3
         wait 65
         tick
         go
         say it may be up
         race obs c1 restarted
         obs c1 restarted
         end
         wake 5
         go
         state
         in b message well?
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            overdue_started: close c1 in_doubt Unknown [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 7 [reasoning]
            reason: reason [reasoning]
              completed "it may be up" [evaluating]
            finish: run 1 Answered Answer, seen 10, 2 turns, 1 calls: "it may be up" [terminating]
            at_rest: rest [terminating]
              unread [], open [], notes ["The outcome of restart (call c00000001), which was in doubt, is known: it succeeded. Its result: restarted"], late 1, stopping false
            new_run: turn 2.1 start 1 of main by p1 holding 13, seen 13 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 1, stopping false
        "#]],
    );
}

#[test]
fn doubt_is_told_once_however_often_the_outcome_comes() {
    check(
        "in a message fix
         go
         call restart
         end
         go
         start c1 until=3
         wait 65
         tick
         go
         obs c1 restarted
         obs c1 restarted
         failed c1 in_doubt no idea
         failed c1 tool_failed no
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 restart [acting]
            complete_dispatch: dispatch c1 restart [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            overdue_started: close c1 in_doubt Unknown [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 7 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes ["The outcome of restart (call c00000001), which was in doubt, is known: it succeeded. Its result: restarted"], late 3, stopping false
        "#]],
    );
}

#[test]
fn a_doubtful_result_of_a_worker_is_followed_by_its_truth() {
    check(
        "in a message fix
         go
         call deploy
         end
         go
         start c1 until=3
         failed c1 in_doubt cannot tell
         go
         obs c1 deployed
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 deploy [acting]
            complete_dispatch: dispatch c1 deploy [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 6, seen 6 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes ["The outcome of deploy (call c00000001), which was in doubt, is known: it succeeded. Its result: deployed"], late 1, stopping false
        "#]],
    );
}
