//! A body that is taken whole before it is delivered, held on an account of its own.

use std::sync::Arc;

use base::memory::Full;
use base::{Account, Held, Limit};
use bytes::Bytes;
use codec::STEP_BYTES;
use origin::Exchange;

use super::{Collected, Fetch};
use crate::recode::{Coder, Recode, Strides, decode_limits, limit_of};

/// Bytes that are held first for a body of unknown length.
const FIRST_BYTES: usize = 16 * 1024;

/// Collects the whole body of `exchange`, changed as `recode` says.
///
/// # Errors
/// Why it is not there, in words.
pub(super) async fn whole(
    fetch: &Fetch,
    mut exchange: Exchange,
    recode: Recode,
) -> Result<Collected, String> {
    let cache = &fetch.core.shared.cache;
    let most = cache.config().object_bytes_max;
    let too_large = || Err("body too large (limit: object_bytes)".to_owned());
    let length = exchange.framing.length();
    if length.is_some_and(|length| length > most) {
        return too_large();
    }
    let no_memory = |_| {
        fetch.core.counters.limit(Limit::ClientMemory);
        "no memory for the body (limit: client_memory)".to_owned()
    };
    let expected = length.filter(|_| !recode.changes());
    let limits = decode_limits(&fetch.live.limits);
    let with = (limits, &fetch.passage.account);
    let mut coder = Coder::new(recode, length, with).map_err(|error| error.to_string())?;
    let account = Account::open_large(cache.memory());
    let mut body = Gathered::new(&account, expected).map_err(no_memory)?;
    let mut turns = Strides::default();
    loop {
        let mut taken = Ok(());
        let sink = &mut |data: &[u8]| match &mut coder {
            Some(coder) => coder.take(data),
            None => taken = taken.and_then(|()| body.push(data)),
        };
        let more = exchange.next(sink).await.map_err(|error| error.to_string())?;
        while let Some(coder) = &mut coder
            && let Some(out) = coder.step(!more).map_err(|error| flaw(fetch, error))?
        {
            let made = out.len();
            taken = taken.and_then(|()| body.push(out));
            if taken.is_err() || body.len() > most {
                break;
            }
            turns.pass(made).await;
        }
        taken.map_err(no_memory)?;
        match more {
            _ if body.len() > most => return too_large(),
            true => {}
            false => break,
        }
    }
    let plain = coder.as_ref().and_then(Coder::plain_length);
    Ok(Collected { bytes: body.into_bytes(), plain })
}

/// Codes a body that is there as `recode` says.
///
/// # Errors
/// Why it cannot be, in words.
pub(super) async fn coded(
    fetch: &Fetch,
    plain: &[u8],
    recode: Recode,
) -> Result<Collected, String> {
    let no_memory = |_| {
        fetch.core.counters.limit(Limit::ClientMemory);
        "no memory for the body (limit: client_memory)".to_owned()
    };
    let length = plain.len() as u64;
    let limits = decode_limits(&fetch.live.limits);
    let with = (limits, &fetch.passage.account);
    let coder = Coder::new(recode, Some(length), with).map_err(|error| error.to_string())?;
    let Some(mut coder) = coder else {
        return Ok(Collected { bytes: Bytes::copy_from_slice(plain), plain: None });
    };
    let account = Account::open_large(fetch.core.shared.cache.memory());
    let mut body = Gathered::new(&account, None).map_err(no_memory)?;
    let mut turns = Strides::default();
    // An empty body has a form in the coding, too.
    let empty = plain.is_empty().then_some(plain);
    for piece in plain.chunks(STEP_BYTES).chain(empty) {
        coder.take(piece);
        // The coder knows by the length which piece is the last.
        while let Some(out) = coder.step(false).map_err(|error| flaw(fetch, error))? {
            let made = out.len();
            body.push(out).map_err(no_memory)?;
            turns.pass(made).await;
        }
    }
    Ok(Collected { bytes: body.into_bytes(), plain: Some(length) })
}

/// The words for a body that is not in its coding, or beyond a limit.
fn flaw(fetch: &Fetch, error: codec::Error) -> String {
    if let Some(limit) = limit_of(error) {
        fetch.core.counters.limit(limit);
    }
    format!("the body is not in the coding that it claims: {error}")
}

/// The part of a body that has arrived.
pub(crate) struct Gathered {
    data: Vec<u8>,
    held: Held,
}

impl AsRef<[u8]> for Gathered {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Gathered {
    /// Nothing yet, with room for a body of the `length` that was declared, held on `account`.
    ///
    /// # Errors
    /// When there is no memory for that.
    pub(crate) fn new(account: &Arc<Account>, length: Option<u64>) -> Result<Self, Full> {
        let room =
            length.map_or(FIRST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let held = account.hold(room as u64)?;
        Ok(Self { data: Vec::with_capacity(room), held })
    }

    /// Bytes that have come.
    pub(crate) fn len(&self) -> u64 {
        self.data.len() as u64
    }

    /// Takes more of it.
    ///
    /// # Errors
    /// When there is no memory for that.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Full> {
        let wanted = self.data.len() + data.len();
        if wanted > self.data.capacity() {
            let room = wanted.max(2 * self.data.capacity());
            // While it moves there are both.
            self.held.grow(room as u64)?;
            self.data.reserve_exact(room - self.data.len());
            self.held.shrink_to(room as u64);
        }
        self.data.extend_from_slice(data);
        Ok(())
    }

    /// The body, held as long as anybody has a part of it.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

#[cfg(test)]
mod tests {
    use base::Memory;

    use super::*;

    #[test]
    fn a_body_is_held_until_its_last_part_is_gone() {
        let memory = Memory::new(1 << 20, 1 << 19);
        let account = Account::open_large(&memory);
        let mut body = Gathered::new(&account, None).expect("there is room");
        for _ in 0..5 {
            body.push(&[7; 10_000]).expect("there is room");
        }
        assert_eq!(body.len(), 50_000);
        let bytes = body.into_bytes();
        let part = bytes.slice(40_000..);
        drop(bytes);
        assert_eq!((part.len(), memory.held() >= 50_000), (10_000, true));
        drop((part, account));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_body_for_which_there_is_no_memory_is_refused() {
        let memory = Memory::new(1 << 20, 1 << 19);
        let account = Account::open_large(&memory);
        assert!(Gathered::new(&account, Some(u64::MAX)).is_err());
        assert!(Gathered::new(&account, Some(1 << 20)).is_err());
        let mut body = Gathered::new(&account, None).expect("there is room");
        let pushed = (0..100).take_while(|_| body.push(&[7; 10_000]).is_ok()).count();
        assert!((5..50).contains(&pushed), "{pushed}");
        drop((body, account));
        assert_eq!(memory.held(), 0);
    }
}
