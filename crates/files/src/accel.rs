//! Accel: an origin's instructions to the proxy, X-Accel-* as in nginx, and X-Sendfile.
//!
//! None of these fields may ever reach a client. They have effect only for origins whose settings
//! permit it, and files come only from configured directories.

use std::sync::Arc;

use message::{HeaderBlock, HeaderId, path};

use crate::root::Root;

const EXPIRES: &[u8] = b"x-accel-expires";
const REDIRECT: &[u8] = b"x-accel-redirect";
const CHARSET: &[u8] = b"x-accel-charset";
const SENDFILE: &[u8] = b"x-sendfile";
/// Further fields of nginx without effect here: responses are streamed anyway, and no client is
/// throttled.
const IGNORED: [&[u8]; 2] = [b"x-accel-buffering", b"x-accel-limit-rate"];

/// The permitted fields of an origin.
#[derive(Debug, Default)]
pub struct Accel {
    /// X-Accel-Expires and X-Accel-Charset have effect.
    pub expires: bool,
    /// Roots of X-Accel-Redirect; each removes its own prefix.
    pub redirects: Vec<Arc<Root>>,
    /// Roots of X-Sendfile; each removes its own path.
    pub sendfile: Vec<Arc<Root>>,
}

/// The instructions in an origin's response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccelDirectives {
    /// A lifetime in seconds; 0 from any origin, other values only if settings permit it.
    pub lifetime_s: Option<u64>,
    /// The file to answer with.
    pub file: Option<AccelFile>,
}

/// A file that an origin names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccelFile {
    /// A path; a root of [`Accel::redirects`] removes its prefix.
    Redirect(Vec<u8>),
    /// A path on this machine.
    Sendfile(Vec<u8>),
}

impl Accel {
    /// The root for the named file, and the path to look up there; `None` if no setting permits it.
    pub fn place<'n>(&self, named: &'n AccelFile) -> Option<(&Arc<Root>, &'n [u8])> {
        let (roots, path) = match named {
            AccelFile::Redirect(path) => (&self.redirects, path),
            AccelFile::Sendfile(path) => (&self.sendfile, path),
        };
        let is_for = |root: &&Arc<Root>| {
            let prefix = root.config().strip.as_bytes();
            path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(b"/"))
        };
        // The longest prefix, as in nginx.
        let root = roots.iter().filter(is_for).max_by_key(|root| root.config().strip.len())?;
        Some((root, path))
    }
}

/// Removes the instructions from an origin's head, and applies those to the head.
pub fn take(headers: &mut HeaderBlock, accel: Option<&Accel>, now_s: u64) -> AccelDirectives {
    let mut said = AccelDirectives::default();
    if !headers.iter().any(|field| is_ours(field.name)) {
        return said;
    }
    let may_last = accel.is_some_and(|accel| accel.expires);
    said.lifetime_s = told_lifetime(headers, now_s).filter(|seconds| may_last || *seconds == 0);
    if let Some(accel) = accel {
        if accel.expires
            && let Some(charset) = headers.value_named(CHARSET).map(<[u8]>::to_vec)
        {
            add_charset(headers, &charset);
        }
        if !accel.redirects.is_empty() {
            said.file = headers.value_named(REDIRECT).map(redirect);
        }
        if !accel.sendfile.is_empty() && said.file.is_none() {
            let value = headers.value_named(SENDFILE);
            said.file = value.map(|value| AccelFile::Sendfile(value.to_vec()));
        }
    }
    headers.retain(|field| !is_ours(field.name));
    said
}

/// The lifetime in X-Accel-Expires. A value that forbids storing takes precedence.
fn told_lifetime(headers: &HeaderBlock, now_s: u64) -> Option<u64> {
    let told = || headers.values_named(EXPIRES).filter_map(|value| lifetime(value, now_s));
    told().find(|seconds| *seconds == 0).or_else(|| told().next())
}

fn is_ours(name: &[u8]) -> bool {
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    name.first().is_some_and(|first| first.eq_ignore_ascii_case(&b'x'))
        && ([EXPIRES, REDIRECT, CHARSET, SENDFILE].into_iter().any(is)
            || IGNORED.into_iter().any(is))
}

/// Seconds, or `@` and a unix time (nginx); times in the past and 0 forbid storing.
fn lifetime(value: &[u8], now_s: u64) -> Option<u64> {
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
    match value {
        [b'@', point @ ..] => number(point).map(|point| point.saturating_sub(now_s)),
        // A negative number is in the past.
        [b'-', digits @ ..] => number(digits).map(|_| 0),
        digits => number(digits),
    }
}

/// The path of a redirect in its normal form; its query is ignored. A path without a normal form
/// leads nowhere.
fn redirect(value: &[u8]) -> AccelFile {
    let path = value.split(|b| *b == b'?').next().unwrap_or_default();
    let mut normal = Vec::new();
    AccelFile::Redirect(match path::normal_form(path, &mut normal) {
        Ok(true) => normal,
        Ok(false) => path.to_vec(),
        Err(_) => Vec::new(),
    })
}

