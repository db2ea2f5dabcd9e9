//! Fields of responses that storing ignores, as a site's settings say, and the head that storing
//! judges in their absence.
//!
//! The fields themselves stay in the response. Nothing may decide about storing by a response's own
//! head: [`JudgedHead`] is the one that counts.

use std::borrow::Cow;
use std::fmt;

use super::rules::StoreRules;
use crate::header::{HeaderBlock, HeaderId, is_token};
use crate::list::members;
use crate::response::{Response, Status};

/// A field, or a part of Vary, that storing may ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredField {
    /// Cache-Control.
    CacheControl,
    /// CDN-Cache-Control.
    CdnCacheControl,
    /// Surrogate-Control.
    SurrogateControl,
    /// X-Accel-Expires.
    AccelExpires,
    /// Expires.
    Expires,
    /// Pragma.
    Pragma,
    /// Set-Cookie, which is removed from what is stored.
    SetCookie,
    /// All names in Vary.
    Vary,
    /// `*` in Vary, and what is no name.
    VaryAny,
}

/// A set of [`IgnoredField`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredSet(u16);

/// The fields that storing ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    set: IgnoredSet,
    /// Single names in Vary, in lower case.
    varying: Vec<Box<[u8]>>,
}

/// The reason why a field cannot be ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredFieldError {
    /// The field has no say in storing.
    Unknown(String),
    /// The name in Vary is not a field name.
    Name(String),
    /// Responses by this field are always kept apart.
    KeptApart(String),
}

impl fmt::Display for IgnoredFieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => {
                let names: Vec<_> = IgnoredField::ALL.iter().map(|one| one.name()).collect();
                let names = names.join(", ");
                write!(f, "`{text}` has no say in storing (there are {names}, and `Vary: name`)")
            }
            Self::Name(text) => write!(f, "`{text}` does not name a request field"),
            Self::KeptApart(name) => write!(
                f,
                "`Vary: {name}` cannot be ignored: a client would get what it cannot read, or what \
                 is another user's"
            ),
        }
    }
}

impl std::error::Error for IgnoredFieldError {}

/// Names in Vary that are never ignored. A body in an unreadable coding is of no use, responses to
/// Authorization are for one user, and proxies name the client to the origin in the others.
const KEPT_APART: [&[u8]; 6] = [
    b"accept-encoding",
    b"authorization",
    b"available-dictionary",
    b"forwarded",
    b"x-forwarded-for",
    b"x-real-ip",
];

/// Request fields that tell of a browser, not of a visitor, beside those of [`is_of_browser`].
const OF_BROWSERS: [&[u8]; 8] = [
    b"dnt",
    b"origin",
    b"referer",
    b"save-data",
    b"user-agent",
    b"viewport-width",
    b"width",
    b"x-requested-with",
];

/// Returns true if a request field, in lower case, tells of a browser, not of a visitor.
fn is_of_browser(name: &[u8]) -> bool {
    name.starts_with(b"accept") || name.starts_with(b"sec-") || OF_BROWSERS.contains(&name)
}

impl IgnoredField {
    /// Every field.
    pub const ALL: [Self; 9] = [
        Self::CacheControl,
        Self::CdnCacheControl,
        Self::SurrogateControl,
        Self::AccelExpires,
        Self::Expires,
        Self::Pragma,
        Self::SetCookie,
        Self::Vary,
        Self::VaryAny,
    ];

    /// The field as settings name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CacheControl => "Cache-Control",
            Self::CdnCacheControl => "CDN-Cache-Control",
            Self::SurrogateControl => "Surrogate-Control",
            Self::AccelExpires => "X-Accel-Expires",
            Self::Expires => "Expires",
            Self::Pragma => "Pragma",
            Self::SetCookie => "Set-Cookie",
            Self::Vary => "Vary",
            Self::VaryAny => "Vary: *",
        }
    }

    /// Returns true if the field may say that a response is for one visitor.
    pub const fn may_keep_private(self) -> bool {
        !matches!(self, Self::Expires | Self::Pragma)
    }

    /// The field that is left out as a whole.
    fn of_id(id: HeaderId) -> Option<Self> {
        Some(match id {
            HeaderId::CacheControl => Self::CacheControl,
            HeaderId::CdnCacheControl => Self::CdnCacheControl,
            HeaderId::SurrogateControl => Self::SurrogateControl,
            HeaderId::Expires => Self::Expires,
            HeaderId::Pragma => Self::Pragma,
            HeaderId::SetCookie => Self::SetCookie,
            _ => return None,
        })
    }
}

