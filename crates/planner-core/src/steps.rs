//! The four steps of a thought, as the prompt asks for them: told apart where the model keeps to them,
//! on lines of their own or in one paragraph.

/// The four steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// What was thought before them.
    pub before: String,
    /// Whether the goal is reached; absent when the words are neither yes nor no.
    pub done: Option<bool>,
    /// Why it is, or is not.
    pub why: String,
    /// Which facts are missing.
    pub missing: String,
    /// Which tool brings them, with which arguments.
    pub choice: String,
    /// Which calls are made now.
    pub plan: String,
}

/// What the prompt calls each step, and what models make of it; in small letters.
const LABELS: [&[&str]; 4] = [
    &["goal check", "goal reached", "goal", "done", "is the goal reached"],
    &["missing information", "missing info", "missing facts", "missing"],
    &["tool choice", "tool selection", "tool"],
    &["action plan", "plan", "action", "actions", "calls"],
];

const YES: [&str; 8] = ["yes", "reached", "done", "ja", "sí", "si", "oui", "是"];
const NO: [&str; 7] = ["no", "not", "nein", "non", "nicht", "否", "不"];
/// What may stand between the verdict and the reasons.
const PAUSES: [char; 8] = [',', '.', ':', ';', ' ', '—', '–', '，'];
/// The longest verdict that is a word of its own and not the beginning of a sentence.
const VERDICT: usize = 4;

/// Takes a thought apart. None unless it has at least the first two steps in their order, and is
/// known as such: by the name of the first, by its verdict, or by having all four. A list of
/// something else is no thought in steps.
pub fn read(thought: &str) -> Option<Steps> {
    let marks = marks(thought);
    let parts = parts(thought, &marks);
    let first = parts.first()?;
    let is_known = label(first, 0).is_some() || says(bare(first, 0)).is_some();
    if marks.len() < 2 || !(is_known || marks.len() == LABELS.len()) {
        return None;
    }
    let part = |number: usize| parts.get(number).map_or("", |part| bare(part, number));
    let before = marks.first().and_then(|first| thought.get(..first.at)).unwrap_or_default();
    let why = part(0);
    Some(Steps {
        before: before.trim().to_owned(),
        done: says(why),
        why: without_verdict(why).to_owned(),
        missing: part(1).to_owned(),
        choice: part(2).to_owned(),
        plan: part(3).to_owned(),
    })
}

/// Where a step begins, and where its words do.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    text: usize,
}

fn marks(thought: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for digit in ["1", "2", "3", "4"] {
        let from = marks.last().map_or(0, |last| last.text);
        let Some(mark) = next(thought, from, digit) else { break };
        marks.push(mark);
    }
    marks
}

/// The next place that looks like the beginning of the step with this number.
fn next(thought: &str, from: usize, digit: &str) -> Option<Mark> {
    let found = thought.get(from..)?.match_indices(digit);
    found.into_iter().find_map(|(at, _)| mark(thought, from.saturating_add(at), digit.len()))
}

/// Whether the number at `at` begins a step: it opens a line or follows a sentence, and a mark that
/// makes it no number of something else follows it.
fn mark(thought: &str, at: usize, width: usize) -> Option<Mark> {
    let (head, tail) = thought.split_at_checked(at)?;
    let behind = tail.get(width..)?;
    let sign = behind.chars().next().filter(|c| ".):、．：".contains(*c))?;
    let rest = behind.get(sign.len_utf8()..)?;
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let line = head.rsplit_once('\n').map_or(head, |(_, line)| line);
    let dress = line.trim_end().trim_end_matches("Step").trim_end_matches("step");
    let opens_line = dress.chars().all(|c| c.is_whitespace() || "#*->_".contains(c));
    let ends = head.trim_end().chars().next_back();
    let follows = head.ends_with(' ') && ends.is_some_and(|end| ".!?:;。".contains(end));
    let start = if opens_line { head.len().saturating_sub(line.len()) } else { at };
    let text = thought.len().saturating_sub(rest.len());
    (opens_line || follows).then_some(Mark { at: start, text })
}

fn parts<'t>(thought: &'t str, marks: &[Mark]) -> Vec<&'t str> {
    let ends = marks.iter().skip(1).map(|mark| mark.at).chain([thought.len()]);
    marks.iter().zip(ends).filter_map(|(mark, end)| thought.get(mark.text..end)).collect()
}

/// What stands behind the name of a step, if the text begins with it.
fn label(part: &str, number: usize) -> Option<&str> {
    let (name, rest) = undressed(part).split_once([':', '：', '?'])?;
    let name = undressed(name).to_lowercase();
    LABELS.get(number)?.contains(&name.as_str()).then(|| undressed(rest))
}

