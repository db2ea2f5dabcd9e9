//! Sticky cookie: brings a client back to the server that answered it before (HAProxy:
//! `cookie NAME insert indirect nocache`).
//!
//! Its value is the name of a server and never its address. The cookie is between this proxy and
//! the client alone: it is no part of a key, makes no request personal, and no origin sees it.

use message::{HeaderBlock, HeaderId, Scheme, cookie};

/// The cookie of an origin with several servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    /// Its name.
    pub name: Box<str>,
    /// The values that stand for the servers, in their order.
    pub servers: Vec<Box<str>>,
    /// `; Path=/` and further attributes.
    pub attributes: Box<str>,
    /// It has the attribute Secure; `None`: over HTTPS.
    pub secure: Option<bool>,
}

impl StickyCookie {
    /// The server that a request is for, as an index into the origin's list. `None` without the
    /// cookie, and for a value that stands for no server.
    pub fn server_of(&self, headers: &HeaderBlock) -> Option<u16> {
        let own = |pair: &cookie::CookiePair<'_>| *pair.name == *self.name.as_bytes();
        let mut pairs = cookie::pairs(headers.values(HeaderId::Cookie)).filter(own);
        pairs.find_map(|pair| {
            let mut servers = self.servers.iter();
            let at = servers.position(|value| *value.as_bytes() == *pair.value)?;
            u16::try_from(at).ok()
        })
    }

    /// Removes the cookie from a request.
    pub fn remove_from(&self, headers: &mut HeaderBlock) {
        let is_it = |name: &[u8]| *name == *self.name.as_bytes();
        cookie::remove(headers, is_it, &mut Vec::new());
    }

    /// The value of Set-Cookie for a client of the server at `server` (RFC 6265 4.1.1).
    pub fn set_cookie(&self, server: usize, scheme: Scheme) -> Option<String> {
        let value = self.servers.get(server)?;
        let is_secure = self.secure.unwrap_or(scheme == Scheme::Https);
        let secure = if is_secure { "; Secure" } else { "" };
        Some(format!("{}={value}{}; HttpOnly{secure}", self.name, self.attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sticky() -> StickyCookie {
        StickyCookie {
            name: "srv".into(),
            servers: ["1", "b"].map(Into::into).into(),
            attributes: "; Path=/; SameSite=Lax".into(),
            secure: None,
        }
    }

    fn headers(lines: &[&str]) -> HeaderBlock {
        let mut headers = HeaderBlock::new();
        lines.iter().for_each(|line| headers.push(HeaderId::Cookie, line.as_bytes()));
        headers
    }

    #[test]
    fn a_value_stands_for_a_server_that_is_there_or_for_none() {
        let of = |lines: &[&str]| sticky().server_of(&headers(lines));
        for (lines, server) in [
            (&["srv=1"][..], Some(0)),
            (&["a=b; srv=b; c=d"], Some(1)),
            (&["a=1", "srv=b"], Some(1)),
            (&["srv=; srv=b"], Some(1)),
            (&["srv=2"], None),
            (&["srv=B"], None),
            (&["SRV=1"], None),
            (&["srv"], None),
            (&[], None),
        ] {
            assert_eq!(of(lines), server, "{lines:?}");
        }
    }

    #[test]
    fn only_the_own_cookie_is_removed() {
        let mut with_others = headers(&["a=b; srv=b; srvx=1", "srv=2"]);
        sticky().remove_from(&mut with_others);
        assert_eq!(with_others.value(HeaderId::Cookie), Some(&b"a=b; srvx=1"[..]));
        let mut alone = headers(&["srv=1"]);
        sticky().remove_from(&mut alone);
        assert!(!alone.contains(HeaderId::Cookie));
    }

    #[test]
    fn the_attribute_secure_follows_the_scheme_unless_it_is_set() {
        let of = |secure, scheme| StickyCookie { secure, ..sticky() }.set_cookie(1, scheme);
        let plain = "srv=b; Path=/; SameSite=Lax; HttpOnly";
        let secure = format!("{plain}; Secure");
        assert_eq!(of(None, Scheme::Http).as_deref(), Some(plain));
        assert_eq!(of(None, Scheme::Https), Some(secure.clone()));
        assert_eq!(of(Some(true), Scheme::Http), Some(secure));
        assert_eq!(of(Some(false), Scheme::Https).as_deref(), Some(plain));
        assert_eq!(sticky().set_cookie(2, Scheme::Http), None);
    }
}
