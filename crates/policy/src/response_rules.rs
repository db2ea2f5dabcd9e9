//! Rules for responses of origins: by status, type, fields and length, they decide about storing,
//! and change fields on their way to the client.
//!
//! All rules that match apply, in their order, and the later wins, as in Cloudflare's cache
//! response rules. A rule never stores what the origin, or the request, forbids.

use std::fmt;

use base::units::DurationMs;
use message::store::{JudgedHead, StatusMatch};
use message::{HeaderBlock, HeaderId, Response, header};
use smallvec::SmallVec;

use crate::conditions::NamedCondition;
use crate::header_changes::HeaderOps;
use crate::headers::FieldName;
use crate::pattern::TextPattern;
use crate::template::TemplateValues;

/// A rule for responses.
#[derive(Clone, Debug, Default)]
pub struct ResponseRule {
    /// The responses that it is for.
    pub scope: ResponseScope,
    /// If false, they are not stored.
    pub store: Option<bool>,
    /// Their lifetime in milliseconds, if they state none; 0 for none.
    pub ttl_ms: Option<u64>,
    /// Changes to them on their way to the client.
    pub headers: HeaderOps,
    /// The rule in words, for logs and explanations.
    pub told: Box<str>,
}

/// Responses that a rule is for: all of its conditions hold, each list has alternatives.
#[derive(Clone, Debug, Default)]
pub struct ResponseScope {
    /// Statuses; empty for all.
    pub status: Vec<StatusMatch>,
    /// Types of content; empty for all.
    pub kinds: Vec<MediaPattern>,
    /// Fields; of each list, one must be as it should be.
    pub fields: Vec<Vec<NamedCondition<FieldName, TextPattern>>>,
    /// The least Content-Length.
    pub min_bytes: Option<u64>,
    /// The largest Content-Length.
    pub max_bytes: Option<u64>,
}

/// The rules that match a response, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedRules(SmallVec<[u16; 8]>);

/// A type of content (`text/html`), or all subtypes of one (`image/*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPattern {
    /// In lower case, up to the star if there is one.
    text: Box<str>,
    is_prefix: bool,
}

/// The text is not a type of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMediaType;

impl fmt::Display for NotMediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a type is written as `text/html`, or `image/*` for all of its kind")
    }
}

impl std::error::Error for NotMediaType {}

impl MediaPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is not a type and a subtype, or has parameters.
    pub fn parse(text: &str) -> Result<Self, NotMediaType> {
        let (kind, subtype) = text.split_once('/').ok_or(NotMediaType)?;
        let is_name = |name: &str| header::is_token(name.as_bytes()) && !name.contains('*');
        let is_prefix = subtype == "*";
        if !is_name(kind) || !(is_prefix || is_name(subtype)) {
            return Err(NotMediaType);
        }
        let text = text.trim_end_matches('*').to_ascii_lowercase().into();
        Ok(Self { text, is_prefix })
    }

    /// Returns true for a Content-Type of the type, whatever its parameters.
    pub fn matches(&self, content_type: &[u8]) -> bool {
        let kind = content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        match self.is_prefix {
            true => kind.get(..self.text.len()).is_some_and(|start| self.is(start)),
            false => self.is(kind),
        }
    }

    fn is(&self, kind: &[u8]) -> bool {
        kind.eq_ignore_ascii_case(self.text.as_bytes())
    }
}

impl fmt::Display for MediaPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.is_prefix { f.write_str("*") } else { Ok(()) }
    }
}

impl ResponseScope {
    /// Returns true if there are no conditions.
    pub fn is_everything(&self) -> bool {
        self.status.is_empty()
            && self.kinds.is_empty()
            && self.fields.is_empty()
            && self.min_bytes.is_none()
            && self.max_bytes.is_none()
    }

