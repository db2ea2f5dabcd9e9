//! Challenges of certificate authorities: answers over plain HTTP that prove control of a host
//! (HTTP-01, RFC 8555 8.3).
//!
//! They are answered before sites and policies, so no redirect, rule or origin interferes. Only the
//! pending token is answered; all other paths below the prefix belong to the site.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use message::{Method, Request, Scheme};

/// The path below which authorities request the answer.
const PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// The pending challenge, if any.
#[derive(Default)]
pub struct Challenges(ArcSwapOption<PendingChallenge>);

struct PendingChallenge {
    token: Box<[u8]>,
    answer: Bytes,
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Challenges").field(&self.0.load().is_some()).finish()
    }
}

impl Challenges {
    /// Answers requests for `token` with `answer`, a key authorization, and withdraws the challenge
    /// before.
    pub fn show(&self, token: &str, answer: &str) {
        let (token, answer) = (token.as_bytes().into(), Bytes::copy_from_slice(answer.as_bytes()));
        self.0.store(Some(Arc::new(PendingChallenge { token, answer })));
    }

    /// Withdraws the pending challenge.
    pub fn withdraw(&self) {
        self.0.store(None);
    }

    /// The answer to `request`, if it asks for the pending challenge.
    #[inline]
    pub(crate) fn answer(&self, request: &Request) -> Option<Bytes> {
        let token = request.target.strip_prefix(PREFIX)?;
        self.pending(request, token)
    }

    #[cold]
    fn pending(&self, request: &Request, token: &[u8]) -> Option<Bytes> {
        let asks =
            request.scheme == Scheme::Http && matches!(request.method, Method::Get | Method::Head);
        let pending = self.0.load();
        let pending = pending.as_ref().filter(|pending| asks && *pending.token == *token)?;
        Some(pending.answer.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, scheme: Scheme, target: &str) -> Request {
        Request { method, scheme, target: target.as_bytes().to_vec(), ..Request::new() }
    }

    #[test]
    fn only_the_pending_token_is_answered_and_only_over_plain_http() {
        use Method::{Get, Head, Post};
        use Scheme::{Http, Https};
        let challenges = Challenges::default();
        let path = "/.well-known/acme-challenge/token";
        assert_eq!(challenges.answer(&asked(Get, Http, path)), None);
        challenges.show("token", "token.thumb");
        for (method, scheme, target, answered) in [
            (Get, Http, path, true),
            (Head, Http, path, true),
            (Post, Http, path, false),
            (Get, Https, path, false),
            (Get, Http, "/.well-known/acme-challenge/", false),
            (Get, Http, "/.well-known/acme-challenge/toke", false),
            (Get, Http, "/.well-known/acme-challenge/token?a=b", false),
            (Get, Http, "/.well-known/acme-challenge/x/../token", false),
            (Get, Http, "/token", false),
        ] {
            let answer = challenges.answer(&asked(method, scheme, target));
            assert_eq!(answer.is_some(), answered, "{target}");
        }
        challenges.withdraw();
        assert_eq!(challenges.answer(&asked(Get, Http, path)), None);
    }
}
