//! Language of a response, chosen among those of a site by Accept-Language (RFC 9110 12.5.4).
//!
//! The choice is the lookup of RFC 4647 3.4: `de-AT` finds `de`, and `de` does not find `de-AT`.

use std::fmt;

use message::list::members;

use super::weight::weighted;

/// Languages of one site, at most: each is compared with each range of a request.
pub const LANGUAGES_MAX: usize = 32;

/// Language tags that Accept-Language chooses from; the first is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Languages(Box<[Box<[u8]>]>);

/// The reason for which a list of languages was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LanguagesError {
    /// The text is not a language tag.
    Tag(String),
    /// The language is listed twice.
    Twice(String),
    /// There is no choice between fewer than two, and too many cost too much.
    Number,
}

impl fmt::Display for LanguagesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => {
                write!(f, "\"{tag}\" is not a language tag such as \"de\" or \"pt-BR\"")
            }
            Self::Twice(tag) => write!(f, "\"{tag}\" is listed twice"),
            Self::Number => write!(f, "lists 2 to {LANGUAGES_MAX} languages, the default first"),
        }
    }
}

impl std::error::Error for LanguagesError {}

impl Languages {
    /// Languages with these tags, in their spelling.
    ///
    /// # Errors
    /// If a tag is malformed or listed twice, or there are too few or too many.
    pub fn new(tags: &[&str]) -> Result<Self, LanguagesError> {
        for (at, tag) in tags.iter().enumerate() {
            if !is_tag(tag) {
                return Err(LanguagesError::Tag((*tag).to_owned()));
            }
            if tags[..at].iter().any(|other| other.eq_ignore_ascii_case(tag)) {
                return Err(LanguagesError::Twice((*tag).to_owned()));
            }
        }
        if !(2..=LANGUAGES_MAX).contains(&tags.len()) {
            return Err(LanguagesError::Number);
        }
        Ok(Self(tags.iter().map(|tag| tag.as_bytes().into()).collect()))
    }

    /// The tags, the default first.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|tag| &**tag)
    }

    /// The language for a request with these lines of Accept-Language. The range with the highest
    /// weight that finds a language counts, the first of several; without one, the default.
    ///
    /// `*` stands for the first language that no other range names. A language that a range names
    /// with the weight 0 is not chosen, unless it is the default and nothing else is left: a page
    /// in it is more useful than none.
    pub(super) fn choose<'a>(&self, lines: impl Iterator<Item = &'a [u8]> + Clone) -> &[u8] {
        // Bits of languages that a range names exactly, and of those that one refuses.
        let (mut named, mut refused) = (0_u32, 0_u32);
        for (range, weight) in members(lines.clone()).filter_map(weighted) {
            if let Some(at) = self.position(range) {
                named |= 1 << at;
                refused |= u32::from(weight == 0) << at;
            }
        }
        let free = |at: usize| refused & 1 << at == 0;
        let (mut best, mut most) = (None, 0);
        for (range, weight) in members(lines).filter_map(weighted) {
            if weight <= most {
                continue;
            }
            let found = match range {
                b"*" => (0..self.0.len()).find(|at| named & 1 << at == 0),
                _ => self.look_up(range, free),
            };
            if found.is_some() {
                (best, most) = (found, weight);
            }
        }
        &self.0[best.unwrap_or(0)]
    }

    /// The language that `range`, or what is left of it from its end on, names (RFC 4647 3.4).
    fn look_up(&self, mut range: &[u8], free: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            if let Some(at) = self.position(range).filter(|at| free(*at)) {
                return Some(at);
            }
            range = &range[..memchr::memrchr(b'-', range)?];
        }
    }

    fn position(&self, range: &[u8]) -> Option<usize> {
        self.0.iter().position(|tag| tag.eq_ignore_ascii_case(range))
    }
}

/// Returns true for a well-formed language tag (RFC 5646 2.1), but for those with single letters
/// (`de-x-mine`, `i-klingon`): no range finds these by lookup.
fn is_tag(text: &str) -> bool {
    let mut subtags = text.split('-');
    let is_primary = |tag: &str| {
        (2..=8).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let is_further = |tag: &str| {
        (2..=8).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    subtags.next().is_some_and(is_primary) && subtags.all(is_further)
}
