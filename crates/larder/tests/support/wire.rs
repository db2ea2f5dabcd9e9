//! A client of NATS that can send anything: the protocol by hand, with no code of Larder's.

use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;
use super::nats::Nats;

/// A connection.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    inboxes: u64,
}

impl Wire {
    /// Connects with `fields` of CONNECT; an error has the server's refusal.
    pub(crate) async fn connect(nats: &Nats, fields: Value) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", nats.port())).await.expect("a connection");
        let mut wire = Self { stream: BufReader::new(stream), inboxes: 0 };
        assert!(wire.line().await.starts_with("INFO "));
        let mut says = json!({ "verbose": false, "headers": true, "no_responders": true });
        for (name, value) in fields.as_object().expect("an object") {
            says[name] = value.clone();
        }
        wire.send(format!("CONNECT {says}\r\nPING\r\n").as_bytes()).await;
        match wire.line().await.as_str() {
            "PONG" => Ok(wire),
            other => Err(other.to_owned()),
        }
    }

    /// A connection to a server without authentication.
    pub(crate) async fn open(nats: &Nats) -> Self {
        Self::connect(nats, json!({})).await.expect("it is taken")
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("sent");
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.stream.read_line(&mut line)).await.expect("in time");
        read.expect("a line");
        line.trim_end().to_owned()
    }

    /// Publishes; an error has the server's refusal.
    pub(crate) async fn publish(&mut self, subject: &str, bytes: &[u8]) -> Result<(), String> {
        self.send(format!("PUB {subject} {}\r\n", bytes.len()).as_bytes()).await;
        // A server that refuses it may close before everything was sent.
        let rest = [bytes, b"\r\nPING\r\n"].concat();
        _ = self.stream.write_all(&rest).await;
        loop {
            match self.line().await.as_str() {
                "PONG" => return Ok(()),
                "PING" => self.send(b"PONG\r\n").await,
                other => return Err(other.to_owned()),
            }
        }
    }

    /// Sends a request, and waits for the response.
    pub(crate) async fn ask(&mut self, subject: &str, body: &Value) -> Value {
        let body = body.to_string();
        let length = body.len().to_string();
        self.answer(("PUB", subject), &length, body.as_bytes()).await
    }

    /// Stores a message with these headers in a stream; returns the confirmation.
    pub(crate) async fn store(&mut self, subject: &str, headers: &[u8], body: &[u8]) -> Value {
        let message = [headers, body].concat();
        let lengths = format!("{} {}", headers.len(), message.len());
        self.answer(("HPUB", subject), &lengths, &message).await
    }

    async fn answer(&mut self, (verb, subject): (&str, &str), lengths: &str, body: &[u8]) -> Value {
        self.inboxes += 1;
        let number = self.inboxes;
        let inbox = format!("_INBOX.wire.{}.{number}", std::process::id());
        let head = format!(
            "SUB {inbox} {number}\r\nUNSUB {number} 1\r\n{verb} {subject} {inbox} {lengths}\r\n"
        );
        self.send(&[head.as_bytes(), body, b"\r\n"].concat()).await;
        loop {
            let line = self.line().await;
            if line == "PING" {
                self.send(b"PONG\r\n").await;
                continue;
            }
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(words.first(), Some(&"MSG"), "{line}");
            let length: usize = words.last().and_then(|word| word.parse().ok()).expect("a length");
            let mut payload = vec![0; length + 2];
            self.stream.read_exact(&mut payload).await.expect("a payload");
            return serde_json::from_slice(&payload[..length]).expect("JSON");
        }
    }

    /// Headers and body of the message of a stream at `sequence`.
    pub(crate) async fn at(&mut self, stream: &str, sequence: u64) -> [Vec<u8>; 2] {
        let asked = json!({ "seq": sequence });
        let found = self.ask(&format!("$JS.API.STREAM.MSG.GET.{stream}"), &asked).await;
        ["hdrs", "data"].map(|part| {
            let part = found["message"][part].as_str().unwrap_or_else(|| panic!("{found}"));
            BASE64.decode(part.as_bytes()).expect("base64")
        })
    }

    /// The last message of a subject in a stream.
    pub(crate) async fn last(&mut self, stream: &str, subject: &str) -> Vec<u8> {
        let asked = json!({ "last_by_subj": subject });
        let found = self.ask(&format!("$JS.API.STREAM.MSG.GET.{stream}"), &asked).await;
        let data = found["message"]["data"].as_str().unwrap_or_else(|| panic!("{found}"));
        BASE64.decode(data.as_bytes()).expect("base64")
    }
}
