//! What is held beside bodies that are not read: uploads.

use std::net::SocketAddr;
use std::path::Path;

use testkit::h2::{Frame, PREFACE, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fortress::Fortress;
use crate::support::folder::Folder;

/// Bytes of each upload: less than the limit `spool_bytes`.
const SPOOLED: usize = 900_000;

/// Connections that upload.
const UPLOADERS: u32 = 6;

/// A site whose scripts below `root` are FastCGI's, beside one that is not.
fn with_scripts(origin: SocketAddr, root: &Path) -> String {
    let root = root.display();
    format!(
        "[[origin]]\nname = \"app\"\nservers = \"http://{origin}\"\n\
         [[origin]]\nname = \"php\"\nservers = \"fastcgi://{origin}\"\nroot = \"{root}\"\n\
         [[site]]\nhost = \"scripts.test\"\norigin = \"php\"\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn spooled_uploads_take_what_is_allowed() {
    let root = Folder::new();
    root.file("index.php", "<?php");
    let fortress = Fortress::with(|origin| with_scripts(origin, root.path())).await;
    let mut open = Vec::new();
    for n in 0..UPLOADERS {
        let mut stream = TcpStream::connect(fortress.daemon.addr()).await.expect("a connection");
        let mut bytes = PREFACE.to_vec();
        bytes.extend(Frame::settings(&[]).bytes());
        let post = Request::post("/upload").set(":authority", "scripts.test").block();
        for stream in 0..100 {
            bytes.extend(Frame::headers(2 * stream + 1, post.bytes().to_vec(), false).bytes());
        }
        stream.write_all(&bytes).await.expect("sent");
        let (read, mut write) = stream.into_split();
        open.push(tokio::spawn(async move {
            let piece = vec![b'x'; 8 * 1024];
            'all: for _ in 0..SPOOLED / piece.len() {
                for stream in 0..100 {
                    let frame = Frame::data(2 * stream + 1, &piece, false).bytes();
                    if write.write_all(&frame).await.is_err() {
                        break 'all;
                    }
                }
            }
            drop(read);
        }));
        fortress.stands(&format!("{} connections", n + 1)).await;
    }
    fortress.reached("client_memory").await;
    fortress.stands("a while later").await;
    for task in open {
        task.abort();
    }
}
