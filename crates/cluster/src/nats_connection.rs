//! The NATS connection: to the first server that answers, of the configured ones and those that
//! they have announced.
//!
//! A connection serves one session. Reconnecting is left to the session, which tries all servers
//! sooner than the client library would, and must compare its position again anyway.

use std::future::Future;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;

use crate::error::Error;
use crate::settings::{Credentials, Settings};

/// The time after which a further server is tried beside those that have not answered. After an
/// interruption TCP repeats only after a second or more; a new attempt succeeds at once.
const NEXT: Duration = Duration::from_millis(300);
/// The longest time of an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Announced servers that are remembered.
const LEARNED_MAX: usize = 64;

/// A connection.
pub(crate) struct NatsConnection {
    pub(crate) client: Client,
    /// True once it is lost.
    pub(crate) lost: watch::Receiver<bool>,
}

/// The known servers.
pub(crate) struct Servers<'a> {
    settings: &'a Settings,
    learned: Vec<String>,
    turn: usize,
}

impl<'a> Servers<'a> {
    /// The configured servers. Nodes with different `turn`s begin with different ones.
    pub(crate) fn new(settings: &'a Settings, turn: usize) -> Self {
        Self { settings, learned: Vec::new(), turn }
    }

    /// Connects to the first server that answers.
    pub(crate) async fn connect(&mut self) -> Result<NatsConnection, Error> {
        let (settings, learned, turn) = (self.settings, &self.learned, &mut self.turn);
        let link = first(|| {
            let place = turn.checked_rem(settings.servers.len() + learned.len()).unwrap_or(0);
            *turn = turn.wrapping_add(1);
            let server = settings.servers.iter().chain(learned).nth(place).cloned();
            connect(settings, server.unwrap_or_default())
        })
        .await?;
        self.learned = link.client.server_info().connect_urls;
        self.learned.truncate(LEARNED_MAX);
        Ok(link)
    }
}

/// The first success of attempts made by `begin`, which is called again whenever some time has
/// passed without one.
///
/// # Errors
/// The error of the last attempt, or a timeout.
pub(crate) async fn first<T, F>(mut begin: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut under_way = FuturesUnordered::new();
    let mut next = rt::time::interval(NEXT);
    let mut end = std::pin::pin!(rt::time::sleep(ANSWER));
    let mut last = None;
    loop {
        tokio::select! {
            _ = next.tick() => under_way.push(begin()),
            Some(done) = under_way.next() => match done {
                Err(error) if !under_way.is_empty() => last = Some(error),
                done => return done,
            },
            () = &mut end => {
                return Err(last.unwrap_or_else(|| Error::Link("no server answers in time".into())));
            }
        }
    }
}

/// Connects to `server`.
async fn connect(settings: &Settings, server: String) -> Result<NatsConnection, Error> {
    let question = Duration::from_millis(settings.question_ms());
    let (report_loss, lost) = watch::channel(false);
    let mut options = ConnectOptions::new()
        .name(format!("larder {}", settings.name))
        .connection_timeout(ANSWER)
        .request_timeout(Some(settings.patience()))
        .ping_interval(question.max(Duration::from_secs(1)))
        // A lost connection is given up.
        .max_reconnects(1)
        .reconnect_delay_callback(|_| Duration::ZERO)
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                report_loss.send_replace(true);
            }
            std::future::ready(())
        });
    options = match settings.credentials.clone() {
        Credentials::None => options,
        Credentials::Password(user, password) => options.user_and_password(user, password),
        Credentials::Token(token) => options.token(token),
        Credentials::Nkey(seed) => options.nkey(seed),
        Credentials::File(text) => {
            let read = options.credentials(&text);
            read.map_err(|error| Error::Setting(format!("credentials: {error}")))?
        }
    };
    if settings.tls.is_required {
        options = options.require_tls(true);
    }
    if let Some(ca) = &settings.tls.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &settings.tls.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let client = options.connect(server).await.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication => {
            Error::Setting(format!("the nkey or the credentials cannot be used: {error}"))
        }
        _ => Error::link(error),
    })?;
    Ok(NatsConnection { client, lost })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Attempts that end at once, or never.
    async fn outcomes(all: &[Option<Result<u32, &str>>]) -> Result<u32, Error> {
        let begun = Cell::new(0);
        first(|| {
            let own = all.get(begun.get()).copied().flatten();
            begun.set(begun.get() + 1);
            async move {
                match own {
                    Some(outcome) => outcome.map_err(Error::link),
                    None => std::future::pending().await,
                }
            }
        })
        .await
    }

    #[tokio::test]
    async fn the_first_answer_wins_and_silent_servers_delay_nothing() {
        assert_eq!(outcomes(&[Some(Ok(1))]).await, Ok(1));
        assert_eq!(outcomes(&[None, None, Some(Ok(3))]).await, Ok(3));
        let refused = Err(Error::Link("refused".into()));
        assert_eq!(
            outcomes(&[Some(Err("refused"))]).await,
            refused,
            "no other attempt is waited for"
        );
        assert_eq!(outcomes(&[None, Some(Err("refused")), Some(Ok(3))]).await, Ok(3));
        assert_eq!(outcomes(&[None, Some(Err("refused"))]).await, refused, "no attempt has ended");
    }
}
