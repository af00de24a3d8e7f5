//! A client that speaks the protocol of NATS and hears deliveries, also those of others.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection.
pub(crate) struct Wire(BufReader<TcpStream>);

impl Wire {
    pub(crate) async fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let mut wire = Self(BufReader::new(stream));
        wire.say("CONNECT {\"verbose\":false,\"headers\":true}\r\n").await?;
        Ok(wire)
    }

    /// Says words in the protocol.
    pub(crate) async fn say(&mut self, words: &str) -> io::Result<()> {
        self.0.get_mut().write_all(words.as_bytes()).await
    }

    /// The next delivery of a record, named by the subject on which it is acknowledged.
    pub(crate) async fn delivery(&mut self) -> io::Result<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            if line.starts_with("PING") {
                self.say("PONG\r\n").await?;
            }
            let Some(message) = Message::read(&line) else { continue };
            let mut body = vec![0; message.bytes.saturating_add(2)];
            self.0.read_exact(&mut body).await?;
            if let Some(delivery) = message.delivery {
                return Ok(delivery);
            }
        }
    }
}

/// `MSG subject sid [reply] bytes`, or `HMSG subject sid [reply] header-bytes bytes`.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    delivery: Option<String>,
    bytes: usize,
}

impl Message {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !["MSG", "HMSG"].contains(words.first()?) {
            return None;
        }
        let bytes = words.last()?.parse().ok()?;
        let delivery = words.iter().find(|word| word.starts_with("$JS.ACK.SY_"));
        Some(Self { delivery: delivery.map(|word| (*word).to_owned()), bytes })
    }
}

/// How often a record was delivered: `$JS.ACK.<stream>.<consumer>.<count>. …`.
pub(crate) fn delivery_count(reply: &str) -> Option<u64> {
    reply.split('.').nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_told_from_an_answer() {
        let reply = "$JS.ACK.SY_0.planner_in.1.7.3.1700000000000000000.0";
        let delivery = Message { delivery: Some(reply.to_owned()), bytes: 42 };
        let line = format!("HMSG sy.0.a.b.in 1 {reply} 12 42\r\n");
        assert_eq!(Message::read(&line), Some(delivery));
        assert_eq!(delivery_count(reply), Some(1));
        let answer = Message { delivery: None, bytes: 5 };
        assert_eq!(Message::read("MSG _INBOX.x 1 5\r\n"), Some(answer));
        assert_eq!(Message::read("+OK\r\n"), None);
    }
}