    /// Returns true if the rule is for `response`. One without a Content-Type has no type, and one
    /// without a Content-Length no length.
    pub fn contains(&self, response: &Response) -> bool {
        let headers = &response.headers;
        let is_of_kind = || {
            let kind = headers.value(HeaderId::ContentType);
            kind.is_some_and(|kind| self.kinds.iter().any(|own| own.matches(kind)))
        };
        (self.status.is_empty() || self.status.iter().any(|of| of.matches(response.status)))
            && (self.kinds.is_empty() || is_of_kind())
            && self.fields.iter().all(|any| any.iter().any(|test| test.holds(headers.iter())))
            && self.is_long_enough(response)
    }

    fn is_long_enough(&self, response: &Response) -> bool {
        if self.min_bytes.is_none() && self.max_bytes.is_none() {
            return true;
        }
        response.content_length().is_some_and(|length| {
            self.min_bytes.is_none_or(|least| length >= least)
                && self.max_bytes.is_none_or(|most| length <= most)
        })
    }

    /// The conditions in words. A value of a field may be a secret; it is left out.
    pub fn told(&self) -> String {
        let any = |texts: Vec<String>| texts.join(" or ");
        let mut parts = Vec::new();
        if !self.status.is_empty() {
            let all = self.status.iter().map(ToString::to_string).collect();
            parts.push(format!("status {}", any(all)));
        }
        if !self.kinds.is_empty() {
            let all = self.kinds.iter().map(ToString::to_string).collect();
            parts.push(format!("type {}", any(all)));
        }
        for tests in &self.fields {
            parts.push(any(tests.iter().map(|test| test.told("header", ": ")).collect()));
        }
        parts.extend(self.min_bytes.map(|least| format!("at least {least} bytes")));
        parts.extend(self.max_bytes.map(|most| format!("at most {most} bytes")));
        parts.join(", ")
    }
}

impl ResponseRule {
    /// Returns true if the rule has a say in storing.
    pub fn is_about_storing(&self) -> bool {
        self.store.is_some() || self.ttl_ms.is_some()
    }

    /// The verdict about storing in words; empty without one.
    pub fn words(&self) -> String {
        if !self.is_about_storing() {
            return String::new();
        }
        let store = self.store.map(|store| if store { "may be stored" } else { "not stored" });
        let ttl = self.ttl_ms.map(|ms| format!("ttl {} if it states none", DurationMs(ms)));
        let verdicts: Vec<String> = store.map(str::to_owned).into_iter().chain(ttl).collect();
        format!("{}: {}", self.told, verdicts.join(", "))
    }
}

/// The verdicts of `rules` about storing, in words.
pub(crate) fn words(rules: &[ResponseRule]) -> String {
    let all = rules.iter().map(ResponseRule::words).filter(|words| !words.is_empty());
    all.collect::<Vec<_>>().join("; ")
}

/// The rules of `rules` that match `response`.
pub(crate) fn matched(rules: &[ResponseRule], response: &Response) -> MatchedRules {
    let found = (0..).zip(rules).filter(|(_, rule)| rule.scope.contains(response));
    MatchedRules(found.map(|(at, _)| at).collect())
}

/// Tells `judged`, the head of `response`, what the rules say about storing.
pub(crate) fn judge<'a>(
    rules: &'a [ResponseRule],
    response: &Response,
    judged: &mut JudgedHead<'a>,
) {
    for rule in rules.iter().filter(|rule| rule.is_about_storing()) {
        if !rule.scope.contains(response) {
            continue;
        }
        match rule.store {
            Some(true) => judged.refused_by = None,
            Some(false) => judged.refused_by = Some(&rule.told),
            None => {}
        }
        if let Some(ms) = rule.ttl_ms {
            judged.ruled_ttl = Some((ms, &rule.told));
        }
    }
}

/// Changes a head on its way to the client.
pub(crate) fn change(
    rules: &[ResponseRule],
    matched: &MatchedRules,
    headers: &mut HeaderBlock,
    values: TemplateValues<'_>,
) {
    for rule in matched.0.iter().filter_map(|at| rules.get(usize::from(*at))) {
        rule.headers.apply(headers, Some(values));
    }
}

#[cfg(test)]
mod tests {
    use message::Status;
    use proptest::prelude::*;

    use super::*;
    use crate::conditions::WantedValue;

