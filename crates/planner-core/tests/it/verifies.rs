//! Answers that are verified before they are given.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_draft_is_questioned_checked_with_tools_and_revised() {
    check(
        "agent main verify=chain
         in a message hi
         go
         say the disk is full
         end
         go
         say is the disk full?
         end
         go
         call probe x=disk
         end
         go
         obs c1 half empty
         go
         say it is half empty
         end
         go
         say the disk is half empty
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "the disk is full" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "is the disk full?" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.4 start 1 of main by p1 holding 9, seen 9, verify Check [reasoning]
            reason: reason [reasoning]
              completed "it is half empty" [evaluating]
            verify: turn 1.5 start 1 of main by p1 holding 9, seen 11, verify Revise [reasoning]
            reason: reason [reasoning]
              completed "the disk is half empty" [evaluating]
            finish: run 1 Answered Answer Revised { draft: "the disk is full" }, seen 13, 5 turns, 1 calls: "the disk is half empty" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_draft_that_holds_is_confirmed_in_the_contract_too() {
    check(
        "agent main verify=chain protocol=contract
         in a message hi
         go
         say four
         end confidence=0.95
         go
         say is it four?
         end
         go
         say yes
         end
         go
         say four
         end confidence=0.95
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "four" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "is it four?" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
              completed "yes" [evaluating]
            verify: turn 1.4 start 1 of main by p1 holding 1, seen 7, verify Revise [reasoning]
            reason: reason [reasoning]
              completed "four" [evaluating]
            finish: run 1 Answered Confident Confirmed, seen 9, 4 turns, 0 calls: "four" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_crash_between_its_steps_goes_on_with_the_same_step() {
    check(
        "agent main verify=chain
         in a message hi
         go
         say draft
         end
         planner p2
         wake 1
         go
         planner p3
         wake 1
         owner gone
         go
         say questions
         end
         planner p4
         wake 1
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p2 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.2 start 2 of main by p3 holding 1, seen 4, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            verify: turn 1.3 start 1 of main by p4 holding 1, seen 6, verify Check [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

/// The list of questions is no answer.
#[test]
fn a_verification_goes_on_though_the_agents_file_says_otherwise_by_now() {
    check(
        "agent main verify=chain
         in a message hi
         go
         say draft
         end
         go
         say questions
         end
         agent main
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_step_without_a_word_leaves_the_draft() {
    check(
        "agent main verify=chain
         in a message hi
         go
         say draft
         end
         go
         say questions
         end
         go
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
              completed "" [evaluating]
            finish: run 1 Answered Answer Unfinished { because: NothingNew }, seen 7, 3 turns, 0 calls: "draft" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_spent_budget_gives_the_draft_and_says_why() {
    check(
        "agent main verify=chain max_turns=3
         in a message hi
         go
         say draft
         end
         go
         say questions
         end
         go
         say findings
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
              completed "findings" [evaluating]
            limit: run 1 Answered Answer Unfinished { because: MaxTurns }, seen 7, 3 turns, 0 calls: "draft" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
    check(
        "agent main verify=chain max_turns=1
         in a message hi
         go
         say draft
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            finish: run 1 Answered Answer Unfinished { because: MaxTurns }, seen 3, 1 turns, 0 calls: "draft" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn only_the_last_answer_has_to_fit_the_schema() {
    check(
        "agent main verify=chain schema=yes
         in a message hi
         go
         say draft
         end
         go
         say questions
         end
         go
         say findings
         end
         go
         say no JSON
         end
         go
         evaluated breaks it is not JSON
         go
         say {}
         end
         go
         evaluated fits
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            verify: turn 1.3 start 1 of main by p1 holding 1, seen 5, verify Check [reasoning]
            reason: reason [reasoning]
              completed "findings" [evaluating]
            verify: turn 1.4 start 1 of main by p1 holding 1, seen 7, verify Revise [reasoning]
            reason: reason [reasoning]
              completed "no JSON" [evaluating]
            evaluate: evaluate [evaluating]
            repair: turn 1.5 start 1 of main by p1 holding 1, seen 9, verify Revise, note "The answer does not fit the output schema: it is not JSON. Answer again so that it fits." [reasoning]
            reason: reason [reasoning]
              completed "{}" [evaluating]
            evaluate: evaluate [evaluating]
            finish: run 1 Answered Answer Revised { draft: "draft" }, seen 11, 5 turns, 0 calls: "{}" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn new_words_of_the_user_begin_another_answer() {
    check(
        "agent main verify=chain
         in a message hi
         go
         say draft
         end
         go
         in b steer make it short
         say questions
         end
         go
         say short
         end
         go
         in c cancel
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "draft" [evaluating]
            verify: turn 1.2 start 1 of main by p1 holding 1, seen 3, verify Questions [reasoning]
            reason: reason [reasoning]
              completed "questions" [evaluating]
            next_turn: turn 1.3 start 1 of main by p1 holding 5, seen 6 [reasoning]
            reason: reason [reasoning]
              completed "short" [evaluating]
            verify: turn 1.4 start 1 of main by p1 holding 5, seen 8, verify Questions [reasoning]
            reason: reason [reasoning]
            seal_stopped: sealed Interrupted "" [observing]
            cancel_done: run 1 Stopped Cancelled, seen 10, 4 turns, 0 calls: "The run was cancelled." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}
