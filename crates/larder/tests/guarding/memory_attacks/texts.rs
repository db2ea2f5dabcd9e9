//! Texts as bodies, plain or coded, and pages of fragments.

use std::sync::OnceLock;

use codec::{Coding, EncodeSettings, Encoder, FlushMode};

/// The logarithm of the largest window that a coding of HTTP may have (RFC 9659), 8 MiB.
const LARGEST_WINDOW: u8 = 23;

/// Bytes of one text after which the next begins: further apart than a window of gzip reaches, so
/// that it is folded as far as text is, and not beyond.
const TEXT_BYTES: usize = 96 << 10;

/// Random words.
fn text() -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut random = fastrand::Rng::with_seed(7);
        let mut text = String::new();
        while text.len() < TEXT_BYTES {
            let word: String = (0..random.usize(2..9)).map(|_| random.lowercase()).collect();
            text.push_str(&word);
            text.push(if random.u8(0..9) == 0 { '\n' } else { ' ' });
        }
        text.into_bytes()
    })
}

fn coded(coding: Coding, plain: &[u8]) -> Vec<u8> {
    let settings = EncodeSettings::new(coding, 1).expect("a level");
    let settings = settings.with_window_bits(LARGEST_WINDOW).expect("a window");
    let mut encoder = Encoder::new(&settings).expect("memory");
    let (mut coded, mut output, mut at) = (Vec::new(), vec![0; 64 << 10], 0);
    loop {
        let step = encoder.step(&plain[at..], &mut output, FlushMode::Finish).expect("coded");
        at += step.taken;
        coded.extend_from_slice(&output[..step.made]);
        if step.done {
            return coded;
        }
    }
}

/// The number that `target` gives behind `name`.
fn number(target: &str, name: &str) -> Option<usize> {
    let rest = target.split_once(&format!("{name}="))?.1;
    rest.split('&').next()?.parse().ok()
}

/// The answer to `target`, of `length` bytes without their coding: `/text/...`, `/zstd/...` and
/// `/br/...` with the largest window, and `/page/...`, which is put together of
/// `fragments=N&each=BYTES` texts. `None` for all others.
pub(crate) fn answer(target: &str, length: usize) -> Option<Vec<u8>> {
    let kind = target.strip_prefix('/')?.split('/').next()?;
    let plain = || text().iter().copied().cycle().take(length).collect::<Vec<u8>>();
    let (fields, body) = match kind {
        "text" => ("", plain()),
        "zstd" => ("Content-Encoding: zstd\r\n", coded(Coding::Zstd, &plain())),
        "br" => ("Content-Encoding: br\r\n", coded(Coding::Brotli, &plain())),
        "page" => {
            let (count, each) = (number(target, "fragments")?, number(target, "each")?);
            let include = |n| format!("<esi:include src=\"/text/{n}-{each}?bytes={each}\"/>\n");
            let page: String = (0..count).map(include).collect();
            ("Surrogate-Control: content=\"ESI/1.0\"\r\n", page.into_bytes())
        }
        _ => return None,
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/html\r\n{fields}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    Some([head.as_bytes(), &body].concat())
}