impl IgnoredSet {
    /// Returns true if `field` is in the set.
    pub const fn has(self, field: IgnoredField) -> bool {
        self.0 >> field as u16 & 1 == 1
    }

    fn add(&mut self, field: IgnoredField) {
        self.0 |= 1 << field as u16;
    }

    /// The fields in the set.
    pub fn iter(self) -> impl Iterator<Item = IgnoredField> {
        IgnoredField::ALL.into_iter().filter(move |field| self.has(*field))
    }
}

impl IgnoredFields {
    /// Adds a field (`Expires`), or a name in Vary (`Vary: User-Agent`).
    ///
    /// # Errors
    /// If it has no say in storing, or may not be ignored.
    pub fn add(&mut self, text: &str) -> Result<(), IgnoredFieldError> {
        let is = |other: &str| text.trim().eq_ignore_ascii_case(other);
        let (field, name) = match text.split_once(':') {
            Some((field, name)) => (field.trim(), name.trim()),
            None => (text, ""),
        };
        if let Some(field) = IgnoredField::ALL.into_iter().find(|own| is(own.name())) {
            self.set.add(field);
        } else if !field.eq_ignore_ascii_case("Vary") || !text.contains(':') {
            return Err(IgnoredFieldError::Unknown(text.to_owned()));
        } else if name == "*" {
            self.set.add(IgnoredField::VaryAny);
        } else if !is_token(name.as_bytes()) {
            return Err(IgnoredFieldError::Name(name.to_owned()));
        } else {
            let lower = name.as_bytes().to_ascii_lowercase();
            if KEPT_APART.contains(&&lower[..]) {
                return Err(IgnoredFieldError::KeptApart(name.to_owned()));
            }
            let lower = lower.into_boxed_slice();
            if !self.varying.contains(&lower) {
                self.varying.push(lower);
            }
        }
        Ok(())
    }

    /// Returns true if nothing is ignored.
    pub fn is_empty(&self) -> bool {
        self.set == IgnoredSet::default() && self.varying.is_empty()
    }

    /// Returns true if `field` is ignored.
    pub const fn has(&self, field: IgnoredField) -> bool {
        self.set.has(field)
    }

    /// The ignored fields, without single names in Vary.
    pub(super) const fn set(&self) -> IgnoredSet {
        self.set
    }

    /// Returns true if a field, or a name in Vary, by which a response may be one visitor's is
    /// ignored.
    pub fn may_reveal(&self) -> bool {
        self.set.iter().any(IgnoredField::may_keep_private)
            || self.varying.iter().any(|name| !is_of_browser(name))
    }

    /// Each as it would be written.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let varying = self.varying.iter().map(|name| vary_words(name));
        self.set.iter().map(|field| field.name().to_owned()).chain(varying)
    }

    /// Returns true if `name`, a member of Vary in lower case, is ignored.
    fn ignores_varying(&self, name: &[u8]) -> bool {
        if !is_token(name) || name == b"*" {
            return self.has(IgnoredField::VaryAny);
        }
        let all = self.has(IgnoredField::Vary) && !KEPT_APART.contains(&name);
        all || self.varying.iter().any(|own| **own == *name)
    }
}

fn vary_words(name: &[u8]) -> String {
    format!("Vary: {}", name.escape_ascii())
}

