//! Steps of a decision, told to operators, and the places of the settings behind them.
//!
//! The code that decides is the code that tells: it is handed a listener, which is deaf on the way
//! of a request, so that telling costs nothing there.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A place in a configuration as people read it: `larder.toml:12`, `preset wordpress: line 44`.
pub type SettingLocation = Arc<str>;

/// One thing that was looked at on the way to a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionStep {
    /// The subject: a heading of a word or two.
    pub what: &'static str,
    /// The finding, and its consequence.
    pub why: String,
    /// The place of the setting that made it so; `None` if it is no setting, or a default.
    pub place: Option<SettingLocation>,
    /// Names and values that tell more.
    pub facts: Vec<(&'static str, String)>,
    /// The step settles what happens.
    pub decided: bool,
    /// Whatever would change that, in sentences: a setting, or why nothing should.
    pub advice: Option<String>,
}

impl DecisionStep {
    /// A step without a place, without facts.
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self { what, why: why.into(), ..Self::default() }
    }

    /// The same, said by the setting at `place`.
    #[must_use]
    pub fn at(mut self, place: Option<&SettingLocation>) -> Self {
        self.place = place.cloned();
        self
    }

    /// The same with one more fact, unless it says nothing.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.facts.push((name, value));
        }
        self
    }

    /// The same as what settles it.
    #[must_use]
    pub fn decisive(mut self) -> Self {
        self.decided = true;
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// A receiver of the steps of a decision while the decision is made.
pub(crate) trait Listener {
    /// Takes the next step; it is made only where somebody listens.
    fn hear(&mut self, step: impl FnOnce() -> DecisionStep);
}

/// Nobody listens.
pub(crate) struct NullListener;

impl Listener for NullListener {
    #[inline(always)]
    fn hear(&mut self, _: impl FnOnce() -> DecisionStep) {}
}

impl Listener for Vec<DecisionStep> {
    fn hear(&mut self, step: impl FnOnce() -> DecisionStep) {
        self.push(step());
    }
}

/// Where settings are written, by their keys (`cache.ttl`), and rules, by their names (`bypass
/// cookie wordpress_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingLocations(BTreeMap<String, SettingLocation>);

impl SettingLocations {
    /// Notes where `name` is written, in place of where it was written before.
    pub fn note(&mut self, name: impl Into<String>, place: SettingLocation) {
        self.0.insert(name.into(), place);
    }

    /// Where `name` is written.
    pub fn of(&self, name: &str) -> Option<&SettingLocation> {
        self.0.get(name)
    }
}

/// Bytes as they may be shown to people: text, with all other bytes escaped.
pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'")
}
