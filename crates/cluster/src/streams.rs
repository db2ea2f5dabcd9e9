//! The streams: created by the first node that needs them, updated to the settings, or rejected by
//! name. A foreign stream, one of a later version, and one that forgets entries must never be used.

use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};

use crate::error::Error;
use crate::settings::Settings;

/// The version of the streams' contents.
const VERSION: u32 = 1;

/// The window in which the servers detect duplicates. Nodes detect later ones.
const DUPLICATES: Duration = Duration::from_secs(120);

/// The most bytes of the stream of entries. A node that misses an entry dropped for this limit
/// trusts nothing that it stored before.
const ENTRIES_BYTES: i64 = 256 << 20;
/// The most bytes of the members' cards.
const CARDS_BYTES: i64 = 16 << 20;
/// The most bytes of the shared secrets, whose own limits are lower.
const SECRETS_BYTES: i64 = 256 << 20;
/// The time after which a silent member's card expires.
const CARDS_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The required stream of entries.
pub(crate) fn entries(settings: &Settings) -> Config {
    Config {
        max_age: Duration::from_millis(settings.keep_ms),
        max_bytes: ENTRIES_BYTES,
        duplicate_window: DUPLICATES.min(Duration::from_millis(settings.keep_ms)),
        ..wanted(settings, settings.entries_stream(), settings.entries_subject(), "invalidations")
    }
}

/// The required stream of cards: the last of each member.
pub(crate) fn cards(settings: &Settings) -> Config {
    Config {
        max_age: CARDS_AGE,
        max_bytes: CARDS_BYTES,
        max_messages_per_subject: 1,
        ..wanted(settings, settings.cards_stream(), settings.card_subject("*"), "members")
    }
}

/// The required stream of secrets: the last of each name, without expiry.
pub(crate) fn secrets(settings: &Settings) -> Config {
    Config {
        max_bytes: SECRETS_BYTES,
        max_messages_per_subject: 1,
        ..wanted(settings, settings.secrets_stream(), settings.secret_subject(">"), "secrets")
    }
}

fn wanted(settings: &Settings, name: String, subject: String, what: &str) -> Config {
    Config {
        name,
        subjects: vec![subject],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        num_replicas: settings.replicas,
        description: Some(format!("Larder {VERSION}: {what}")),
        ..Config::default()
    }
}

/// Waits until a server answers about a stream, even that it is absent.
pub(crate) async fn answers(context: &Context, name: &str) -> Result<(), Error> {
    match context.get_stream(name).await.map_err(|error| (error.kind(), error)) {
        Err((GetStreamErrorKind::JetStream(own), _)) if !is_passing(&own) => Ok(()),
        Err((_, error)) => Err(Error::link(error)),
        Ok(_) => Ok(()),
    }
}

/// The stream, created if it is absent.
pub(crate) async fn have(context: &Context, wanted: Config) -> Result<Stream, Error> {
    let name = wanted.name.clone();
    match context.get_stream(&name).await {
        Ok(stream) => {
            let found = &stream.cached_info().config;
            if let Some(raised) = raised(found, &wanted).map_err(|why| refused(&name, why))? {
                let update = context.update_stream(&raised).await;
                update.map_err(|error| refused(&name, format!("it cannot be updated: {error}")))?;
            }
            Ok(stream)
        }
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(own) if is(&own, ErrorCode::STREAM_NOT_FOUND) => {
                let made = context.create_stream(wanted).await;
                made.map_err(|error| match error.kind() {
                    // Another node has created it first, with other settings: the next attempt
                    // reads them.
                    CreateStreamErrorKind::JetStream(own)
                        if is(&own, ErrorCode::STREAM_NAME_EXIST) =>
                    {
                        Error::link(error)
                    }
                    CreateStreamErrorKind::JetStream(own) if !is_passing(&own) => {
                        refused(&name, format!("it cannot be created: {own}"))
                    }
                    _ => Error::link(error),
                })
            }
            GetStreamErrorKind::JetStream(own) if !is_passing(&own) => {
                Err(refused(&name, own.to_string()))
            }
            _ => Err(Error::link(error)),
        },
    }
}

fn is(error: &async_nats::jetstream::Error, code: ErrorCode) -> bool {
    error.error_code() == code
}

/// Returns true for an answer that the servers have no result now, as during an election. It is no
/// rejection.
fn is_passing(error: &async_nats::jetstream::Error) -> bool {
    error.code() == 503
}

fn refused(stream: &str, why: String) -> Error {
    Error::Refused { stream: stream.to_owned(), why }
}

