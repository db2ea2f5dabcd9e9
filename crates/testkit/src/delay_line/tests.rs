//! Bytes leave a line complete and not early. No test requires a speed.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::net::TcpListener;

use super::direction::IN_FLIGHT_BYTES;
use super::*;

const FAST: Conditions =
    Conditions { delay: Duration::ZERO, jitter: Duration::ZERO, rate: None, loss: 0.0, seed: 1 };

const MIB: usize = 1 << 20;

/// Bytes that show a gap or a wrong order.
fn numbered(count: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(7);
    (0..count).map(|_| random.u8(..)).collect()
}

/// A line, with the streams at both ends.
async fn ends(conditions: Conditions) -> (DelayLine, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let line = DelayLine::start(free, listener.local_addr().unwrap(), conditions).await.unwrap();
    let client = TcpStream::connect(line.addr()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (line, client, server)
}

/// Sends `bytes` and the end on a stream while reading from it.
async fn exchange(mut stream: TcpStream, bytes: &[u8]) -> Vec<u8> {
    let (mut from, mut to) = stream.split();
    let send = async {
        to.write_all(bytes).await?;
        to.shutdown().await
    };
    let mut received = Vec::new();
    tokio::try_join!(send, from.read_to_end(&mut received)).unwrap();
    received
}

/// Sends a mebibyte both ways at once, and compares what arrives with what was sent.
async fn whole_both_ways(conditions: Conditions) {
    let (_line, client, server) = ends(conditions).await;
    let (up, mut down) = (numbered(MIB), numbered(MIB));
    down.reverse();
    let (at_client, at_server) = tokio::join!(exchange(client, &up), exchange(server, &down));
    assert!(at_server == up && at_client == down, "{conditions:?}");
}

/// The times by which each piece has left a direction.
fn times(conditions: Conditions, pieces: &[(u64, usize)]) -> Vec<u64> {
    let opened = Instant::now();
    let at = |ms| opened + Duration::from_millis(ms);
    let mut direction = Direction::new(conditions, Rng::with_seed(1), opened);
    let mut out = Vec::new();
    for (ms, count) in pieces {
        direction.take(&vec![0; *count], at(*ms));
        direction.arrive(at(*ms));
        let mut came = *ms;
        while let Some(next) = direction.next() {
            direction.arrive(next);
            came = (next - opened).as_millis() as u64;
        }
        out.push(came);
    }
    out
}

#[tokio::test]
async fn bytes_come_out_whole_and_in_order_both_ways() {
    whole_both_ways(FAST).await;
    let (delay, jitter) = (Duration::from_millis(20), Duration::from_millis(10));
    whole_both_ways(Conditions { delay, jitter, ..FAST }).await;
}

#[tokio::test]
async fn loss_changes_no_byte() {
    whole_both_ways(Conditions { loss: 0.01, ..FAST }).await;
    whole_both_ways(Conditions { loss: 1.0, ..FAST }).await;
}

#[tokio::test]
async fn nothing_arrives_before_its_delay() {
    let delay = Duration::from_millis(30);
    let asked = Instant::now();
    let (_line, mut client, mut server) = ends(Conditions { delay, ..FAST }).await;
    assert!(asked.elapsed() >= delay, "the connection");
    client.write_all(b"a").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'a');
    assert!(asked.elapsed() >= 3 * delay, "the first byte");
    let answered = Instant::now();
    server.write_all(b"b").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'b');
    assert!(answered.elapsed() >= delay, "the answer");
}

#[tokio::test]
async fn bytes_take_the_time_of_the_rate() {
    let conditions = Conditions { rate: NonZeroU64::new(1_000_000), ..FAST };
    let (_line, client, server) = ends(conditions).await;
    let (began, bytes) = (Instant::now(), numbered(200_000));
    let (_, received) = tokio::join!(exchange(client, &bytes), exchange(server, b""));
    assert!(received == bytes);
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn a_lost_segment_holds_what_is_behind_it() {
    let (delay, rate) = (Duration::from_millis(20), NonZeroU64::new(1_460_000));
    let slow = Conditions { delay, rate, ..FAST };
    assert_eq!(times(slow, &[(0, 1460), (10, 2920), (11, 1460)]), [21, 32, 33]);
    let lossy = Conditions { loss: 1.0, ..slow };
    assert_eq!(times(lossy, &[(0, 1460)]), [221]);
    let far = Conditions { delay: Duration::from_millis(150), loss: 1.0, ..FAST };
    assert_eq!(times(far, &[(0, 1)]), [450]);

    let half = Conditions { loss: 0.5, ..FAST };
    let pieces: Vec<_> = (0..100).map(|ms| (ms, 1)).collect();
    let out = times(half, &pieces);
    assert!(out.is_sorted(), "{out:?}");
    assert!(out[99] >= 200, "{out:?}");
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let delay = Duration::from_millis(10);
    let (_line, mut client, mut server) = ends(Conditions { delay, ..FAST }).await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).await.unwrap();
    assert_eq!(question, "question");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
}

#[tokio::test]
async fn a_reset_of_one_end_resets_the_other() {
    for client_resets in [true, false] {
        let (_line, client, server) = ends(FAST).await;
        let (gone, mut other) = if client_resets { (client, server) } else { (server, client) };
        gone.set_zero_linger().unwrap();
        drop(gone);
        let kind = other.read_u8().await.unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::ConnectionReset, "the client's: {client_resets}");
    }
}

#[tokio::test]
async fn a_line_without_a_server_resets() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let line = DelayLine::start(SocketAddr::from(([127, 0, 0, 1], 0)), nobody, FAST).await.unwrap();
    let mut client = TcpStream::connect(line.addr()).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_full_direction_takes_nothing() {
    let opened = Instant::now();
    let mut direction = Direction::new(FAST, Rng::with_seed(1), opened);
    assert_eq!(direction.room(), IN_FLIGHT_BYTES);
    direction.take(&vec![0; IN_FLIGHT_BYTES], opened);
    assert_eq!(direction.room(), 0);
    direction.arrive(opened);
    direction.sent(1000);
    assert_eq!(direction.room(), 1000);
    direction.finish(opened);
    assert_eq!(direction.room(), 0, "after the end");

    let delay = Duration::from_secs(2);
    let long = Conditions { delay, rate: NonZeroU64::new(MIB as u64), ..FAST };
    assert_eq!(Direction::new(long, Rng::with_seed(1), opened).room(), 2 * MIB);
}
