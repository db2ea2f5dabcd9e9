//! Collected body: a body that is read whole before delivery, its memory reserved on an account.

use base::{Account, Limit};
use bytes::Bytes;
use codec::STEP_BYTES;
use origin::Exchange;

use super::{CollectedBody, Fetch};
use crate::gathered_body::GatheredBody;
use crate::recode::{BodyRecoding, Coder, YieldCounter, decode_limits, limit_of};

/// Reads the whole body of `exchange`, recoded by `recode`.
///
/// # Errors
/// The reason for which it is missing, in words.
pub(crate) async fn whole(
    fetch: &Fetch,
    mut exchange: Exchange,
    recode: BodyRecoding,
) -> Result<CollectedBody, String> {
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
    let coder = Coder::new(recode, length, limits, &fetch.passage.account);
    let mut coder = coder.map_err(|error| error.to_string())?;
    let account = Account::open_large(cache.memory());
    let mut body = GatheredBody::new(&account, expected).map_err(no_memory)?;
    let mut turns = YieldCounter::default();
    let mut watch = fetch.watch(&exchange);
    loop {
        let mut taken = Ok(());
        let sink = &mut |data: &[u8]| {
            watch.iter_mut().for_each(|watch| watch.push(data));
            match &mut coder {
                Some(coder) => coder.take(data),
                None => taken = taken.and_then(|()| body.push(data)),
            }
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
    watch.iter_mut().for_each(|watch| watch.finish(&exchange));
    let plain = coder.as_ref().and_then(Coder::plain_length);
    Ok(CollectedBody { bytes: body.into_bytes(), plain })
}

/// Recodes a complete body by `recode`.
///
/// # Errors
/// The reason for which that fails, in words.
pub(crate) async fn coded(
    fetch: &Fetch,
    plain: &[u8],
    recode: BodyRecoding,
) -> Result<CollectedBody, String> {
    let no_memory = |_| {
        fetch.core.counters.limit(Limit::ClientMemory);
        "no memory for the body (limit: client_memory)".to_owned()
    };
    let length = plain.len() as u64;
    let limits = decode_limits(&fetch.live.limits);
    let coder = Coder::new(recode, Some(length), limits, &fetch.passage.account);
    let coder = coder.map_err(|error| error.to_string())?;
    let Some(mut coder) = coder else {
        return Ok(CollectedBody { bytes: Bytes::copy_from_slice(plain), plain: None });
    };
    let account = Account::open_large(fetch.core.shared.cache.memory());
    let mut body = GatheredBody::new(&account, None).map_err(no_memory)?;
    let mut turns = YieldCounter::default();
    // An empty body has a form in each coding.
    let empty = plain.is_empty().then_some(plain);
    for piece in plain.chunks(STEP_BYTES).chain(empty) {
        coder.take(piece);
        // The coder knows the last piece by the length.
        while let Some(out) = coder.step(false).map_err(|error| flaw(fetch, error))? {
            let made = out.len();
            body.push(out).map_err(no_memory)?;
            turns.pass(made).await;
        }
    }
    Ok(CollectedBody { bytes: body.into_bytes(), plain: Some(length) })
}

/// The text for a body that is not in its coding, or exceeds a limit.
fn flaw(fetch: &Fetch, error: codec::Error) -> String {
    if let Some(limit) = limit_of(error) {
        fetch.core.counters.limit(limit);
    }
    format!("the body is not in the coding that it claims: {error}")
}
