//! What a body with status 200 is: an event stream, JSON, or a page that is no reply. Its first
//! visible byte tells; what its headers say is not reliable.

use std::mem;

use proto::model::ModelErrorKind;

use super::EndOfBody;
use super::json_scan::{Run, Scanner};
use super::provider_error::in_words;
use super::sse::Sse;
use super::turn::Turn;

/// Bytes that a body may hold back before they make a chunk.
const MOST: usize = 64 * 1024 * 1024;
/// Bytes kept to show what came when it was no reply.
const HEAD: usize = 300;

/// The body so far.
#[derive(Debug, Default)]
pub(crate) struct Body {
    kind: Kind,
    head: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    /// Only blanks.
    Unknown(Vec<u8>),
    Events(Sse),
    Json(Documents),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

/// JSON documents one after another.
#[derive(Debug)]
struct Documents {
    held: Vec<u8>,
    scanned: usize,
    scan: Scanner,
}

impl Body {
    pub(crate) fn push(&mut self, bytes: &[u8], turn: &mut Turn) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        match &mut self.kind {
            Kind::Unknown(held) => {
                held.extend_from_slice(bytes);
                self.decide(turn);
            }
            Kind::Events(sse) => {
                sse.push(bytes, &mut |frame| turn.frame(&frame));
                if sse.held() > MOST {
                    turn.malformed("a piece of the stream is too long");
                }
            }
            Kind::Json(documents) => documents.push(bytes, turn),
        }
    }

    fn decide(&mut self, turn: &mut Turn) {
        let Kind::Unknown(held) = &mut self.kind else { return };
        let visible =
            held.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte));
        match visible {
            None if held.len() < HEAD => {}
            Some(b'<') => turn.page(),
            Some(b'{' | b'[') => {
                let held = mem::take(held);
                let mut documents =
                    Documents { held: Vec::new(), scanned: 0, scan: Scanner::new() };
                documents.push(&held, turn);
                self.kind = Kind::Json(documents);
            }
            Some(_) | None => {
                let held = mem::take(held);
                let mut sse = Sse::default();
                sse.push(&held, &mut |frame| turn.frame(&frame));
                self.kind = Kind::Events(sse);
            }
        }
    }

    pub(crate) fn finish(&mut self, how: &EndOfBody, turn: &mut Turn) {
        let is_json = matches!(self.kind, Kind::Json(_));
        if let Kind::Events(sse) = &mut self.kind {
            turn.allow_torn_piece();
            sse.finish(&mut |frame| turn.frame(&frame));
        }
        if turn.is_over() {
            return;
        }
        let is_whole = *how == EndOfBody::Clean;
        let is_text = !self.head.trim_ascii().is_empty() && !self.head.starts_with(b":");
        if is_whole && !turn.saw_anything() && is_text {
            turn.bad_response(!is_json, &self.head);
        } else {
            turn.end_of_body(how);
        }
    }
}

impl Documents {
    fn push(&mut self, bytes: &[u8], turn: &mut Turn) {
        self.held.extend_from_slice(bytes);
        while !turn.is_over() {
            if self.scan.depth() == 0 {
                self.skip_blanks();
            }
            match self.scan.run(self.held.get(self.scanned..).unwrap_or_default()) {
                Run::Open => {
                    self.scanned = self.held.len();
                    return;
                }
                Run::Bad => {
                    turn.fail(in_words(ModelErrorKind::BadResponse, true, "the body is not JSON"));
                }
                Run::Done(length) => {
                    let rest = self.held.split_off(self.scanned.saturating_add(length));
                    let document = mem::replace(&mut self.held, rest);
                    self.scanned = 0;
                    self.scan = Scanner::new();
                    turn.document(&String::from_utf8_lossy(&document));
                }
            }
        }
    }

    /// Blanks, marks and commas between documents.
    fn skip_blanks(&mut self) {
        let skip = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf,".contains(byte);
        let blanks = self.held.iter().take_while(|byte| skip(byte)).count();
        self.held.drain(..blanks);
    }
}
