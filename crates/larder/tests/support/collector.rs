//! A collector of traces, which keeps the spans that it is sent.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::eventually;

/// A collector that keeps what it is sent.
pub(crate) struct Collector {
    pub(crate) spans: Arc<Mutex<Vec<Value>>>,
    pub(crate) port: u16,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let request = take(stream).await;
                kept.lock().extend(spans_of(&request));
            }
        });
        Self { spans, port }
    }

    /// Waits for so many spans.
    pub(crate) async fn spans(&self, count: usize) -> Vec<Value> {
        eventually("the spans", async || self.spans.lock().len() >= count).await;
        let spans = self.spans.lock().clone();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }
}

/// Reads one request and answers it.
async fn take(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.expect("bytes") > 0, "cut off");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        let length = head.split("Content-Length: ").nth(1).expect("a length");
        let length: usize = length.split("\r\n").next().expect("a line").parse().expect("digits");
        if body.len() == length {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.expect("taken");
    bytes
}

fn spans_of(request: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(request);
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "larder");
    resource["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
}

/// An attribute of a span, or the empty string.
pub(crate) fn attribute(span: &Value, key: &str) -> String {
    let attributes = span["attributes"].as_array().expect("attributes").iter();
    let value = attributes.filter(|own| own["key"] == key).map(|own| &own["value"]).next();
    let value =
        value.map(|value| value["stringValue"].as_str().or_else(|| value["intValue"].as_str()));
    value.flatten().unwrap_or_default().to_owned()
}