/// A response's head as storing judges it: without ignored fields, and with what rules for
/// responses say.
#[derive(Clone, Debug)]
pub struct JudgedHead<'a> {
    /// The status.
    pub status: Status,
    /// The fields that count.
    pub headers: Cow<'a, HeaderBlock>,
    /// The ignored fields that the response has.
    left_out: IgnoredSet,
    /// The ignored names in its Vary, in lower case.
    left_out_varying: Vec<Box<[u8]>>,
    /// X-Accel-Expires has no say.
    ignores_accel: bool,
    /// The rule for responses, in words, by which it is not stored.
    pub refused_by: Option<&'a str>,
    /// A lifetime in milliseconds, if the head states none, and the rule for responses that sets
    /// it, in words.
    pub ruled_ttl: Option<(u64, &'a str)>,
}

impl<'a> JudgedHead<'a> {
    /// The head of `response` that counts by `rules`.
    pub fn of(response: &'a Response, rules: &StoreRules) -> Self {
        let mut judged = Self {
            status: response.status,
            headers: Cow::Borrowed(&response.headers),
            left_out: IgnoredSet::default(),
            left_out_varying: Vec::new(),
            ignores_accel: rules.ignored.has(IgnoredField::AccelExpires),
            refused_by: None,
            ruled_ttl: None,
        };
        if !rules.ignored.is_empty() {
            judged.leave_out(&response.headers, &rules.ignored);
        }
        judged
    }

    fn leave_out(&mut self, headers: &HeaderBlock, ignored: &IgnoredFields) {
        let of_id = |id| IgnoredField::of_id(id).filter(|field| ignored.has(*field));
        headers.iter().filter_map(|field| of_id(field.id)).for_each(|own| self.left_out.add(own));
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for name in members(headers.values(HeaderId::Vary)) {
            let lower = name.to_ascii_lowercase().into_boxed_slice();
            if ignored.ignores_varying(&lower) { &mut gone } else { &mut kept }.push(lower);
        }
        if self.left_out == IgnoredSet::default() && gone.is_empty() {
            return;
        }
        let own = self.headers.to_mut();
        own.retain(|field| of_id(field.id).is_none());
        if !gone.is_empty() {
            own.remove(HeaderId::Vary);
            if !kept.is_empty() {
                own.push(HeaderId::Vary, &kept.join(&b", "[..]));
            }
        }
        self.left_out_varying = gone;
    }

    /// Has a lifetime in seconds precede all fields, as that of X-Accel-Expires does in nginx: it
    /// counts like CDN-Cache-Control (RFC 9213). 0 forbids storing.
    pub fn state_lifetime(&mut self, seconds: u64) {
        if self.ignores_accel {
            return;
        }
        let value = match seconds {
            0 => "no-store".to_owned(),
            seconds => format!("max-age={seconds}"),
        };
        self.headers.to_mut().set(HeaderId::CdnCacheControl, value.as_bytes());
    }

    /// Returns true if Set-Cookie is ignored, and the response has it.
    pub fn drops_cookies(&self) -> bool {
        self.left_out.has(IgnoredField::SetCookie)
    }

    /// Returns true if something is left out.
    pub fn lacks_something(&self) -> bool {
        self.left_out != IgnoredSet::default() || !self.left_out_varying.is_empty()
    }

    /// Ignored names in Vary, in lower case, that may tell of a visitor.
    pub fn visitors_fields(&self) -> impl Iterator<Item = &[u8]> {
        self.left_out_varying.iter().map(|name| &**name).filter(|name| !is_of_browser(name))
    }

