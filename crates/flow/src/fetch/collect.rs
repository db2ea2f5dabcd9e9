//! A body that is taken whole before it is delivered, held on an account of its own.

use std::sync::Arc;

use base::memory::Full;
use base::{Account, Held, Limit, Memory};
use bytes::Bytes;
use origin::Exchange;

use super::Fetch;
use crate::gzip::Test;

/// Bytes that are held first for a body of unknown length.
const FIRST_BYTES: usize = 16 * 1024;

/// Collects the whole body of `exchange`; one in `gzip` is tested.
///
/// # Errors
/// Why it is not there, in words.
pub(super) async fn whole(
    fetch: &Fetch,
    mut exchange: Exchange,
    gzip: bool,
) -> Result<Bytes, String> {
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
    let mut body = Collected::new(cache.memory(), length).map_err(no_memory)?;
    loop {
        let mut taken = Ok(());
        let sink = &mut |data: &[u8]| taken = taken.and_then(|()| body.push(data));
        let more = exchange.next(sink).await;
        taken.map_err(no_memory)?;
        match more {
            Ok(_) if body.len() > most => return too_large(),
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    let body = body.into_bytes();
    if gzip {
        let mut test = Test::new(Some(body.len() as u64));
        test.take(&body);
        if !test.go_on(true, |_| {}).await {
            return Err("the body claims to be in gzip and is not".to_owned());
        }
    }
    Ok(body)
}

/// The part of the body that has arrived.
struct Collected {
    data: Vec<u8>,
    held: Held,
}

impl AsRef<[u8]> for Collected {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Collected {
    /// Nothing yet, with room for a body of the `length` that was declared.
    ///
    /// # Errors
    /// When there is no memory for that.
    fn new(memory: &Arc<Memory>, length: Option<u64>) -> Result<Self, Full> {
        let room =
            length.map_or(FIRST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let held = Account::open_large(memory).hold(room as u64)?;
        Ok(Self { data: Vec::with_capacity(room), held })
    }

    /// Bytes that have come.
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    /// Takes more of it.
    ///
    /// # Errors
    /// When there is no memory for that.
    fn push(&mut self, data: &[u8]) -> Result<(), Full> {
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
    fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_held_until_its_last_part_is_gone() {
        let memory = Memory::new(1 << 20, 1 << 19);
        let mut body = Collected::new(&memory, None).expect("there is room");
        for _ in 0..5 {
            body.push(&[7; 10_000]).expect("there is room");
        }
        assert_eq!(body.len(), 50_000);
        let bytes = body.into_bytes();
        let part = bytes.slice(40_000..);
        drop(bytes);
        assert_eq!((part.len(), memory.held() >= 50_000), (10_000, true));
        drop(part);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_body_for_which_there_is_no_memory_is_refused() {
        let memory = Memory::new(1 << 20, 1 << 19);
        assert!(Collected::new(&memory, Some(u64::MAX)).is_err());
        assert!(Collected::new(&memory, Some(1 << 20)).is_err());
        let mut body = Collected::new(&memory, None).expect("there is room");
        let pushed = (0..100).take_while(|_| body.push(&[7; 10_000]).is_ok()).count();
        assert!((5..50).contains(&pushed), "{pushed}");
        drop(body);
        assert_eq!(memory.held(), 0);
    }
}