/// A step without its name.
fn bare(part: &str, number: usize) -> &str {
    label(part, number).unwrap_or_else(|| undressed(part))
}

fn undressed(text: &str) -> &str {
    text.trim().trim_matches(['*', '_']).trim()
}

/// The verdict at the beginning of the first step.
fn says(why: &str) -> Option<bool> {
    let text = why.to_lowercase();
    let word: String = text.chars().take_while(|c| c.is_alphabetic()).collect();
    // Where words are not parted the first character is one.
    let begins = |one: &str| word == one || (!one.is_ascii() && text.starts_with(one));
    if NO.iter().any(|one| begins(one)) {
        return Some(false);
    }
    YES.iter().any(|one| begins(one)).then_some(true)
}

/// The reasons without a verdict that is a word of its own.
fn without_verdict(why: &str) -> &str {
    let end = why.find(|c: char| !c.is_alphabetic()).unwrap_or(why.len());
    let Some((word, rest)) = why.split_at_checked(end) else { return why };
    let is_alone = rest.is_empty() || rest.starts_with(PAUSES) || rest.starts_with(" -");
    if says(why).is_none() || !is_alone || word.chars().count() > VERDICT {
        return why;
    }
    rest.trim_start_matches(PAUSES).trim_start_matches(['-', '*', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(done: Option<bool>, parts: [&str; 4]) -> Steps {
        let [why, missing, choice, plan] = parts.map(str::to_owned);
        Steps { before: String::new(), done, why, missing, choice, plan }
    }

    #[test]
    fn steps_on_lines_are_told_apart_however_they_are_dressed() {
        let choice = "read_log {\"lines\": 20}";
        let expected = steps(Some(false), ["it answers 503", "the log", choice, "read_log"]);
        for [one, two, three, four] in [
            [
                "1. Goal check: no, ",
                "2. Missing information: ",
                "3. Tool choice: ",
                "4. Action plan: ",
            ],
            ["1. No: ", "2. ", "3. ", "4. "],
            [
                "**1. Goal check:** No - ",
                "**2. Missing information:** ",
                "**3. Tool choice:** ",
                "**4. Plan:** ",
            ],
            ["Step 1: no. ", "Step 2: ", "Step 3: ", "Step 4: "],
            ["### 1) Goal reached? No, ", "### 2) Missing: ", "### 3) Tool: ", "### 4) Calls: "],
        ] {
            let thought =
                format!("{one}it answers 503\n{two}the log\n{three}{choice}\n{four}read_log");
            assert_eq!(read(&thought).as_ref(), Some(&expected), "{thought}");
        }
    }

    #[test]
    fn steps_in_one_paragraph_are_told_apart() {
        let paragraph = "1. Goal check: no, it answers 503. 2. Missing information: the log. \
                         3. Tool choice: read_log. 4. Action plan: read_log.";
        let parts = ["it answers 503.", "the log.", "read_log.", "read_log."];
        assert_eq!(read(paragraph), Some(steps(Some(false), parts)));
    }

    #[test]
    fn what_comes_before_is_kept_and_what_is_left_out_is_empty() {
        let thought = "Hm.\n1. Goal check: yes, it is up since 1.5 s\n2. Missing information: none";
        let parts = ["it is up since 1.5 s", "none", "", ""];
        let expected = Steps { before: "Hm.".into(), ..steps(Some(true), parts) };
        assert_eq!(read(thought), Some(expected));
        let chinese = "1. 否，503\n2. log\n3. read_log\n4. read_log";
        assert_eq!(read(chinese), Some(steps(Some(false), ["503", "log", "read_log", "read_log"])));
        let open = "1. Goal check: perhaps\n2. Missing: all";
        assert_eq!(read(open), Some(steps(None, ["perhaps", "all", "", ""])));
        let sentence = "1. Reached as far as I see\n2. none";
        let parts = ["Reached as far as I see", "none", "", ""];
        assert_eq!(read(sentence), Some(steps(Some(true), parts)));
    }

    #[test]
    fn other_lists_are_no_steps() {
        for thought in [
            "",
            "no list",
            "1. Goal check: no",
            "Buy:\n1. milk\n2. bread",
            "Version 1.2 and 2.3",
            "2. Missing information: the log\n1. Goal check: no",
        ] {
            assert_eq!(read(thought), None, "{thought}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        for thought in
            ["1.", "1.\n2.", "是1.是2.", "1、2.\n3)4:", "**1**. a\n**2**. b", "1.\n2)是\n3"]
        {
            drop(read(thought));
        }
    }
}