    fn response(status: u16, fields: &[(&str, &str)]) -> Response {
        let mut response = Response::new(Status::new(status).expect("a status"));
        for (name, value) in fields {
            response.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        response
    }

    #[test]
    fn a_type_is_compared_without_its_parameters_and_its_case() {
        for (pattern, yes, no) in [
            ("text/html", &["text/html", "Text/HTML ; charset=utf-8"][..], &["text/htmlx", ""][..]),
            ("image/*", &["image/png", "IMAGE/svg+xml"], &["image", "images/png", "text/image/a"]),
        ] {
            let own = MediaPattern::parse(pattern).expect("a type");
            assert!(yes.iter().all(|kind| own.matches(kind.as_bytes())), "{pattern}");
            assert!(!no.iter().any(|kind| own.matches(kind.as_bytes())), "{pattern}");
            assert_eq!(own.to_string(), pattern);
        }
        for bad in ["text", "*/*", "text/", "/html", "text/h*", "text/html; charset=utf-8", ""] {
            assert_eq!(MediaPattern::parse(bad), Err(NotMediaType), "{bad}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let name = FieldName::parse("X-Kind").expect("a name");
        let wanted = WantedValue::Like(vec![TextPattern::parse("a*").expect("a pattern")]);
        let scope = ResponseScope {
            status: vec![StatusMatch::Class(2), StatusMatch::Class(4)],
            kinds: vec![MediaPattern::parse("image/*").expect("a type")],
            fields: vec![vec![NamedCondition { name, wanted }]],
            min_bytes: Some(10),
            max_bytes: Some(20),
        };
        let told = "status 2xx or 4xx, type image/*, header X-Kind: (value), at least 10 bytes, at \
                    most 20 bytes";
        assert_eq!(scope.told(), told);
        let fields = [("Content-Type", "image/png"), ("X-Kind", "ab"), ("Content-Length", "10")];
        assert!(scope.contains(&response(200, &fields)));
        assert!(!scope.contains(&response(500, &fields)));
        for (at, other) in [(0, "text/html"), (1, "b"), (2, "9"), (2, "21"), (2, "x")].into_iter() {
            let mut changed = fields;
            changed[at].1 = other;
            assert!(!scope.contains(&response(200, &changed)), "{other}");
        }
        for missing in 0..3 {
            let mut left = fields.to_vec();
            left.remove(missing);
            assert!(!scope.contains(&response(200, &left)), "{missing}");
        }
    }

    #[test]
    fn the_later_rule_wins() {
        let rule = |store, ttl_ms, told: &str| ResponseRule {
            store,
            ttl_ms,
            told: told.into(),
            ..ResponseRule::default()
        };
        let rules = [
            rule(Some(false), Some(1), "a"),
            rule(None, Some(2), "b"),
            rule(Some(true), None, "c"),
        ];
        let response = response(200, &[]);
        let verdict = |rules| {
            let store = message::store::StoreRules::safe();
            let mut judged = JudgedHead::of(&response, &store);
            judge(rules, &response, &mut judged);
            (judged.refused_by, judged.ruled_ttl)
        };
        assert_eq!(verdict(&rules[..1]), (Some("a"), Some((1, "a"))));
        assert_eq!(verdict(&rules[..2]), (Some("a"), Some((2, "b"))));
        assert_eq!(verdict(&rules), (None, Some((2, "b"))));
        assert_eq!(matched(&rules, &response).0[..], [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn a_length_is_within_its_bounds(
            least in prop::option::of(0..50_u64),
            most in prop::option::of(0..50_u64),
            length in prop::option::of(0..50_u64),
        ) {
            let scope =
                ResponseScope { min_bytes: least, max_bytes: most, ..ResponseScope::default() };
            let text = length.map(|length| length.to_string());
            let fields: Vec<_> = text.iter().map(|text| ("Content-Length", &text[..])).collect();
            let bounds = least.unwrap_or(0)..=most.unwrap_or(u64::MAX);
            let expected = match length {
                Some(length) => bounds.contains(&length),
                None => scope.is_everything(),
            };
            prop_assert_eq!(scope.contains(&response(200, &fields)), expected);
        }
    }
}
