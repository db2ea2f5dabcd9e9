//! Decision steps for `explain`, with the locations of the settings behind them.
//!
//! The code that decides also reports: it gets a listener, which on the request path is
//! `NullListener`, so that reports must cost nothing there.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A location in a configuration, as people read it: `larder.toml:12`, `preset wordpress: line 44`.
pub type SettingLocation = Arc<str>;

/// One step of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionStep {
    /// The subject: a short heading.
    pub what: &'static str,
    /// The finding, and its consequence.
    pub why: String,
    /// The location of the setting behind it; `None` for a default, or without a setting.
    pub place: Option<SettingLocation>,
    /// Names and values with details.
    pub facts: Vec<(&'static str, String)>,
    /// The step decides the outcome.
    pub decided: bool,
    /// Advice in sentences: the setting that changes the outcome, or why none should.
    pub advice: Option<String>,
}

impl DecisionStep {
    /// A step without location and facts.
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self { what, why: why.into(), ..Self::default() }
    }

    /// The step with the location of its setting.
    #[must_use]
    pub fn at(mut self, place: Option<&SettingLocation>) -> Self {
        self.place = place.cloned();
        self
    }

    /// The step with one more fact, unless its value is empty.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.facts.push((name, value));
        }
        self
    }

    /// The step as the deciding one.
    #[must_use]
    pub fn decisive(mut self) -> Self {
        self.decided = true;
        self
    }

    /// The step with advice.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// A receiver of the steps of a decision, while it is made.
pub(crate) trait Listener {
    /// Takes the next step; `step` is called only by a listener that uses it.
    fn record(&mut self, step: impl FnOnce() -> DecisionStep);
}

/// A listener that ignores all steps.
pub(crate) struct NullListener;

impl Listener for NullListener {
    #[inline(always)]
    fn record(&mut self, _: impl FnOnce() -> DecisionStep) {}
}

impl Listener for Vec<DecisionStep> {
    fn record(&mut self, step: impl FnOnce() -> DecisionStep) {
        self.push(step());
    }
}

/// The locations of settings, by key (`cache.ttl`), and of rules, by name (`bypass cookie
/// wordpress_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingLocations(BTreeMap<String, SettingLocation>);

impl SettingLocations {
    /// Sets the location of `name`, replacing an earlier one.
    pub fn note(&mut self, name: impl Into<String>, place: SettingLocation) {
        self.0.insert(name.into(), place);
    }

    /// The location of `name`.
    pub fn of(&self, name: &str) -> Option<&SettingLocation> {
        self.0.get(name)
    }
}

/// Bytes for display: text, with all other bytes escaped.
pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'")
}