    /// The fields that are left out, in a list; empty if there are none.
    pub fn left_out_words(&self) -> String {
        let varying = self.left_out_varying.iter().map(|name| vary_words(name));
        let all = self.left_out.iter().map(|field| field.name().to_owned()).chain(varying);
        all.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ignored(texts: &[&str]) -> IgnoredFields {
        let mut ignored = IgnoredFields::default();
        texts.iter().for_each(|text| ignored.add(text).expect("a field"));
        ignored
    }

    fn judged(texts: &[&str], fields: &[(&str, &str)]) -> (Vec<String>, String) {
        let rules = StoreRules { ignored: ignored(texts), ..StoreRules::safe() };
        let mut response = Response::new(Status::OK);
        for (name, value) in fields {
            response.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        let judged = JudgedHead::of(&response, &rules);
        let line = |name: &[u8], value: &[u8]| {
            format!("{}: {}", name.escape_ascii(), value.escape_ascii())
        };
        let lines = judged.headers.iter().map(|field| line(field.name, field.value)).collect();
        (lines, judged.left_out_words())
    }

    #[test]
    fn a_field_that_has_no_say_cannot_be_ignored() {
        let mut own = IgnoredFields::default();
        for (text, why) in [
            ("ETag", IgnoredFieldError::Unknown("ETag".to_owned())),
            ("", IgnoredFieldError::Unknown(String::new())),
            ("Cache-Control: private", IgnoredFieldError::Unknown("Cache-Control: private".into())),
            ("Vary: a b", IgnoredFieldError::Name("a b".to_owned())),
            ("Vary:", IgnoredFieldError::Name(String::new())),
            ("vary: accept-encoding", IgnoredFieldError::KeptApart("accept-encoding".to_owned())),
            ("Vary: Authorization", IgnoredFieldError::KeptApart("Authorization".to_owned())),
        ] {
            assert_eq!(own.add(text), Err(why), "{text}");
        }
        assert!(own.is_empty());
        for field in IgnoredField::ALL {
            own.add(&field.name().to_ascii_lowercase()).expect("a field");
            assert!(own.has(field), "{field:?}");
        }
    }

    #[test]
    fn the_head_that_counts_lacks_what_is_ignored() {
        let fields = [
            ("Cache-Control", "private"),
            ("Vary", "User-Agent, Accept-Encoding"),
            ("vary", "Cookie, *"),
            ("Set-Cookie", "a=b"),
            ("ETag", "\"a\""),
        ];
        let (lines, words) = judged(&["Cache-Control", "Set-Cookie"], &fields);
        assert_eq!(lines[0], "Vary: User-Agent, Accept-Encoding");
        assert_eq!((lines.len(), &words[..]), (3, "Cache-Control, Set-Cookie"));
        let (lines, words) = judged(&["Vary: user-agent"], &fields);
        assert_eq!(lines.last().expect("a line"), "Vary: accept-encoding, cookie, *");
        assert_eq!(words, "Vary: user-agent");
        // Only who says so ignores what no cache can select by, and codings never are ignored.
        let (lines, _) = judged(&["Vary"], &fields);
        assert_eq!(lines.last().expect("a line"), "Vary: accept-encoding, *");
        let (lines, _) = judged(&["Vary", "Vary: *"], &fields);
        assert_eq!(lines.last().expect("a line"), "Vary: accept-encoding");
        let (lines, words) = judged(&["Expires", "Vary: X"], &fields);
        assert_eq!((lines.len(), words), (5, String::new()));
    }

    #[test]
    fn what_may_tell_of_a_visitor_is_known() {
        for (text, may) in [
            ("Expires", false),
            ("Pragma", false),
            ("Vary: User-Agent", false),
            ("Vary: Accept-Language", false),
            ("Vary: Sec-CH-UA", false),
            ("Vary: Cookie", true),
            ("Vary: X-User", true),
            ("Vary", true),
            ("Vary: *", true),
            ("Set-Cookie", true),
            ("Surrogate-Control", true),
        ] {
            assert_eq!(ignored(&[text]).may_reveal(), may, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_but_what_is_named_is_left_out(
            vary in prop::collection::vec("[A-Za-z-]{1,8}|\\*|accept-encoding", 0..6),
            named in prop::collection::vec("[a-z-]{1,3}", 0..3),
        ) {
            let texts: Vec<String> = named.iter().map(|name| format!("Vary: {name}")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let (lines, _) = judged(&texts, &[("Vary", &vary.join(","))]);
            let left = lines.first().map_or("", |line| line.trim_start_matches("Vary: "));
            let left: Vec<String> =
                left.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
            for name in vary.iter().map(|name| name.to_ascii_lowercase()) {
                prop_assert_eq!(left.contains(&name), !named.contains(&name), "{}", name);
            }
        }
    }
}
