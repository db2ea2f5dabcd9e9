//! Pages of large fragments: they come whole at whatever pace they are read, and what they hold
//! has its bounds.

mod support;

use support::folder::Folder;
use support::h2::{self, H2C};
use support::{PATIENCE, Stage, pattern, whole};
use testkit::client::{Pieces, Raw, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, Scripted};
use tokio::net::TcpSocket;

/// Languages of pages under the policies that read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Esi,
    Ssi,
    Vcl,
}

const KINDS: [Kind; 3] = [Kind::Esi, Kind::Ssi, Kind::Vcl];

/// A daemon for pages of this kind, with further keys at the top of its file and of `[limits]`.
async fn stage(kind: Kind, top: &str, limits: &str) -> (Stage, Folder) {
    let (origin, folder) = (Scripted::start().await.expect("an origin"), Folder::new());
    let addr = origin.addr();
    let site = match kind {
        Kind::Esi => "origin = \"app\"\n".to_owned(),
        Kind::Ssi => "origin = \"app\"\nincludes = { ssi = true }\n".to_owned(),
        Kind::Vcl => {
            let backend = format!(
                "backend app {{ .host = \"{}\"; .port = \"{}\"; }}",
                addr.ip(),
                addr.port()
            );
            let program = "sub vcl_backend_response {
                if (bereq.url ~ \"page\") { set beresp.do_esi = true; }
                if (bereq.url ~ \"text\") { set beresp.do_gzip = true; }
            }";
            folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{program}\n"));
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        }
    };
    let origins = match kind {
        Kind::Vcl => String::new(),
        _ => format!("[[origin]]\nname = \"app\"\nservers = \"http://{addr}\"\n"),
    };
    let file = format!(
        "{H2C}\nworkers = 2\n{top}\n[limits]\n{limits}\n{origins}[[site]]\nhost = \"*\"\n{site}"
    );
    (Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }, folder)
}

/// An instruction for `src`, as pages of this kind have it.
fn include(kind: Kind, src: &str) -> String {
    match kind {
        Kind::Ssi => format!("<!--#include virtual=\"{src}\" -->"),
        Kind::Esi | Kind::Vcl => format!("<esi:include src=\"{src}\"/>"),
    }
}

/// A page that names its fragments, each with a text before it.
fn page(kind: Kind, lifetime: &str, texts: &[&str], srcs: &[&str]) -> Script {
    let mut body = "<p>".to_owned();
    for (text, src) in texts.iter().zip(srcs) {
        body = body + text + &include(kind, src);
    }
    let fields = format!(
        "Cache-Control: {lifetime}\r\nContent-Type: text/html\r\n{}",
        if kind == Kind::Esi { "Surrogate-Control: content=\"ESI/1.0\"\r\n" } else { "" }
    );
    Script::ok(&fields, &body)
}

fn letters(bytes: usize) -> String {
    String::from_utf8(pattern(bytes)).expect("letters")
}

/// A connection whose kernel takes little at once.
async fn narrow(stage: &Stage) -> Raw {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 * 1024).expect("a small buffer");
    let stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    Raw::over(stream).patience(PATIENCE)
}

#[tokio::test]
async fn a_long_page_with_fragments_that_are_not_at_hand_comes_whole_at_every_pace() {
    let text = letters(350_000);
    let (new, kept) = (Script::ok("Cache-Control: no-store\r\n", &text), Script::cacheable(&text));
    let whole_page = format!("<p>{text}{text}ab{text}");
    for kind in KINDS {
        let (stage, _folder) = stage(kind, "", "").await;
        stage.origin.on("/new/1", new.clone());
        stage.origin.on("/kept", kept.clone());
        stage.origin.on("/cart", Script::ok("Cache-Control: no-store\r\n", "a"));
        for lifetime in ["max-age=60", "no-store"] {
            let target = format!("/page?{lifetime}");
            let srcs = ["/new/1", "/cart", "/kept"];
            stage.origin.on(&target, page(kind, lifetime, &[&text, "", "b"], &srcs));
            for _ in 0..4 {
                let asked = format!("{kind:?} {target}");
                assert_eq!(stage.get(&target).await.text(), whole_page, "{asked}");
                let mut client = h2::client(&stage.daemon).await;
                let answer = client.get(&target).await.answer(&asked);
                assert!(answer.body == whole_page.as_bytes(), "{asked} over HTTP/2");
                let mut raw = narrow(&stage).await;
                raw.send(&request("GET", &target, ""), Pieces::Whole).await.expect("sent");
                // It stands until its windows are full.
                support::pause(50).await;
                assert_eq!(whole(raw.reply("GET").await, &asked).text(), whole_page, "{asked}");
            }
        }
    }
}
