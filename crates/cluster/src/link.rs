//! The link's functions for modules other than the session.

pub(crate) use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;

use crate::error::SecretWriteError;

/// True if the crate has a NATS client. The demo build has none, and runs no node.
pub const HAS_LINK: bool = true;

/// Writes `bytes` as the last entry of `subject`, over the one with this sequence, and returns the
/// new sequence.
pub(crate) async fn put(
    context: &Context,
    subject: String,
    over: u64,
    bytes: Vec<u8>,
) -> Result<u64, SecretWriteError> {
    let message =
        PublishMessage::build().payload(Bytes::from(bytes)).expected_last_subject_sequence(over);
    let link = |why: String| SecretWriteError::Link(why);
    let sent = context.send_publish(subject, message).await;
    let stored = sent.map_err(|error| link(error.to_string()))?.await;
    let stored = stored.map_err(|error| match error.kind() {
        PublishErrorKind::WrongLastSequence => SecretWriteError::Overtaken,
        _ => link(error.to_string()),
    })?;
    Ok(stored.sequence)
}