/// Adds the charset to a text type without one.
fn add_charset(headers: &mut HeaderBlock, charset: &[u8]) {
    let Some(kind) = headers.value(HeaderId::ContentType) else { return };
    let named = memchr::memmem::find(&kind.to_ascii_lowercase(), b"charset=").is_some();
    if named || !kind.starts_with(b"text/") || !message::header::is_token(charset) {
        return;
    }
    let kind = [kind, b"; charset=", charset].concat();
    headers.set(HeaderId::ContentType, &kind);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn head(fields: &[(&str, &str)]) -> HeaderBlock {
        let mut headers = HeaderBlock::new();
        for (name, value) in fields {
            headers.push_named(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn root(strip: &str) -> Arc<Root> {
        let config = crate::Config::new(PathBuf::from("/nowhere"));
        Root::new(crate::Config { strip: strip.to_owned(), ..config })
    }

    fn accel() -> Accel {
        Accel {
            expires: true,
            redirects: vec![root("/protected"), root("/protected/deep")],
            sendfile: vec![root("/srv/private")],
        }
    }

    #[test]
    fn nothing_of_it_reaches_a_client_and_nothing_happens_unasked() {
        let fields = [
            ("X-Accel-Redirect", "/protected/a"),
            ("x-accel-expires", "60"),
            ("X-Accel-Buffering", "no"),
            ("X-Accel-Charset", "utf-8"),
            ("X-Accel-Limit-Rate", "1"),
            ("X-Sendfile", "/srv/private/a"),
            ("Content-Type", "text/html"),
            ("X-Other", "stays"),
        ];
        let mut headers = head(&fields);
        assert_eq!(take(&mut headers, None, 0), AccelDirectives::default());
        assert_eq!(headers.len(), 2);
        assert_eq!(headers.value(HeaderId::ContentType), Some(&b"text/html"[..]));
        let mut headers = head(&fields);
        let said = take(&mut headers, Some(&accel()), 0);
        assert_eq!(said.lifetime_s, Some(60));
        assert_eq!(said.file, Some(AccelFile::Redirect(b"/protected/a".to_vec())));
        assert_eq!(headers.len(), 2);
        let kind = headers.value(HeaderId::ContentType);
        assert_eq!(kind, Some(&b"text/html; charset=utf-8"[..]));
    }

    #[test]
    fn an_origin_may_always_forbid_to_keep_a_response() {
        for (values, unasked, asked) in [
            (&["0"][..], Some(0), Some(0)),
            (&["-1"], Some(0), Some(0)),
            (&["@5"], Some(0), Some(0)),
            (&["60"], None, Some(60)),
            (&["60", "0"], Some(0), Some(0)),
            (&["off"], None, None),
            (&[], None, None),
        ] {
            let fields: Vec<_> = values.iter().map(|value| ("X-Accel-Expires", *value)).collect();
            let said = |accel: Option<&Accel>| take(&mut head(&fields), accel, 10).lifetime_s;
            assert_eq!((said(None), said(Some(&accel()))), (unasked, asked), "{values:?}");
            assert_eq!(said(Some(&Accel::default())), unasked, "{values:?}");
        }
    }

    #[test]
    fn lifetimes_are_relative_or_absolute() {
        for (value, expected) in [
            ("0", Some(0)),
            ("60", Some(60)),
            ("@1060", Some(60)),
            ("@10", Some(0)),
            ("-1", Some(0)),
            ("off", None),
            ("", None),
            ("1s", None),
        ] {
            assert_eq!(lifetime(value.as_bytes(), 1_000), expected, "{value}");
        }
    }

    #[test]
    fn files_are_below_what_settings_name() {
        let accel = accel();
        let place =
            |named: AccelFile| accel.place(&named).map(|(root, _)| root.config().strip.clone());
        for (value, expected) in [
            ("/protected/a", Some("/protected")),
            ("/protected/deep/a?b", Some("/protected/deep")),
            ("/protected/%64eep/a", Some("/protected/deep")),
            ("/protected/deep/../a", Some("/protected")),
            ("/protected", None),
            ("/protectedx/a", None),
            ("/protected/../etc/passwd", None),
            ("/protected/../../etc/passwd", None),
            ("/protected/%2e%2e/etc/passwd", None),
            ("@named", None),
            ("http://elsewhere/protected/a", None),
        ] {
            assert_eq!(place(redirect(value.as_bytes())).as_deref(), expected, "{value}");
        }
        let sendfile = |path: &str| place(AccelFile::Sendfile(path.as_bytes().to_vec()));
        assert_eq!(sendfile("/srv/private/a").as_deref(), Some("/srv/private"));
        assert_eq!(sendfile("/srv/private-not/a"), None);
        assert_eq!(sendfile("/etc/passwd"), None);
    }
}
