//! Reads the body of a streamed reply: bytes in, events out.
//!
//! Pure and incremental: no I/O and no clock. Where bytes are cut into segments never changes what
//! comes out, and the time it takes is linear in their number. Reading order: [`Reader`] knows
//! bodies, `turn` knows chunks, `calls` and `contract` know calls, `ending` knows how replies end.

mod arguments; // the arguments of one call, from fragments
mod body; // event stream, JSON, or a page that is no reply
mod calls; // which piece belongs to which call
mod chunk; // a chunk as a lenient typed view
mod code; // what is code within text
mod contract; // the one object of the contract protocol
mod dialects; // marks around calls in text
mod ending; // how a reply ends
mod envelope; // a call written out as text
mod finish; // words for the end
mod json_scan; // where a JSON value ends
mod lenient; // lossless repairs
mod members; // the members of an object that is being scanned
mod names; // the tools on offer
mod payload; // payloads to chunks
pub(crate) mod provider_error; // errors in every shape
mod sse; // framing
mod text_calls; // calls that leaked into the text
mod think; // thoughts at the start of the text
mod turn; // chunks to events
mod whole; // JSON that may be the whole reply

use proto::agent::Protocol;
use proto::model::{ModelError, ModelEvent};
use proto::notice::Deadline;

pub use names::Tools;
pub use think::Think;

use body::Body;
use turn::Turn;

/// No reply is longer; one that is would fill the memory of whoever collects it.
const LONGEST: usize = 256 * 1024 * 1024;

/// What the reader has to know beforehand.
#[derive(Clone, Debug, Default)]
pub struct ReaderConfig {
    /// How calls were asked for.
    pub protocol: Protocol,
    /// The tools that were offered.
    pub tools: Tools,
    /// Where a thought in the text begins.
    pub think: Think,
}

/// How the bytes ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndOfBody {
    /// The transport says that all is well. The reply may still be incomplete.
    Clean,
    /// The transport failed.
    Cut(String),
}

/// An event, or the error that ends the reply.
pub type Signal = Result<ModelEvent, ModelError>;

/// The reading of one reply. It ends with one [`ModelEvent::End`] or one error.
#[derive(Debug)]
pub struct Reader {
    body: Body,
    bytes: usize,
    turn: Turn,
}

impl Reader {
    /// A reader for one reply.
    pub fn new(config: ReaderConfig) -> Self {
        Self { body: Body::default(), bytes: 0, turn: Turn::new(config) }
    }

    /// Takes a segment of the body.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Signal> {
        if !self.turn.is_over() {
            self.bytes = self.bytes.saturating_add(bytes.len());
            if self.bytes > LONGEST {
                self.turn.malformed("the reply is too long");
            } else {
                self.body.push(bytes, &mut self.turn);
            }
        }
        self.turn.take_signals()
    }

    /// The body has ended.
    pub fn end(&mut self, how: &EndOfBody) -> Vec<Signal> {
        if !self.turn.is_over() {
            self.body.finish(how, &mut self.turn);
        }
        self.turn.take_signals()
    }

    /// Nothing came for too long. After a finish reason that is a good end.
    pub fn timeout(&mut self, deadline: Deadline) -> Vec<Signal> {
        self.turn.time_out(deadline);
        self.turn.take_signals()
    }

    /// Whether the reply has ended; nothing that comes later counts.
    pub fn is_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Chunks so far; comments and pings are none.
    pub fn chunks(&self) -> u64 {
        self.turn.chunks()
    }

    /// Whether a finish reason has come, so that only leftovers are waited for.
    pub fn saw_finish(&self) -> bool {
        self.turn.saw_finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::json_scan::work;
    use super::*;

    /// Bytes that are scanned for one string of `length` in pieces of `piece` bytes.
    fn scanned(protocol: Protocol, length: usize, piece: usize) -> usize {
        let open = "{\"reasoning\":\"\",\"tool_calls\":[{\"name\":\"dig\",\"arguments\":";
        let chunk = |text: &str, is_first: bool| {
            let mut call = json!({"index": 0, "function": {"arguments": text}});
            if is_first {
                call["function"]["name"] = json!("dig");
            }
            let delta = match protocol {
                Protocol::Native => json!({"tool_calls": [call]}),
                Protocol::Contract if is_first => json!({"content": format!("{open}{text}")}),
                Protocol::Contract => json!({"content": text}),
            };
            format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}))
        };
        let tools = Tools::named(["dig"]);
        let mut reader = Reader::new(ReaderConfig { protocol, tools, think: Think::Tagged });
        work::take();
        reader.push(chunk("{\"a\":\"", true).as_bytes());
        let more = chunk(&"x".repeat(piece), false);
        for _ in 0..length / piece {
            reader.push(more.as_bytes());
        }
        let signals = reader.push(chunk("\"}", false).as_bytes());
        let is_call = |signal: &Signal| matches!(signal, Ok(ModelEvent::CallReady(_)));
        assert!(signals.iter().any(is_call), "the call is out: {signals:?}");
        work::take()
    }

    #[test]
    fn arguments_are_scanned_once_however_long_they_are_and_however_they_come() {
        for protocol in [Protocol::Native, Protocol::Contract] {
            for (length, piece) in [(100_000, 1), (1_000_000, 100), (10_000_000, 10_000)] {
                let scanned = scanned(protocol, length, piece);
                assert!(scanned >= length, "{protocol:?} {length}: the count counts {scanned}");
                assert!(scanned < length * 2 + 1000, "{protocol:?} {length}: {scanned}");
            }
        }
    }
}
