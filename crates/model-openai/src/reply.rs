//! A response as a stream of events, with deadlines. Dropping the stream drops the response, which
//! closes the connection.

use std::collections::VecDeque;
use std::future::pending;

use bytes::Bytes;
use ports::admission::{Permit, Went};
use proto::notice::Deadline;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::endpoint::Deadlines;
use crate::exchange::chain;
use crate::reader::{EndOfBody, Reader, Signal};

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct Reply {
    response: Option<Response>,
    reader: Reader,
    queue: VecDeque<Signal>,
    deadlines: Deadlines,
    started: Instant,
    last_chunk: Instant,
    /// Falls free when the reply is over or dropped.
    place: Option<Box<dyn Permit>>,
}

/// What came of a response's body.
pub(crate) enum Arrived {
    Bytes(Bytes),
    End(EndOfBody),
    /// Nothing, and this ran out.
    Nothing(Deadline),
}

impl Arrived {
    /// The first that comes, of a request that was sent at `started`.
    pub(crate) async fn first(
        response: &mut Response,
        deadlines: &Deadlines,
        started: Instant,
    ) -> Self {
        let (first, end) = (started + deadlines.first_token, started + deadlines.total);
        let (until, deadline) =
            if end < first { (end, Deadline::Total) } else { (first, Deadline::FirstToken) };
        Self::of(response, until, deadline).await
    }

    async fn of(response: &mut Response, until: Instant, deadline: Deadline) -> Self {
        match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(bytes))) => Self::Bytes(bytes),
            Ok(Ok(None)) => Self::End(EndOfBody::Clean),
            Ok(Err(error)) => Self::End(EndOfBody::Cut(chain(&error.without_url()))),
            Err(_) => Self::Nothing(deadline),
        }
    }
}

impl Reply {
    /// Reads a response to a request that was sent at `started`.
    pub(crate) fn new(
        response: Response,
        reader: Reader,
        deadlines: Deadlines,
        started: Instant,
    ) -> Self {
        Self {
            response: Some(response),
            reader,
            queue: VecDeque::new(),
            deadlines,
            started,
            last_chunk: started,
            place: None,
        }
    }

    /// The same with the place that it takes.
    pub(crate) fn holding(mut self: Box<Self>, place: Option<Box<dyn Permit>>) -> Box<Self> {
        self.place = place;
        self
    }

    /// It has come to its end, and took so many tokens.
    pub(crate) fn answered(&mut self, tokens: Option<u64>) {
        if let Some(mut place) = self.place.take() {
            place.went(Went::Answered(tokens));
        }
    }

    /// Puts a signal back in front.
    pub(crate) fn put_back(&mut self, signal: Signal) {
        self.queue.push_front(signal);
    }

    /// The next signal; none after the last.
    pub(crate) async fn next(&mut self) -> Option<Signal> {
        loop {
            if let Some(signal) = self.queue.pop_front() {
                return Some(signal);
            }
            if self.reader.is_over() {
                self.response = None;
                return None;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let (until, deadline) = self.waits_until();
        let arrived = match &mut self.response {
            Some(response) => Arrived::of(response, until, deadline).await,
            None => pending().await,
        };
        self.take(arrived);
    }

    /// Reads what came of the body.
    pub(crate) fn take(&mut self, arrived: Arrived) {
        let signals = match arrived {
            Arrived::Bytes(bytes) => {
                let before = self.reader.chunks();
                let signals = self.reader.push(&bytes);
                if self.reader.chunks() > before {
                    self.last_chunk = Instant::now();
                }
                signals
            }
            Arrived::End(how) => self.reader.end(&how),
            Arrived::Nothing(deadline) => self.reader.timeout(deadline),
        };
        self.queue.extend(signals);
    }

    fn waits_until(&self) -> (Instant, Deadline) {
        let Deadlines { first_token, idle, total, grace } = self.deadlines;
        let (next, deadline) = if self.reader.saw_finish() {
            (self.last_chunk + grace, Deadline::Idle)
        } else if self.reader.chunks() == 0 {
            (self.started + first_token, Deadline::FirstToken)
        } else {
            (self.last_chunk + idle, Deadline::Idle)
        };
        let end = self.started + total;
        if end < next { (end, Deadline::Total) } else { (next, deadline) }
    }
}
