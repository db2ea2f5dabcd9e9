//! The language as it is since Varnish 7.2, on a daemon under varnishd's flags. Debian's
//! varnishd, 7.1, cannot judge it: the manuals and release notes of 7.2 to 9.0 do.

use crate::support;

use std::os::linux::net::SocketAddrExt as _;

use support::serve::{Serve, vcl};
use testkit::origin::{Script, ScriptedOrigin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};

/// The value of a field of a response.
fn field<'r>(reply: &'r str, name: &str) -> Option<&'r str> {
    let head = reply.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn transactions_are_numbers_and_times_go_on() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let rest = r#"
        sub slow { set req.http.X-Called = "yes"; }
        sub ends { return (synth(204)); }
        sub vcl_recv {
            if (req.url == "/ends") {
                set req.http.X-Took = std.timed_call(ends);
                return (synth(500));
            }
            set req.http.X-Took = std.timed_call(slow);
            return (synth(200));
        }
        sub vcl_synth {
            set resp.http.X-Id = req.xid;
            set resp.http.X-Next = req.xid + 1;
            set resp.http.X-Above = req.xid > sess.xid;
            set resp.http.X-Hash = req.hash;
            set resp.http.X-Now = std.now() >= now - 1s;
            set resp.http.X-Took = req.http.X-Took + " " + req.http.X-Called;
            unset req.grace;
            set resp.http.X-Grace = req.grace + " " + req.max_age;
            set resp.http.X-Param = param.default_ttl + " " + param.max_restarts;
            unset sess.timeout_idle;
            set resp.http.X-Idle = sess.timeout_idle;
            return (deliver);
        }
    "#;
    let serve = Serve::start(&vcl(&origin, rest), &["-p", "timeout_idle=7"]);
    let reply = serve.get("/").await;
    let number = |name| field(&reply, name).and_then(|text| text.parse::<u64>().ok());
    assert_eq!(number("X-Next"), number("X-Id").map(|id| id + 1), "{reply}");
    for (name, value) in [
        ("X-Above", "true"),
        ("X-Now", "true"),
        ("X-Grace", "-1.000 -1.000"),
        ("X-Param", "120.000 4"),
        ("X-Idle", "7.000"),
    ] {
        assert_eq!(field(&reply, name), Some(value), "{reply}");
    }
    assert!(field(&reply, "X-Took").is_some_and(|took| took.ends_with(" yes")), "{reply}");
    let hash = field(&reply, "X-Hash").unwrap_or_default();
    assert!(hash.len() > 40 && !hash.starts_with(":AAAAAAAA"), "{reply}");
    assert!(serve.get("/ends").await.starts_with("HTTP/1.1 204 "));
}

#[tokio::test]
async fn a_fetch_waits_for_a_busy_backend_as_long_as_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let text = |attributes: &str| {
        format!(
            "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{port}\"; \
             .max_connections = 1; {attributes} }} sub vcl_recv {{ return (pass); }}"
        )
    };
    let serve = Serve::start(&text(".wait_limit = 1; .wait_timeout = 60s;"), &[]);
    let mut cli = serve.cli().await;
    // One has the connection, one waits for it, and one is too many.
    let asked = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        cli.counted(&[("MAIN.backend_busy", 1)]).await;
        for _ in 0..2 {
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).await.expect("a request") > 0);
            let body = &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..];
            stream.write_all(body).await.expect("answered");
        }
    };
    let all = [serve.get("/1"), serve.get("/2"), serve.get("/3")];
    let [first, second, third] = all;
    let (first, second, third, ()) = tokio::join!(first, second, third, asked);
    let replies = [first, second, third];
    let answered = replies.iter().filter(|reply| reply.ends_with("ok")).count();
    let refused = replies.iter().filter(|reply| reply.starts_with("HTTP/1.1 503 ")).count();
    assert_eq!((answered, refused), (2, 1), "{replies:?}");

    // With little patience the one that waits is refused, too.
    let hasty = text(".wait_limit = 9; .wait_timeout = 10ms;");
    assert_eq!(cli.ask(&format!("vcl.inline hasty << END\n{hasty}\nEND")).await.0, 200);
    assert_eq!(cli.ask("vcl.use hasty").await.0, 200);
    let kept = tokio::spawn(async move { listener.accept().await });
    let late = tokio::select! {
        reply = serve.get("/4") => reply,
        reply = serve.get("/5") => reply,
    };
    assert!(late.starts_with("HTTP/1.1 503 "), "{late}");
    drop(kept);
}

