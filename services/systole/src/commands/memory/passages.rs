//! Documents cut into passages along their structure: headings and paragraphs of Markdown and HTML,
//! paragraphs of text, lines of JSON.

use std::path::Path;

use serde_json::Value;

/// Characters of a passage; a longer paragraph is cut between its sentences.
const LONGEST: usize = 1200;

/// A part of a document under its headings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The headings above it; `(no heading)` where there is none.
    pub(super) section: String,
    /// The words.
    pub(super) text: String,
}

/// The passages of a document, by what its name ends with; none where its form is not known.
pub(super) fn passages(name: &str, text: &str) -> Result<Option<Vec<Passage>>, String> {
    let form = Path::new(name).extension().and_then(|form| form.to_str()).unwrap_or("");
    match form.to_ascii_lowercase().as_str() {
        "md" | "markdown" => Ok(Some(markdown(text))),
        "txt" | "text" | "rst" | "adoc" | "" => Ok(Some(markdown_free(text))),
        "html" | "htm" => Ok(Some(markdown(&html_as_markdown(text)))),
        "jsonl" | "ndjson" => json_lines(text).map(Some),
        _ => Ok(None),
    }
}

/// Collects paragraphs under headings.
#[derive(Default)]
struct Cutter {
    headings: Vec<(usize, String)>,
    open: String,
    done: Vec<Passage>,
}

impl Cutter {
    fn heading(&mut self, level: usize, title: &str) {
        self.close();
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, title.trim().to_owned()));
    }

    fn section(&self) -> String {
        let titles: Vec<&str> = self.headings.iter().map(|(_, title)| title.as_str()).collect();
        if titles.is_empty() { "(no heading)".to_owned() } else { titles.join(" > ") }
    }

    fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if !self.open.is_empty() && self.open.len().saturating_add(text.len()) > LONGEST {
            self.close();
        }
        if !self.open.is_empty() {
            self.open.push_str("\n\n");
        }
        self.open.push_str(text);
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        let section = self.section();
        for text in pieces(&open) {
            self.done.push(Passage { section: section.clone(), text });
        }
    }

    fn end(mut self) -> Vec<Passage> {
        self.close();
        self.done
    }
}

/// A long text in pieces, cut behind a sentence, a line or a word where there is one.
fn pieces(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text.trim());
    while rest.len() > LONGEST {
        let head = rest.get(..rest.floor_char_boundary(LONGEST)).unwrap_or(rest);
        let ends = [". ", "\n", " "].iter().filter_map(|end| Some(head.rfind(end)? + end.len()));
        let cut = ends.into_iter().find(|at| *at > LONGEST / 2).unwrap_or(head.len());
        let (piece, left) = rest.split_at(cut);
        found.push(piece.trim().to_owned());
        rest = left.trim();
    }
    if !rest.is_empty() {
        found.push(rest.to_owned());
    }
    found
}

fn markdown(text: &str) -> Vec<Passage> {
    let mut cutter = Cutter::default();
    let (mut paragraph, mut in_code) = (String::new(), false);
    for line in text.lines() {
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            in_code = !in_code;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let title = line.get(level..).filter(|rest| rest.starts_with(' '));
        match title {
            Some(title) if !in_code && (1..=6).contains(&level) => {
                cutter.paragraph(&std::mem::take(&mut paragraph));
                cutter.heading(level, title);
            }
            _ if !in_code && line.trim().is_empty() => {
                cutter.paragraph(&std::mem::take(&mut paragraph));
            }
            _ => {
                paragraph.push_str(line);
                paragraph.push('\n');
            }
        }
    }
    cutter.paragraph(&paragraph);
    cutter.end()
}

fn markdown_free(text: &str) -> Vec<Passage> {
    let mut cutter = Cutter::default();
    let mut paragraph = String::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            cutter.paragraph(&std::mem::take(&mut paragraph));
        } else {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
    }
    cutter.paragraph(&paragraph);
    cutter.end()
}

