//! Bodies stored in gzip, for clients that do not take it: they pass through a window, so that what
//! a few bytes unfold to is never held in memory.

use std::io::Write;

use cache::{Body, BodyWriter, Push, Reader};
use flate2::write::GzDecoder;

/// Bytes unfolded at once: gzip makes at most about a thousand of one.
const STEP_BYTES: usize = 512;

/// The body that `coded` unfolds to, at most about `window` bytes ahead of who reads it. What is no
/// gzip, or not all of it, breaks off.
pub(crate) fn unfold(coded: Reader, window: u64) -> Reader {
    let (writer, reader) = Body::window(window);
    tokio::task::spawn_local(pump(coded, writer));
    reader
}

async fn pump(mut coded: Reader, mut writer: BodyWriter) {
    let mut decoder = GzDecoder::new(Vec::new());
    loop {
        let piece = match coded.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(_) => return writer.abort(),
        };
        for step in piece.chunks(STEP_BYTES) {
            if decoder.write_all(step).is_err() || !pass(&mut decoder, &mut writer).await {
                return writer.abort();
            }
        }
    }
    if decoder.try_finish().is_ok() && pass(&mut decoder, &mut writer).await {
        writer.finish();
    } else {
        writer.abort();
    }
}

/// Hands on what has been unfolded; whether anybody is there to take it.
async fn pass(decoder: &mut GzDecoder<Vec<u8>>, writer: &mut BodyWriter) -> bool {
    let plain = decoder.get_mut();
    let push = if plain.is_empty() { Push::Ok } else { writer.push(plain) };
    plain.clear();
    match push {
        Push::Ok => true,
        _ => writer.room().await.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;

    /// What `coded` unfolds to; none where it breaks off.
    fn unfolded(coded: &[u8]) -> Option<Vec<u8>> {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            let (mut writer, reader) = Body::window(1 << 20);
            _ = writer.push(coded);
            writer.finish();
            let mut reader = unfold(reader, 1 << 10);
            let mut all = Vec::new();
            loop {
                match reader.next().await {
                    Ok(Some(piece)) => all.extend_from_slice(&piece),
                    Ok(None) => return Some(all),
                    Err(_) => return None,
                }
            }
        })
    }

    #[test]
    fn what_was_folded_is_unfolded_and_what_is_cut_breaks_off() {
        let plain = b"the same again and again, ".repeat(10_000);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain).expect("memory");
        let coded = encoder.finish().expect("memory");
        assert_eq!(unfolded(&coded).as_deref(), Some(&plain[..]));
        assert_eq!(unfolded(&coded[..coded.len() - 1]), None);
        assert_eq!(unfolded(b"no gzip"), None);
    }
}