#[tokio::test]
async fn a_program_says_under_which_fields_a_confirmed_page_goes_on() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let rest = r#"
        sub vcl_backend_refresh {
            set beresp.http.X-Seen = obj_stale.status + " " + beresp.status + " "
                + obj_stale.http.X-Old + " " + beresp.was_304 + " " + obj_stale.is_valid;
            if (bereq.url == "/stale") { return (obj_stale); }
            if (bereq.url == "/beresp") { return (beresp); }
            if (bereq.url == "/error") { return (error(599, "No")); }
            if (bereq.url == "/retry" && bereq.retries == 0) {
                unset bereq.http.If-None-Match;
                return (retry);
            }
        }
        sub vcl_backend_response {
            set beresp.ttl = 1ms;
            set beresp.grace = 0s;
            set beresp.keep = 1h;
            set beresp.http.X-Was = beresp.was_304;
        }
    "#;
    let serve = Serve::start(&vcl(&origin, rest), &[]);
    let page = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nX-Old: old\r\nContent-Length: 4\r\n\r\npage";
    let confirmed = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-New: new\r\n\r\n";
    for (url, has_old, has_new, has_seen) in [
        ("/merge", true, true, true),
        ("/stale", true, false, false),
        ("/beresp", false, true, true),
        ("/retry", true, false, false),
        ("/error", false, false, false),
    ] {
        origin.on(url, Script::respond(page));
        assert!(serve.get(url).await.ends_with("page"));
        origin.on(url, Script::respond(confirmed));
        // Its millisecond may not be over yet.
        support::eventually("it is fetched anew", async || {
            serve.get(url).await;
            origin.seen(url) > 1
        })
        .await;
        if url == "/retry" {
            // Asked for anew without a condition, it was not to be confirmed.
            let asked: Vec<_> = origin.recorded().into_iter().flat_map(|one| one.bytes).collect();
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let plain = asked
                .split("\r\n\r\n")
                .filter(|head| head.starts_with("GET /retry ") && !head.contains("If-None-Match"));
            assert!(plain.count() > 1, "{asked}");
            continue;
        }
        let reply = serve.get(url).await;
        if url == "/error" {
            assert!(reply.starts_with("HTTP/1.1 599 No\r\n"), "{reply}");
            continue;
        }
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("page"), "{reply}");
        assert_eq!(field(&reply, "X-Old").is_some(), has_old, "{url}: {reply}");
        assert_eq!(field(&reply, "X-New").is_some(), has_new, "{url}: {reply}");
        // The first page has the field, what was confirmed without it has none.
        let seen = match field(&reply, "X-Seen") {
            Some("200 304  true true") if url == "/beresp" => Some("200 304 old true true"),
            other => other,
        };
        assert_eq!(seen, has_seen.then_some("200 304 old true true"), "{url}: {reply}");
        assert_eq!(field(&reply, "ETag"), Some("\"a\""), "{url}: {reply}");
    }
}

#[tokio::test]
async fn a_backend_is_reached_through_a_proxy_and_by_an_abstract_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let name = format!("larder-newer-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = std::os::unix::net::UnixListener::bind_addr(&address).expect("a socket");
    socket.set_nonblocking(true).expect("it is set");
    let socket = UnixListener::from_std(socket).expect("a socket");
    let program = format!(
        "vcl 4.1; backend proxy {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }} \
         backend default {{ .host = \"192.0.2.9\"; .port = \"443\"; .via = proxy; \
         .authority = \"shop.test:443\"; }} \
         backend near {{ .path = \"@{name}\"; }} \
         sub vcl_recv {{ if (req.url == \"/near\") {{ set req.backend_hint = near; }} \
         return (pass); }}"
    );
    let serve = Serve::start(&program, &[]);
    let asked = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).await.expect("bytes");
        bytes.truncate(read);
        let body = &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfar"[..];
        stream.write_all(body).await.expect("answered");
        bytes
    };
    let (reply, bytes) = tokio::join!(serve.get("/far"), asked);
    assert!(reply.ends_with("far"), "{reply}");
    let mut wanted = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x18".to_vec();
    wanted.extend_from_slice(&[192, 0, 2, 9, 192, 0, 2, 9, 1, 187, 1, 187]);
    wanted.extend_from_slice(b"\x02\0\x09shop.test");
    wanted.extend_from_slice(b"GET /far HTTP/1.1\r\n");
    assert!(bytes.starts_with(&wanted), "{}", bytes.escape_ascii());
    let asked = async {
        let (mut stream, _) = socket.accept().await.expect("a connection");
        let mut bytes = vec![0; 4096];
        assert!(stream.read(&mut bytes).await.expect("bytes") > 0);
        let body = &b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnear"[..];
        stream.write_all(body).await.expect("answered");
    };
    let (reply, ()) = tokio::join!(serve.get("/near"), asked);
    assert!(reply.ends_with("near"), "{reply}");
}

#[tokio::test]
async fn a_kept_connection_that_has_ended_is_not_replaced_where_a_program_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let program = format!(
        "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }} \
         sub vcl_recv {{ return (pass); }} sub vcl_backend_fetch {{ \
         set bereq.retry_connect = bereq.url != \"/once\"; }}"
    );
    let serve = Serve::start(&program, &[]);
    for (url, status) in [("/again", "200"), ("/once", "503")] {
        // The first request leaves a connection, which ends when the second comes.
        let asked = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut bytes = vec![0; 4096];
            let body = &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..];
            assert!(stream.read(&mut bytes).await.expect("bytes") > 0);
            stream.write_all(body).await.expect("answered");
            assert!(stream.read(&mut bytes).await.expect("bytes") > 0);
        };
        let more = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).await.expect("bytes");
            let body = &b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"[..];
            assert!(read > 0);
            stream.write_all(body).await.expect("answered");
        };
        // Over one connection, so that both use the same core, which has its own connections.
        let pair = async {
            let mut stream = TcpStream::connect(serve.clients[0]).await.expect("a connection");
            let first = b"GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n";
            stream.write_all(first).await.expect("written");
            let mut reply = Vec::new();
            while !reply.ends_with(b"\r\n\r\nok") {
                assert!(stream.read_buf(&mut reply).await.expect("read") > 0);
            }
            let second = format!("GET {url} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
            stream.write_all(second.as_bytes()).await.expect("written");
            reply.clear();
            stream.read_to_end(&mut reply).await.expect("read");
            String::from_utf8_lossy(&reply).into_owned()
        };
        let reply = match status {
            "200" => {
                let (reply, ()) = tokio::join!(pair, async {
                    asked.await;
                    more.await;
                });
                reply
            }
            _ => {
                let (reply, ()) = tokio::join!(pair, asked);
                reply
            }
        };
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{url}: {reply}");
    }
}
