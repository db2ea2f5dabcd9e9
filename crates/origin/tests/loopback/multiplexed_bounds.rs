//! Tests of what a connection of HTTP/2 bears: silence, losses, cancelled streams, uploads that
//! compete, logins and memory.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Account, Limit, Limits, MemoryBudget};
use bytes::Bytes;
use message::{Framing, HeaderId, Method};
use origin::{
    BodySource, Error, HttpVersion, OriginRequestContext, Owner, RequestBody, SourceError,
    TimeoutStep,
};

use super::kit::{Client, LONG, Scripted, eventually, read, upload};
use super::multiplexed::{Server, ask, local, to};

#[tokio::test]
async fn a_login_to_a_connection_is_never_over_a_shared_one() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let (owner, other) = (Owner::default(), Owner::default());
        let by = async |path: &str, owner: &Owner, credentials: &[u8]| {
            let mut asked = to(path);
            if !credentials.is_empty() {
                asked.headers.push(HeaderId::Authorization, credentials);
            }
            let caller = OriginRequestContext { owner: Some(owner.clone()), ..Default::default() };
            let events = &mut ();
            let (pool, origin) = (&client.pool, &client.origin);
            let sent = pool.send(origin, &asked, RequestBody::None, 0, &caller, events).await;
            let mut exchange = sent.expect("a response");
            assert_eq!(read(&mut exchange).await.expect("a body"), path);
        };
        by("/before", &owner, b"").await;
        by("/hello", &owner, b"NTLM TlRM").await;
        by("/login", &owner, b"NTLM TlRN").await;
        by("/after", &owner, b"").await;
        by("/other", &other, b"").await;
        by("/basic", &other, b"Basic eA==").await;
        assert_eq!(
            server.seen(),
            [
                "0 /before",
                "1 /hello HTTP/1.1",
                "1 /login HTTP/1.1",
                "1 /after HTTP/1.1",
                "0 /other",
                "0 /basic"
            ]
        );
    })
    .await;
}

fn post_to(path: &str) -> message::Request {
    let mut post = to(path);
    post.method = Method::Post;
    post
}

#[tokio::test]
async fn a_server_without_settings_is_given_up_after_the_time_to_connect() {
    local(async {
        let server = Scripted::new(|_, conn| conn.hang()).await;
        let client = Client::new(&[&server.url], |config| {
            config.http = HttpVersion::Http2;
            config.timeouts.connect_ms = 50;
            config.retries = 0;
        });
        for _ in 0..2 {
            let failed = ask(&client, "/").await.expect_err("a timeout");
            let is_connect = matches!(failed, Error::Timeout { step: TimeoutStep::Connect, .. });
            assert!(is_connect, "{failed:?}");
        }
        assert_eq!(server.connections(), 2);
    })
    .await;
}

/// A client that asks for a sign of life soon.
fn impatient(server: &Server) -> Client {
    let limits = Limits { origin_h2_silence: 50, ..Limits::default() };
    Client::with_limits(&[&server.url], &limits, |config| config.http = HttpVersion::Http2)
}

#[tokio::test]
async fn a_connection_without_a_sign_of_life_ends_with_its_streams() {
    local(async {
        let server = Server::start(100).await;
        let client = impatient(&server);
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let sent = client.send(&post_to("/silent"), RequestBody::None).await;
        let failed = sent.expect_err("no sign of life");
        assert!(matches!(failed, Error::Read { in_body: false, .. }), "{failed:?}");
        assert_eq!(client.limited(Limit::OriginH2Silence), 1);
        assert_eq!(ask(&client, "/again").await.expect("a response"), "/again");
        assert_eq!(server.seen(), ["0 /", "0 /silent", "1 /again"]);
    })
    .await;
}

#[tokio::test]
async fn a_slow_server_that_gives_a_sign_of_life_keeps_its_connection() {
    local(async {
        let server = Server::start(100).await;
        let client = impatient(&server);
        assert_eq!(ask(&client, "/late").await.expect("a response"), "late");
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        assert_eq!(server.seen(), ["0 /late", "0 /"]);
    })
    .await;
}

#[tokio::test]
async fn one_lost_connection_is_one_failure_of_its_server() {
    local(async {
        let server = Server::start(100).await;
        let client = Rc::new(Client::new(&[&server.url], |config| {
            config.http = HttpVersion::Http2;
            config.retries = 0;
            config.eject.failures = 2;
        }));
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let send = |path: &'static str| {
            let client = Rc::clone(&client);
            tokio::task::spawn_local(async move {
                client.send(&post_to(path), RequestBody::None).await.expect_err("a loss");
            })
        };
        let silent: Vec<_> = (0..4).map(|_| send("/silent")).collect();
        server.sees("0 /silent").await;
        send("/close").await.expect("no panic");
        for done in silent {
            done.await.expect("no panic");
        }
        assert_eq!(client.origin.servers()[0].ejected_ms, 0);
    })
    .await;
}

#[tokio::test]
async fn a_request_that_needs_http_1_gets_it() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let sent = client.send(&post_to("/old"), RequestBody::None).await;
        assert_eq!(read(&mut sent.expect("a response")).await.expect("a body"), "/old");
        assert_eq!(server.seen(), ["0 /old", "1 /old HTTP/1.1"]);
    })
    .await;
}

#[tokio::test]
async fn a_connection_on_which_many_streams_were_cancelled_gets_no_more() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        for _ in 0..60 {
            drop(client.send(&to("/early"), RequestBody::None).await.expect("a head"));
        }
        let seen = server.seen();
        let of = |start: &str| seen.iter().filter(|seen| *seen == start).count();
        assert_eq!((of("0 /early"), of("1 /early")), (50, 10));
    })
    .await;
}

