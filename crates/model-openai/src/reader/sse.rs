//! Server-sent events over bytes. Segments may cut anything anywhere; only CR, LF and CRLF end a
//! line, and text is decoded a whole line at a time, so no character is ever torn.

use std::mem;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What framing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// The first data line of an event, before the event has ended. A consumer that can use it
    /// alone says so, and the line is not delivered again.
    FirstLine { event: &'a str, data: &'a str },
    /// A whole event.
    Event { event: &'a str, data: &'a str },
    /// A line `error: …`, which some servers send although no standard knows it.
    ErrorLine { data: &'a str },
}

/// The framing of one body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sse {
    line: Vec<u8>,
    started: bool,
    after_cr: bool,
    event: String,
    data: Option<String>,
}

impl Sse {
    /// Takes a segment and hands on every frame it completes. The consumer answers whether it has
    /// used a [`Frame::FirstLine`]; for other frames the answer means nothing.
    pub(crate) fn push(&mut self, bytes: &[u8], consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if mem::take(&mut self.after_cr)
                && let Some(after) = rest.strip_prefix(b"\n")
            {
                rest = after;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.line.extend_from_slice(rest);
                return;
            };
            let (head, tail) = rest.split_at(end);
            self.line.extend_from_slice(head);
            self.after_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            self.end_line(consume);
        }
    }

    /// The body is over: hands on what was not terminated.
    pub(crate) fn finish(&mut self, consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        if !self.line.is_empty() {
            self.end_line(consume);
        }
        self.end_event(consume);
    }

    /// Bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.line.len().saturating_add(self.data.as_ref().map_or(0, String::len))
    }

    fn end_line(&mut self, consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        let bytes = mem::take(&mut self.line);
        let mut line = bytes.as_slice();
        if !mem::replace(&mut self.started, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event(consume);
        } else {
            self.field(&String::from_utf8_lossy(line), consume);
        }
    }

    fn field(&mut self, line: &str, consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => self.data_line(value, consume),
            "event" => value.clone_into(&mut self.event),
            "error" => {
                consume(Frame::ErrorLine { data: value });
            }
            _ => {}
        }
    }

    fn data_line(&mut self, value: &str, consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None if consume(Frame::FirstLine { event: &self.event, data: value }) => {}
            None => self.data = Some(value.to_owned()),
        }
    }

    fn end_event(&mut self, consume: &mut dyn FnMut(Frame<'_>) -> bool) {
        let event = mem::take(&mut self.event);
        if let Some(data) = self.data.take() {
            consume(Frame::Event { event: &event, data: &data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(segments: &[&[u8]]) -> Vec<String> {
        let mut sse = Sse::default();
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            match frame {
                Frame::FirstLine { .. } => return false,
                Frame::Event { event, data } => seen.push(format!("{event}|{data}")),
                Frame::ErrorLine { data } => seen.push(format!("error line|{data}")),
            }
            true
        };
        for segment in segments {
            sse.push(segment, &mut note);
        }
        sse.finish(&mut note);
        seen
    }

    #[test]
    fn every_line_end_and_a_byte_order_mark_are_understood() {
        for end in ["\n", "\r\n", "\r"] {
            let body = format!(
                "\u{feff}data: a{end}data:b{end}{end}: comment{end}event: x{end}data: c{end}{end}"
            );
            assert_eq!(frames(&[body.as_bytes()]), ["|a\nb", "x|c"], "{end:?}");
        }
    }

    #[test]
    fn any_split_gives_the_same_frames() {
        let body = "\u{feff}data: é😀\r\n\r\nerror: {}\r\ndata: [DONE]\r\n\r\n".as_bytes();
        let whole = frames(&[body]);
        for at in 0..body.len() {
            let (head, tail) = body.split_at(at);
            assert_eq!(frames(&[head, tail]), whole, "split at {at}");
        }
        assert_eq!(whole, ["|é😀", "error line|{}", "|[DONE]"]);
    }

    #[test]
    fn an_event_without_an_end_is_handed_on_at_the_end_of_the_body() {
        assert_eq!(frames(&[b"data: last"]), ["|last"]);
    }

    #[test]
    fn only_line_ends_end_a_line() {
        let text = "data: a\u{2028}b\u{85}c\u{b}d\n\n";
        assert_eq!(frames(&[text.as_bytes()]), ["|a\u{2028}b\u{85}c\u{b}d"]);
    }

    #[test]
    fn a_byte_that_is_no_text_is_replaced_and_loses_nothing_else() {
        assert_eq!(frames(&[b"data: caf\xc3 au lait\n\n"]), ["|caf\u{fffd} au lait"]);
    }

    #[test]
    fn a_first_line_that_is_used_does_not_come_again() {
        let mut sse = Sse::default();
        let mut events = 0;
        sse.push(b"data: {}\ndata: {}\n\n", &mut |frame| {
            events += usize::from(matches!(frame, Frame::FirstLine { .. }));
            matches!(frame, Frame::FirstLine { .. })
        });
        assert_eq!(events, 2);
    }
}
