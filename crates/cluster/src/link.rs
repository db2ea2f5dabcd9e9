//! The way to the stream, as what is not a session needs it.

pub(crate) use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;

use crate::error::SecretWriteError;

/// The crate has the link to servers. The demo build has not: it runs no node.
pub const HAS_LINK: bool = true;

/// Has `bytes` be the last entry of `subject`, over the one that has this sequence. The result is
/// its own.
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
