//! Entry points for fuzzing: each hands arbitrary bytes to one parser and checks what must hold of
//! any result. They panic when it does not; nothing else calls them but tests.

use message::{HeaderBlock, HeaderId};

use crate::accept;
use crate::config::Coding;

/// A coding is chosen only by who names it, or any; and what is refused by name never is.
pub fn accept_encoding(data: &[u8]) {
    let mut headers = HeaderBlock::new();
    headers.push(HeaderId::AcceptEncoding, data);
    let Some(at) = accept::choose(&headers, Coding::ALL.into_iter()) else { return };
    let lower = data.to_ascii_lowercase();
    let named = |name: &[u8]| memchr::memmem::find(&lower, name).is_some();
    assert!(named(Coding::ALL[at].token().as_bytes()) || named(b"*"));
    // Said last, it counts.
    let refused = [data, b",", Coding::ALL[at].token().as_bytes(), b";q=0"].concat();
    let mut headers = HeaderBlock::new();
    headers.push(HeaderId::AcceptEncoding, &refused);
    let again = accept::choose(&headers, Coding::ALL.into_iter());
    assert!(again != Some(at) || lower.contains(&b'"'), "a quote may hide what follows it");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_judged(data in "[a-z*;=,. \"0-9]{0,40}|((br|gzip|zstd|\\*)(;q=[01.]{1,4})?,? ?){0,5}") {
            accept_encoding(data.as_bytes());
        }
    }
}