/// A body of `left` pieces of 16 KiB.
struct Much {
    left: usize,
    taken: Rc<Cell<usize>>,
}

impl BodySource for Much {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        if self.left == 0 {
            return Poll::Ready(Ok(None));
        }
        self.left -= 1;
        self.taken.set(self.taken.get() + 1);
        Poll::Ready(Ok(Some(Bytes::from_static(&[0; 16 << 10]))))
    }
}

/// Sends a body of `pieces` pieces to `path`.
fn pour(client: &Rc<Client>, path: &'static str, pieces: usize) -> (Pouring, Rc<Cell<usize>>) {
    let (client, taken) = (Rc::clone(client), Rc::<Cell<usize>>::default());
    let counted = Rc::clone(&taken);
    let sending = tokio::task::spawn_local(async move {
        let mut post = upload(Method::Post, Framing::Chunked);
        post.target = path.as_bytes().to_vec();
        let mut source = Much { left: pieces, taken: counted };
        let body = RequestBody::Stream(Box::new(&mut source));
        let mut exchange = client.send(&post, body).await?;
        read(&mut exchange).await
    });
    (sending, taken)
}

type Pouring = tokio::task::JoinHandle<Result<String, Error>>;

#[tokio::test]
async fn uploads_take_turns_on_a_connection() {
    local(async {
        let server = Server::start(100).await;
        let client = Rc::new(server.client());
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let (long, taken) = pour(&client, "/pour", usize::MAX);
        while taken.get() < 100 {
            tokio::task::yield_now().await;
        }
        let (short, _) = pour(&client, "/pour", 64);
        let done = tokio::time::timeout(LONG, short).await.expect("its turns");
        assert_eq!(done.expect("no panic").expect("a response"), "done");
        assert!(!long.is_finished());
        long.abort();
    })
    .await;
}

#[tokio::test]
async fn a_response_is_read_while_uploads_are_stuck() {
    local(async {
        let server = Server::start(100).await;
        let client = Rc::new(server.client());
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let (stuck, taken) = pour(&client, "/stuck", usize::MAX);
        let mut before = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if taken.get() > 0 && std::mem::replace(&mut before, taken.get()) == taken.get() {
                break;
            }
        }
        server.go_on.notify_one();
        let done = tokio::time::timeout(LONG, stuck).await.expect("a response");
        assert_eq!(done.expect("no panic").expect("a response"), "/stuck");
    })
    .await;
}

#[tokio::test]
async fn only_calls_have_deadlines_of_their_own() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let with_deadline = |mut asked: message::Request, deadline: &[u8]| {
            asked.headers.push(HeaderId::ContentType, b"application/grpc");
            asked.headers.push_named(b"grpc-timeout", deadline);
            asked
        };
        let get = with_deadline(to("/get"), b"0n");
        let mut exchange = client.send(&get, RequestBody::None).await.expect("a response");
        assert_eq!(read(&mut exchange).await.expect("a body"), "/get");
        let call = with_deadline(post_to("/silent"), b"50m");
        let late = client.send(&call, RequestBody::None).await.expect_err("too late");
        assert!(matches!(late, Error::Timeout { step: TimeoutStep::Total, .. }), "{late:?}");
        // A client's impatience says nothing about the connection.
        assert_eq!(ask(&client, "/after").await.expect("a response"), "/after");
        assert_eq!(server.seen().last().map(String::as_str), Some("0 /after"));
    })
    .await;
}

#[tokio::test]
async fn what_a_server_is_ahead_is_held_in_the_account_of_the_exchange() {
    const ARRIVED: u64 = 48 << 10;
    local(async {
        for (most, widens) in [(1 << 20, true), (ARRIVED, false)] {
            let server = Server::start(100).await;
            let client = server.client();
            let account = Account::open(&MemoryBudget::new(1 << 30, 1 << 29), most);
            let caller =
                OriginRequestContext { account: Some(Arc::clone(&account)), ..Default::default() };
            let (pool, origin, half) = (&client.pool, &client.origin, to("/half"));
            let sent = pool.send(origin, &half, RequestBody::None, 0, &caller, &mut ()).await;
            let mut exchange = sent.expect("a head");
            eventually(|| account.held() == ARRIVED).await;
            let mut read = 0;
            while read < ARRIVED {
                let mut count = |bytes: &[u8]| read += bytes.len() as u64;
                let next = exchange.next(&mut count);
                assert!(tokio::time::timeout(LONG, next).await.expect("bytes").expect("a body"));
                assert_eq!(account.held(), ARRIVED - read);
            }
            let room = if widens { "0 room 196608" } else { "0 room 49152" };
            server.sees(room).await;
            assert_eq!(server.seen(), ["0 /half", room]);
            drop(exchange);
            assert_eq!(account.held(), 0);
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_the_server_does_not_take_is_not_sent() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let mut large = to("/");
        large.headers.push_named(b"x-large", &[b'x'; 5_000]);
        // How much the server takes is known once it has spoken.
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let refused = client.send(&large, RequestBody::None).await.expect_err("too large");
        assert!(matches!(refused, Error::HeadTooLarge { .. }), "{refused:?}");
        assert_eq!(refused.status().code(), 431);
        assert_eq!(ask(&client, "/after").await.expect("a response"), "/after");
        assert_eq!(server.seen(), ["0 /", "0 /after"]);
    })
    .await;
}
