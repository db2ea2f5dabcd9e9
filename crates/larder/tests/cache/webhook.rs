//! Tests of `[webhook]`: a receiver takes each new finding once, however often it has to be sent,
//! and its URL is a secret.

use std::sync::Arc;

use crate::support;

use parking_lot::Mutex;
use serde_json::Value;
use support::tls::{Authority, Kind};
use support::{Setup, Stage, eventually, is_hit};
use testkit::origin::Script;
use testkit::reference_reader::read_requests;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A receiver of findings.
struct Receiver {
    authority: Authority,
    port: u16,
    /// The targets and bodies of its requests.
    got: Arc<Mutex<Vec<(String, Value)>>>,
    /// The statuses of its next answers; 204 after them.
    statuses: Arc<Mutex<Vec<u16>>>,
}

impl Receiver {
    async fn start() -> Self {
        let authority = Authority::new();
        authority.sign("hook", &["127.0.0.1"], Kind::Elliptic);
        let acceptor = authority.acceptor("hook");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (got, statuses) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<u16>>>::default());
        let (kept, next) = (Arc::clone(&got), Arc::clone(&statuses));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(tcp).await else { continue };
                let mut bytes = Vec::new();
                let request = loop {
                    if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                        break None;
                    }
                    if let Ok(mut requests) = read_requests(&bytes)
                        && let Some(request) = requests.pop()
                    {
                        break Some(request);
                    }
                };
                let Some(request) = request else { continue };
                assert_eq!(request.method, "POST");
                let body = serde_json::from_slice(&request.body).expect("JSON");
                kept.lock().push((request.target.clone(), body));
                let status = next.lock().pop().unwrap_or(204);
                let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                _ = stream.write_all(answer.as_bytes()).await;
                _ = stream.shutdown().await;
            }
        });
        Self { authority, port, got, statuses }
    }

    /// A daemon that sends its findings here, and compares every hit.
    async fn stage(&self) -> Stage {
        let top = format!(
            "[webhook]\nurl = \"https://127.0.0.1:{}/hook?key=hush\"\nca = \"{}\"\n",
            self.port,
            self.authority.path("ca.pem")
        );
        let site = "cache.verify = \"100%\"\ncookies.strip = [\"cart\", \"seen\"]";
        let stage = Setup { top: &top, site, one_core: true, ..Setup::default() }.start().await;
        stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
        stage
    }

    fn got(&self) -> Vec<(String, Value)> {
        self.got.lock().clone()
    }
}

/// Has a page seen to differ by a cookie.
async fn differ(stage: &Stage, target: &str) {
    assert!(!is_hit(&stage.get(target).await));
    assert!(is_hit(&stage.ask("GET", target, "Cookie: cart=full\r\n").await));
}

#[tokio::test]
async fn a_receiver_gets_a_finding_though_it_fails_at_first() {
    let receiver = Receiver::start().await;
    let stage = receiver.stage().await;
    receiver.statuses.lock().extend([503]);
    differ(&stage, "/a").await;
    let sent = async || stage.metric("larder_webhooks_sent_total").await == 1;
    eventually("the finding", sent).await;
    let got = receiver.got();
    assert_eq!(got.len(), 2, "once refused, once taken");
    assert_eq!(got[0], got[1]);
    let (target, message) = &got[1];
    assert_eq!(target, "/hook?key=hush");
    assert_eq!((&message["event"], &message["site"]), (&"page-differs".into(), &"*".into()));
    assert_eq!(message["cause"], "cookie cart");
    assert!(message["url"].as_str().is_some_and(|url| url.ends_with("/a")), "{message}");
    assert_eq!(stage.metric("larder_webhooks_failed_total").await, 0);
}

#[tokio::test]
async fn a_refusal_is_final_and_the_url_stays_a_secret() {
    let receiver = Receiver::start().await;
    let stage = receiver.stage().await;
    receiver.statuses.lock().extend([403]);
    differ(&stage, "/a").await;
    let failed = async || stage.metric("larder_webhooks_failed_total").await == 1;
    eventually("the refusal", failed).await;
    assert_eq!(receiver.got().len(), 1);
    stage.daemon.assert_logged("has not got a finding: it answers with status 403").await;
    assert!(!stage.daemon.log().contains("hush"));
}