/// Headings and paragraphs of HTML; scripts, styles and every other tag are left out.
fn html_as_markdown(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(&decoded(before));
        let Some(end) = from.find('>') else { break };
        let tag = from.get(1..end).unwrap_or("").to_ascii_lowercase();
        rest = from.get(end.saturating_add(1)..).unwrap_or("");
        let name: String =
            tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        let opens = !tag.starts_with('/');
        match name.as_str() {
            "script" | "style" | "head" | "noscript" if opens => {
                let close = format!("</{name}");
                let lower = rest.to_ascii_lowercase();
                rest = lower.find(&close).and_then(|at| rest.get(at..)).unwrap_or("");
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                out.push_str("\n\n");
                if opens {
                    out.extend(std::iter::repeat_n('#', level));
                    out.push(' ');
                }
            }
            "p" | "div" | "section" | "article" | "table" | "ul" | "ol" | "pre" => {
                out.push_str("\n\n");
            }
            "li" if opens => out.push_str("\n- "),
            "br" | "tr" => out.push('\n'),
            "td" | "th" => out.push(' '),
            _ => {}
        }
    }
    out.push_str(&decoded(rest.split('<').next().unwrap_or("")));
    out
}

fn decoded(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    pairs.iter().fold(text + " ", |text, (from, to)| text.replace(from, to))
}

/// One object a line, with `text` and, if it likes, `section` or `title`.
fn json_lines(text: &str) -> Result<Vec<Passage>, String> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = number.saturating_add(1);
        let wrong = |why: &str| format!("line {number}: {why}. Fix: write {{\"text\": \"…\"}}");
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
        let field = |name: &str| value.get(name).and_then(Value::as_str);
        let text = field("text").ok_or_else(|| wrong("there is no text in it"))?;
        let section = field("section").or_else(|| field("title"));
        let section = section.map_or_else(|| format!("line {number}"), str::to_owned);
        all.extend(pieces(text).into_iter().map(|text| Passage { section: section.clone(), text }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, text: &str) -> Vec<(String, String)> {
        let all = passages(name, text).unwrap().unwrap();
        all.into_iter().map(|Passage { section, text }| (section, text)).collect()
    }

    fn pair(section: &str, text: &str) -> (String, String) {
        (section.to_owned(), text.to_owned())
    }

    #[test]
    fn markdown_is_cut_along_its_headings_and_code_is_no_heading() {
        let text = "Intro.\n\n# Money\n\n## Refunds\nWithin 30 days.\n\nIn cash.\n\n```\n# no heading\n```\n# Else\nMore.";
        assert_eq!(
            told("a.md", text),
            [
                pair("(no heading)", "Intro."),
                pair("Money > Refunds", "Within 30 days.\n\nIn cash.\n\n```\n# no heading\n```"),
                pair("Else", "More."),
            ]
        );
    }

    #[test]
    fn html_loses_its_tags_and_scripts_and_keeps_its_headings() {
        let text = "<head><title>x</title></head><body><h1>Money</h1><p>Fees &amp; refunds<br>now</p>\
                    <script>if (a < b) {}</script><ul><li>one<li>two</ul></body>";
        assert_eq!(told("a.html", text), [pair("Money", "Fees & refunds \nnow\n\n- one \n- two")]);
    }

    #[test]
    fn lines_of_json_are_passages_and_a_wrong_one_is_told() {
        let text = "{\"text\": \"one\", \"title\": \"First\"}\n\n{\"text\": \"two\"}";
        assert_eq!(told("a.jsonl", text), [pair("First", "one"), pair("line 3", "two")]);
        let wrong = passages("a.jsonl", "{\"txt\": 1}").unwrap_err();
        assert!(wrong.starts_with("line 1: there is no text in it"), "{wrong}");
        assert_eq!(passages("a.exe", "x"), Ok(None));
    }

    #[test]
    fn a_long_paragraph_is_cut_between_sentences_and_nothing_is_lost() {
        let text = "A sentence of some length, as people write them. ".repeat(100);
        let all = told("a.txt", &text);
        assert!(all.len() > 3 && all.iter().all(|(_, text)| text.len() <= LONGEST));
        let joined: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(joined.join(" "), text.trim());
        let unbroken = told("a.txt", &"é".repeat(5000));
        assert_eq!(unbroken.iter().map(|(_, text)| text.chars().count()).sum::<usize>(), 5000);
    }
}
