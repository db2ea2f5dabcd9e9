//! Quick figures of a machine, within a second or two each: one core, all cores together, memory,
//! disk, TLS handshakes.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tls::{CertificateKeyPair, Domain, Handshake, ServerContext, TicketKeys, Upstream};
use tokio_rustls::rustls::ClientConnection;

/// Bytes copied to measure memory; more than the processor's cache of one core.
const COPIED: usize = 64 << 20;
/// Bytes per write.
const PIECE: usize = 1 << 20;
/// Small synchronous writes.
const SYNCS: usize = 20;
const SYNC_BYTES: usize = 4096;
/// Server name of the handshakes.
const NAME: &str = "localhost";

/// Limits of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Time for each figure.
    pub time: Duration,
    /// Most bytes written to the disk.
    pub disk_bytes: usize,
}

/// The figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Millions of dependent loop steps per second on one core: about half its clock in megahertz.
    pub one_core: f64,
    /// Millions of dependent loop steps per second on all cores together.
    pub all_cores: f64,
    /// Bytes per second that a core copies.
    pub copied: f64,
    /// Figures of the disk, or the reason for which the folder cannot be written.
    pub disk: Result<Disk, String>,
    /// Full TLS 1.3 handshakes per second of one serving core, with an elliptic key (P-256).
    pub handshakes: f64,
}

/// The figures of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Bytes per second, with the final sync.
    pub written: f64,
    /// Median time of a synchronous write of 4 KiB.
    pub sync: Duration,
}

/// Measures the machine. The disk is measured with an unnamed file in `folder`.
///
/// # Errors
/// A TLS context that cannot be made.
pub fn measure(folder: &Path, effort: Effort) -> Result<Figures, String> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let one_core = steps(effort.time);
    let all_cores: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| steps(effort.time))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    Ok(Figures {
        one_core: one_core / 1e6,
        all_cores: all_cores / 1e6,
        copied: copied(effort.time),
        disk: disk(folder, effort).map_err(|error| format!("{}: {error}", folder.display())),
        handshakes: handshakes(effort.time)?,
    })
}

/// Loop steps per second, each dependent on the one before.
fn steps(time: Duration) -> f64 {
    const BLOCK: u64 = 1 << 20;
    let began = Instant::now();
    let (mut value, mut blocks) = (1_u64, 0_u64);
    while began.elapsed() < time {
        for step in 0..BLOCK {
            value = (value ^ step).rotate_left(7);
        }
        value = black_box(value);
        blocks += 1;
    }
    (blocks * BLOCK) as f64 / began.elapsed().as_secs_f64()
}

/// Bytes per second copied in memory.
fn copied(time: Duration) -> f64 {
    let (from, mut to) = (vec![1_u8; COPIED], vec![0_u8; COPIED]);
    let began = Instant::now();
    let mut bytes = 0.0;
    while began.elapsed() < time {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        bytes += COPIED as f64;
    }
    bytes / began.elapsed().as_secs_f64()
}

fn disk(folder: &Path, effort: Effort) -> std::io::Result<Disk> {
    let mut file = unnamed(folder)?;
    let piece = vec![0x5a_u8; PIECE.min(effort.disk_bytes.max(1))];
    let began = Instant::now();
    let mut written = 0;
    while written < effort.disk_bytes && began.elapsed() < effort.time {
        file.write_all(&piece)?;
        written += piece.len();
    }
    file.sync_data()?;
    let rate = written as f64 / began.elapsed().as_secs_f64().max(1e-9);
    let small = vec![0x5a_u8; SYNC_BYTES];
    let mut times = Vec::new();
    let began = Instant::now();
    while times.is_empty() || times.len() < SYNCS && began.elapsed() < effort.time {
        let one = Instant::now();
        file.write_all(&small)?;
        file.sync_data()?;
        times.push(one.elapsed());
    }
    times.sort_unstable();
    let sync = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(Disk { written: rate, sync })
}

/// Makes a file that is removed when it is closed, even if this program is killed.
fn unnamed(folder: &Path) -> std::io::Result<File> {
    let path = folder.join(format!(".larder-bench-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Handshakes per second, by the serving side's time.
fn handshakes(time: Duration) -> Result<f64, String> {
    let own = |error: &dyn std::fmt::Display| format!("TLS: {error}");
    let signed = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|e| own(&e))?;
    let (chain, key) = (signed.cert.pem(), signed.signing_key.serialize_pem());
    let pair =
        CertificateKeyPair::parse(chain.as_bytes(), key.as_bytes()).map_err(|error| own(&error))?;
    let shown = Domain { pairs: vec![Arc::new(pair)], auth: None };
    let keys = TicketKeys::new().map_err(|error| own(&error))?;
    let server = ServerContext::new(Vec::new(), Some(shown), Box::new(|_| None), false, &keys)
        .map_err(|error| own(&error))?;
    let upstream = Upstream::new(None, None).map_err(|error| own(&error))?;
    let peer = upstream.offering(&["http/1.1"], false).peer(NAME).ok_or("TLS: no client")?;
    let (began, mut served, mut count) = (Instant::now(), Duration::ZERO, 0_u32);
    while began.elapsed() < time || count == 0 {
        let client = ClientConnection::new(peer.config(), peer.name());
        served += shake(client.map_err(|error| own(&error))?, &server)
            .map_err(|error| format!("TLS: {error}"))?;
        count += 1;
    }
    Ok(f64::from(count) / served.as_secs_f64().max(1e-9))
}

/// Does one handshake. Returns the server's time.
fn shake(mut client: ClientConnection, server: &ServerContext) -> Result<Duration, String> {
    let mut served = Duration::ZERO;
    let mut handshake = Handshake::default();
    let mut message = Vec::new();
    while client.is_handshaking() || !handshake.is_done() {
        message.clear();
        while client.wants_write() {
            client.write_tls(&mut message).map_err(|error| error.to_string())?;
        }
        let began = Instant::now();
        handshake.feed(&message, server).map_err(|error| error.to_string())?;
        message.clear();
        while !handshake.is_sent() {
            handshake.send(&mut message).map_err(|error| error.to_string())?;
        }
        served += began.elapsed();
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).map_err(|error| error.to_string())?;
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_measured() {
        let effort = Effort { time: Duration::from_millis(20), disk_bytes: 1 << 16 };
        let folder = std::env::temp_dir();
        let figures = measure(&folder, effort).expect("figures");
        let Figures { one_core, all_cores, copied, disk, handshakes } = figures;
        let disk = disk.expect("a disk");
        for figure in [one_core, all_cores, copied, disk.written, handshakes] {
            assert!(figure.is_finite() && figure > 1.0, "{figure}");
        }
        assert!(disk.sync > Duration::ZERO);
        let nowhere = measure(Path::new("/nowhere"), effort).expect("figures").disk;
        assert!(nowhere.is_err_and(|why| why.contains("/nowhere")));
    }
}
