//! Whose turn it is, taking over, sealing, crash loops.

use expect_test::expect;

use crate::story::check;

#[test]
fn only_the_delivery_that_the_owner_held_may_take_a_turn_over() {
    check(
        "in a message look
         go
         call probe
         planner p2
         in b steer more
         go
         wake 1
         go
         owner working
         go
         owner gone
         kept half a word
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
            not_mine: arm for 65 s [reasoning]
            not_mine: rest [reasoning]
            ask_owner: ask p1 [reasoning]
            owner_works: hand back [reasoning]
            seal_lost: sealed OwnerLost "half a word"; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

/// A tick for a call that is overdue and that only the owner may close would come at once, for ever.
#[test]
fn an_overdue_call_of_somebody_elses_turn_waits_for_the_end_of_the_turn() {
    check(
        "in a message look
         go
         call probe
         planner p2
         in b steer more
         go
         wait 100
         tick
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
            not_mine: arm for 65 s [reasoning]
            not_mine: rest [reasoning]
            not_mine: arm for 200 s [reasoning]
            not_mine: rest [reasoning]
        "#]],
    );
}

#[test]
fn a_tick_takes_over_once_the_turn_is_overdue_and_not_before() {
    check(
        "in a message look
         go
         planner p2
         wait 200
         tick
         go
         wait 100
         tick
         go
         owner working
         go
         owner gone
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            not_mine: arm for 100 s [reasoning]
            not_mine: rest [reasoning]
            ask_owner: ask p1 [reasoning]
            owner_works: hand back [reasoning]
            start_again: turn 1.1 start 2 of main by p2 holding 4, seen 4 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn the_same_instance_leaves_a_running_turn_alone_and_takes_over_one_that_stopped() {
    check(
        "in a message look
         go
         wake 1
         owner working
         go
         in b steer more
         owner working
         go
         crash
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            owner_works: hand back [reasoning]
            owner_works: rest [reasoning]
            start_again: turn 1.1 start 2 of main by p1 holding 3, seen 3 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_restart_reads_what_came_meanwhile_except_messages_for_the_next_run() {
    check(
        "in a message look
         go
         in b message later
         in c steer now
         planner p2
         wake 1
         owner gone
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.1 start 2 of main by p2 holding 1, seen 4 [reasoning]
            reason: reason [reasoning]
              unread ["later"], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn three_starts_without_a_record_end_the_run() {
    check(
        "in a message look
         go
         crash
         go
         crash
         go
         in b steer is anybody there
         crash
         wake 1
         go
         say yes
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.1 start 2 of main by p1 holding 1, seen 2 [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.1 start 3 of main by p1 holding 1, seen 3 [reasoning]
            reason: reason [reasoning]
            crash_loop: run 1 Failed Error crash_loop, seen 4, 1 turns, 0 calls: "The run was given up: one of its turns was started three times and never ended." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 1, seen 6 [reasoning]
            reason: reason [reasoning]
              completed "yes" [evaluating]
            finish: run 2 Answered Answer, seen 8, 1 turns, 0 calls: "yes" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_planner_without_the_agents_file_seals_but_does_not_start_again() {
    check(
        "in a message look
         go
         agent main forgotten
         planner p2
         wake 1
         owner gone
         go
         wait 600
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            await_agent: hand back [reasoning]
            no_agent: run 1 Failed Error not_found, seen 2, 1 turns, 0 calls: "The run cannot go on: no planner knows the agent `main`." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
    check(
        "in a message look
         go
         call probe
         agent main forgotten
         planner p2
         wake 1
         owner gone
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
            seal_lost: sealed OwnerLost ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
        "#]],
    );
}

#[test]
fn a_broken_stream_is_asked_again_until_something_was_dispatched() {
    check(
        "in a message look
         go
         say I will
         break
         say I shall
         call restart
         call probe
         break
         go
         obs c2 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              (asked again)
              c2 probe goes out early
              sealed "I shall"; c2 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_sealed_reply_is_no_answer() {
    check(
        "in a message look
         go
         say the answer is
         kept the answer is
         in b interrupt no, do this
         owner working
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            seal_stopped: sealed Interrupted "the answer is" [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 3, seen 4 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_record_that_nobody_can_decode_is_parked_once_no_turn_is_open() {
    check(
        "poison
         in a message look
         go
         poison
         wake 2
         owner working
         go
         say done
         end
         go
         rest",
        &expect![[r#"
            park: park 1: not JSON [initializing]
            new_run: turn 1.1 start 1 of main by p1 holding 2, seen 3 [reasoning]
            reason: reason [reasoning]
            owner_works: hand back [reasoning]
              completed "done" [evaluating]
            park: park 5: not JSON [evaluating]
            finish: run 1 Answered Answer, seen 7, 1 turns, 0 calls: "done" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}
