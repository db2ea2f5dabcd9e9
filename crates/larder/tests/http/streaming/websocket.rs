//! WebSocket as a library speaks it, at both ends.

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{
    CloseFrame, WebSocketConfig, frame::coding::CloseCode,
};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

use testkit::larder::Daemon;

use crate::support::tls::{Authority, Kind};
use crate::support::{PATIENCE, eventually, pattern};

const LARGE: usize = 10 << 20;

fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(2 * LARGE)).max_frame_size(Some(2 * LARGE))
}

/// Sends back what it receives; "bye" closes the connection.
async fn echo(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(mut socket) = accept_async_with_config(stream, Some(config())).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let done = match &message {
            Message::Text(text) if text.as_str() == "bye" => {
                let frame = CloseFrame { code: CloseCode::Away, reason: "server".into() };
                socket.close(Some(frame)).await
            }
            Message::Text(_) | Message::Binary(_) => socket.send(message).await,
            _ => Ok(()),
        };
        if done.is_err() {
            return;
        }
    }
}

struct Chat {
    daemon: Daemon,
    server: JoinHandle<()>,
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept_tcp(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(echo(stream));
    }
}

impl Chat {
    fn start(servers: &str, more: &str, server: JoinHandle<()>) -> Self {
        let config = format!(
            "{more}\nworkers = 2\n[[origin]]\nname = \"app\"\n{servers}\n[[site]]\nhost = \"*\"\n\
             origin = \"app\"\n"
        );
        Self { daemon: Daemon::start(&config).expect("larder starts"), server }
    }

    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let servers =
            format!("servers = \"http://{}\"", listener.local_addr().expect("an address"));
        Self::start(&servers, "listen = \"127.0.0.1:0\"", tokio::spawn(accept_tcp(listener)))
    }

    async fn connect(&self) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.daemon.addr()).await.expect("a connection");
        open("ws", stream).await
    }
}

async fn open<S: AsyncRead + AsyncWrite + Unpin>(scheme: &str, stream: S) -> WebSocketStream<S> {
    let url = format!("{scheme}://larder.test/chat");
    let opening = client_async_with_config(url, stream, Some(config()));
    timeout(PATIENCE, opening).await.expect("in time").expect("a handshake").0
}

async fn next<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) -> Message {
    let next = timeout(PATIENCE, socket.next()).await.expect("in time");
    next.expect("a message").expect("a whole one")
}

/// Many small messages, a large one, and a close by the client.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>, small: usize) {
    for round in 0..small {
        let message = Message::text(format!("message {round}"));
        socket.send(message.clone()).await.expect("sent");
        assert_eq!(next(&mut socket).await, message);
    }
    let large = Message::binary(pattern(LARGE));
    socket.send(large.clone()).await.expect("sent");
    assert!(next(&mut socket).await == large);
    let frame = CloseFrame { code: CloseCode::Normal, reason: "client".into() };
    socket.close(Some(frame.clone())).await.expect("sent");
    assert_eq!(next(&mut socket).await, Message::Close(Some(frame)));
    assert!(timeout(PATIENCE, socket.next()).await.expect("in time").is_none());
}

#[tokio::test]
async fn a_thousand_messages_and_a_large_one() {
    let chat = Chat::new().await;
    converse(chat.connect().await, 1000).await;
    let open =
        async || chat.daemon.metric("larder_tunnels_open", "").await.expect("metrics") == 0.0;
    eventually("its end", open).await;
}

#[tokio::test]
async fn messages_sent_all_at_once_come_back_in_order() {
    let chat = Chat::new().await;
    let (mut sink, mut stream) = chat.connect().await.split();
    let send = async {
        for round in 0..2000 {
            sink.send(Message::text(format!("{round} {}", "x".repeat(round)))).await.expect("sent");
        }
    };
    let receive = async {
        for round in 0..2000 {
            let message = stream.next().await.expect("a message").expect("a whole one");
            assert!(message.to_text().expect("text").starts_with(&format!("{round} ")));
        }
    };
    timeout(PATIENCE, async { tokio::join!(send, receive) }).await.expect("in time");
}

#[tokio::test]
async fn a_server_may_close() {
    let chat = Chat::new().await;
    let mut socket = chat.connect().await;
    socket.send(Message::text("bye")).await.expect("sent");
    let Message::Close(Some(frame)) = next(&mut socket).await else { panic!("no close") };
    assert_eq!((frame.code, frame.reason.as_str()), (CloseCode::Away, "server"));
    assert!(timeout(PATIENCE, socket.next()).await.expect("in time").is_none());
}

#[tokio::test]
async fn through_tls_on_either_side() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test", "localhost"], Kind::Elliptic);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = listener.local_addr().expect("an address");
    let acceptor = authority.acceptor("site");
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    echo(stream).await;
                }
            });
        }
    });
    let servers = format!(
        "servers = \"https://localhost:{}\"\ntls = {{ ca = {:?} }}",
        origin.port(),
        authority.path("ca.pem")
    );
    let pair = authority.pair("site");
    let more = format!("listen = \"127.0.0.1:0 tls\"\ntls = {{ {pair} }}");
    let chat = Chat::start(&servers, &more, server);
    let client = authority.client();
    let connection = client.connect(chat.daemon.addr(), "larder.test").await;
    converse(open("wss", connection.stream).await, 200).await;
}

#[tokio::test]
async fn to_an_origin_behind_a_unix_socket() {
    let folder = std::env::temp_dir().join(format!("larder-ws-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("app.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(echo(stream));
        }
    });
    let servers = format!("servers = \"unix:{}\"", path.display());
    let chat = Chat::start(&servers, "listen = \"127.0.0.1:0\"", server);
    converse(chat.connect().await, 50).await;
    std::fs::remove_dir_all(&folder).expect("it is there");
}