/// The update that makes `found` as good as `wanted`; `None` if it is.
///
/// # Errors
/// The reason why it cannot be used.
fn raised(found: &Config, wanted: &Config) -> Result<Option<Config>, String> {
    let text = found.description.as_deref().unwrap_or_default();
    let version = text.strip_prefix("Larder ").and_then(|rest| rest.split(':').next());
    match version.and_then(|version| version.parse::<u32>().ok()) {
        None => return Err("it is not Larder's: choose another `prefix`".to_owned()),
        Some(version) if version > VERSION => {
            return Err(format!("it has version {version}, and this program knows {VERSION}"));
        }
        Some(_) => {}
    }
    let faults = [
        (found.subjects != wanted.subjects, "it has other subjects"),
        (found.retention != RetentionPolicy::Limits, "its retention is not `limits`"),
        (found.storage != StorageType::File, "it is not stored in files"),
        (found.discard != DiscardPolicy::Old, "it discards new messages"),
        (found.max_messages > 0, "its number of messages is limited"),
        (found.no_ack, "it acknowledges nothing"),
        (found.sealed, "it is sealed"),
        (found.mirror.is_some(), "it is a mirror"),
        (
            found.max_messages_per_subject != wanted.max_messages_per_subject
                && (found.max_messages_per_subject > 0 || wanted.max_messages_per_subject > 0),
            "it keeps another number of messages for each subject",
        ),
    ];
    if let Some((_, fault)) = faults.into_iter().find(|(is_there, _)| *is_there) {
        return Err(fault.to_owned());
    }
    let mut raised = found.clone();
    raised.num_replicas = found.num_replicas.max(wanted.num_replicas);
    if wanted.max_age.is_zero() {
        raised.max_age = wanted.max_age;
    } else if !found.max_age.is_zero() {
        raised.max_age = found.max_age.max(wanted.max_age);
    }
    raised.duplicate_window = found.duplicate_window.max(wanted.duplicate_window);
    let is_more = raised.num_replicas != found.num_replicas
        || raised.max_age != found.max_age
        || raised.duplicate_window != found.duplicate_window;
    Ok(is_more.then_some(raised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::settings;

    #[test]
    fn servers_without_an_answer_reject_nothing() {
        for (told, passes) in [
            (r#"{"code":503,"err_code":10008,"description":"temporarily unavailable"}"#, true),
            (r#"{"code":503,"err_code":10023,"description":"insufficient resources"}"#, true),
            (r#"{"code":404,"err_code":10059,"description":"stream not found"}"#, false),
            (r#"{"code":500,"err_code":10074,"description":"replicas > 1"}"#, false),
        ] {
            let error = serde_json::from_str(told).expect("an error of NATS");
            assert_eq!(is_passing(&error), passes, "{told}");
        }
    }

    #[test]
    fn a_stream_is_raised_and_never_lowered() {
        let wanted = entries(&settings("n1"));
        assert_eq!(raised(&wanted, &wanted), Ok(None));
        let more = Config { num_replicas: 3, max_age: wanted.max_age * 2, ..wanted.clone() };
        assert_eq!(raised(&more, &wanted), Ok(None));
        assert_eq!(raised(&wanted, &more), Ok(Some(more.clone())));
        let forever = Config { max_age: Duration::ZERO, ..wanted };
        assert_eq!(raised(&forever, &more).map(|own| own.map(|own| own.max_age)), {
            Ok(Some(Duration::ZERO))
        });
        let kept = secrets(&settings("n1"));
        let forgets = Config { max_age: DUPLICATES, ..kept.clone() };
        assert_eq!(raised(&forgets, &kept), Ok(Some(kept.clone())));
        assert_eq!(raised(&kept, &kept), Ok(None));
    }

    #[test]
    fn a_stream_that_is_not_as_needed_is_refused() {
        let wanted = entries(&settings("n1"));
        let described = |text: &str| Config { description: Some(text.into()), ..wanted.clone() };
        for (found, why) in [
            (described("somebody's"), "it is not Larder's: choose another `prefix`"),
            (
                Config { description: None, ..wanted.clone() },
                "it is not Larder's: choose another `prefix`",
            ),
            (described("Larder 2: x"), "it has version 2, and this program knows 1"),
            (
                Config { storage: StorageType::Memory, ..wanted.clone() },
                "it is not stored in files",
            ),
            (
                Config { retention: RetentionPolicy::WorkQueue, ..wanted.clone() },
                "its retention is not `limits`",
            ),
            (Config { discard: DiscardPolicy::New, ..wanted.clone() }, "it discards new messages"),
            (Config { max_messages: 5, ..wanted.clone() }, "its number of messages is limited"),
        ] {
            assert_eq!(raised(&found, &wanted), Err(why.to_owned()));
        }
        let members = cards(&settings("n1"));
        let kept = Config { max_messages_per_subject: -1, ..members.clone() };
        assert!(raised(&kept, &members).is_err() && raised(&members, &members) == Ok(None));
    }
}
