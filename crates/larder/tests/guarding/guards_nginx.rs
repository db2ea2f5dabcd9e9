//! Guards of a site beside those of nginx: both admit and reject the same requests.

use crate::support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use support::folder::Folder;
use support::nginx::{self, Nginx};
use support::{PATIENCE, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// Made by Debian's `htpasswd`.
const USERS: &str = "ann:$2y$05$pirA/ZQzb4TZXyVzoFnxVO9xpzbhsxFvsySVXQE3G/voezCDT78bO\n\
    bob:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n\
    old:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";

/// The statuses of both for a request.
async fn both(addresses: [SocketAddr; 2], target: &str, fields: &str) -> [u16; 2] {
    let mut statuses = [0; 2];
    for (status, address) in statuses.iter_mut().zip(addresses) {
        let mut raw = RawClient::connect(address).await.expect("a connection").patience(PATIENCE);
        raw.send(&request("GET", target, fields), WriteSplit::Whole).await.expect("it is taken");
        *status = whole(raw.reply("GET").await, target).status;
    }
    statuses
}

#[tokio::test]
async fn passwords_and_another_server_s_word_let_in_the_same() {
    if !nginx::is_here() {
        return;
    }
    let folder = Folder::new();
    folder.file("users", USERS);
    let users = folder.path().join("users").display().to_string();
    let (origin, keeper) = (ScriptedOrigin::start().await, ScriptedOrigin::start().await);
    let (origin, keeper) = (origin.expect("an origin"), keeper.expect("a server"));
    origin.otherwise(Script::cacheable("page"));
    let (site, asked) = (origin.addr(), keeper.addr());
    let server = format!(
        "location /named {{ auth_basic \"x\"; auth_basic_user_file {users}; \
         proxy_pass http://{site}; }}\n\
         location /asked {{ auth_request /verify; proxy_pass http://{site}; }}\n\
         location = /verify {{ internal; proxy_pass http://{asked}/verify; }}\n"
    );
    let theirs = Nginx::start(folder.path(), "access_log off;", ("", &server)).await;
    let daemon = Daemon::start(&format!(
        "listen = \"127.0.0.1:0\"\n[[site]]\nhost = \"*\"\norigin = \"http://{site}\"\n\
         [[site.route]]\npath = \"/named*\"\nbasic_auth = {{ file = \"{users}\" }}\n\
         [[site.route]]\npath = \"/asked*\"\n\
         forward_auth = {{ origin = \"http://{asked}\", path = \"/verify\" }}\n"
    ))
    .expect("larder starts");
    let addresses = [daemon.addr(), theirs.address];
    let basic = |text: &str| format!("Authorization: Basic {}\r\n", BASE64.encode(text.as_bytes()));
    for (fields, status) in [
        (String::new(), 401),
        (basic("ann:password"), 200),
        (basic("ann:Password"), 401),
        (basic("ann:"), 401),
        (basic("ann"), 401),
        (basic(":password"), 401),
        (basic("bob:password"), 200),
        (basic("bob:passwor"), 401),
        (basic("old:password"), 200),
        (basic("old:x"), 401),
        (basic("eve:password"), 401),
        (basic("ann:password").replace("Basic", "bAsIc"), 200),
        ("Authorization: Bearer YW5uOnBhc3N3b3Jk\r\n".to_owned(), 401),
        ("Authorization: Basic\r\n".to_owned(), 401),
        ("Authorization: Basic !!!!\r\n".to_owned(), 401),
    ] {
        assert_eq!(both(addresses, "/named", &fields).await, [status; 2], "{fields}");
    }
    for (answer, status) in [
        ("200 OK", 200),
        ("204 No Content", 200),
        ("202 Accepted", 200),
        ("401 Unauthorized", 401),
        ("403 Forbidden", 403),
    ] {
        let length = if answer.starts_with("204") { "" } else { "Content-Length: 0\r\n" };
        keeper.otherwise(Script::respond(format!("HTTP/1.1 {answer}\r\n{length}\r\n")));
        assert_eq!(both(addresses, "/asked", "").await, [status; 2], "{answer}");
    }
}

#[tokio::test]
async fn of_a_burst_as_many_are_let_in() {
    if !nginx::is_here() {
        return;
    }
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::cacheable("page"));
    let site = origin.addr();
    for burst in [0, 1, 5] {
        let mut rounds = 0;
        loop {
            let folder = Folder::new();
            let nodelay = match burst {
                0 => String::new(),
                burst => format!(" burst={burst} nodelay"),
            };
            let server = format!(
                "limit_req_status 429;\nlocation / {{ limit_req zone=all{nodelay}; \
                 proxy_pass http://{site}; }}\n"
            );
            let zone = "access_log off;\nlimit_req_zone $binary_remote_addr zone=all:1m rate=1r/m;";
            let theirs = Nginx::start(folder.path(), zone, ("", &server)).await;
            let daemon = Daemon::start(&format!(
                "listen = \"127.0.0.1:0\"\n[[site]]\nhost = \"*\"\norigin = \"http://{site}\"\n\
                 rate = {{ requests = \"1/m\", burst = {burst} }}\n"
            ))
            .expect("larder starts");
            let began = Instant::now();
            let mut seen = Vec::new();
            for _ in 0..burst + 3 {
                seen.push(both([daemon.addr(), theirs.address], "/page", "").await);
            }
            // A machine that stood still for a minute has earned one more.
            if began.elapsed() < Duration::from_secs(55) {
                let expected: Vec<_> =
                    (0..burst + 3).map(|n| if n <= burst { [200; 2] } else { [429; 2] }).collect();
                assert_eq!(seen, expected, "a burst of {burst}");
                break;
            }
            rounds += 1;
            assert!(rounds < 10, "this machine is too slow to tell");
        }
    }
}
