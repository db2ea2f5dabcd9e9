//! Findings: what could be better, what proves it, what changes it, and what the change would do.

use std::fmt;

use crate::edit::{Edit, Lines};
use crate::replay::Figures;

macro_rules! kinds {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The kind of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingKind { $(#[doc = $about] $variant,)* }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in reports.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The kind in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

kinds! {
    QueryParameterUnused "query-parameter-unused"
        "Pages do not depend on a parameter that is part of their keys.";
    CookieUnused "cookie-unused"
        "Pages do not depend on a cookie that keeps requests from the cache.";
    VaryUnused "vary-unused"
        "Responses name a field in Vary on which they do not depend.";
    SetCookieOnEqualPages "set-cookie-on-equal-pages"
        "Pages that are equal for all visitors set a cookie, and are not stored for that.";
    PrivateOnEqualPages "private-on-equal-pages"
        "Pages that are equal for all visitors forbid shared caches to store them.";
    LifetimeShort "lifetime-short"
        "Responses are fetched again before they change.";
    ValidatorMissing "validator-missing"
        "Responses without ETag and Last-Modified are sent whole again.";
    LifetimeMissing "lifetime-missing"
        "Responses state no lifetime.";
    ClockOff "clock-off"
        "The origin's clock is wrong, and lifetimes with it.";
    MemorySmall "memory-small"
        "Responses leave memory before they are asked for again.";
    LargeFiles "large-files"
        "Large files that are rarely asked for push pages out of memory.";
    Uncompressed "uncompressed"
        "Text is sent without compression.";
    ErrorLifetime "error-lifetime"
        "Errors are stored for longer than they last.";
    RedirectLifetime "redirect-lifetime"
        "Redirects are fetched again and again.";
    NotFoundLifetime "not-found-lifetime"
        "The answer that there is no such page is fetched again and again.";
    PurgeWide "purge-wide"
        "Purges remove pages that have not changed.";
    ExpireTogether "expire-together"
        "Many responses expire at one moment.";
    Bots "bots"
        "Crawlers cause most requests to the origin.";
    HitForMissLong "hit-for-miss-long"
        "Requests do not share fetches for long after a response that was not stored.";
    LimitFires "limit-fires"
        "A limit refuses or changes requests.";
    PassStatic "pass-static"
        "Static files pass the cache.";
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The proof of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Bodies were equal, byte for byte.
    Bodies {
        /// Bodies that were equal to one that they were compared with.
        equal: u64,
        /// The comparison in words.
        text: String,
    },
    /// Heads or counts of the visits show it.
    Counts(String),
    /// There is no proof, for this reason.
    Missing(String),
}

impl Proof {
    /// The name in reports.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Bodies { .. } => "bodies",
            Self::Counts(_) => "counts",
            Self::Missing(_) => "missing",
        }
    }

    /// The order in which suspicions are tried: counts, which are few, then the most bodies.
    pub(crate) const fn weight(&self) -> u64 {
        match self {
            Self::Counts(_) => u64::MAX,
            Self::Bodies { equal, .. } => *equal,
            Self::Missing(_) => 0,
        }
    }

    /// The proof of two things, each by its own.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let text = format!("{}; {}", self.text(), other.text());
        match (self, other) {
            (Self::Bodies { equal, .. }, Self::Bodies { equal: others, .. }) => {
                Self::Bodies { equal: *equal.min(others), text }
            }
            (Self::Missing(_), _) | (_, Self::Missing(_)) => Self::Missing(text),
            _ => Self::Counts(text),
        }
    }

    /// The proof in words.
    pub fn text(&self) -> &str {
        match self {
            Self::Bodies { text, .. } | Self::Counts(text) | Self::Missing(text) => text,
        }
    }
}

/// A finding before its change is tried.
#[derive(Clone, Debug)]
pub(crate) struct Suspicion {
    /// The kind.
    pub(crate) kind: FindingKind,
    /// Index of the site.
    pub(crate) site: usize,
    /// The thing that it is about: a parameter, a cookie, a field, a limit.
    pub(crate) about: String,
    /// The paths concerned, as a route's `path`; empty for the whole site.
    pub(crate) paths: String,
    /// The proof.
    pub(crate) proof: Proof,
    /// Edits that change it; empty if no setting does.
    pub(crate) edits: Vec<Edit>,
    /// Bytes that a change of the application would save, where no replay can count them.
    pub(crate) bytes: u64,
    /// It is worth telling for its own sake, without a better ratio.
    pub(crate) is_fault: bool,
    /// The danger of the change.
    pub(crate) risk: String,
    /// Changes beside those of larder.toml.
    pub(crate) hints: Vec<String>,
}

/// The lines that change a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: String,
    /// Lines of the changed file.
    pub places: Vec<Lines>,
    /// The whole text of the changed file.
    pub text: String,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its number in the list, from 1.
    pub number: usize,
    /// The kind.
    pub kind: FindingKind,
    /// The site's name.
    pub site: String,
    /// The thing that it is about: a parameter, a cookie, a field, a limit.
    pub about: String,
    /// The paths concerned; empty for the whole site.
    pub paths: String,
    /// The proof.
    pub proof: Proof,
    /// Figures of the replay with the change; `None` if no setting changes it.
    pub after: Option<Figures>,
    /// Bytes that a change of the application would save.
    pub bytes: u64,
    /// The danger of the change.
    pub risk: String,
    /// The change of the configuration.
    pub change: Option<Change>,
    /// Changes beside it.
    pub hints: Vec<String>,
}

impl Finding {
    /// Hundredths that the hit ratio gains over `before`.
    pub fn points(&self, before: &Figures) -> f64 {
        self.after.map_or(0.0, |after| after.ratio() - before.ratio())
    }
}
