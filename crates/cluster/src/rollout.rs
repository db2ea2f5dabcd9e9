//! A roll-out: a version goes to a few nodes first, its canaries, and to all nodes once each canary
//! reports success. After a failure all nodes return to the version before. Pure: the kind of
//! version does not matter. The state is one entry of the bucket, and each change must replace the
//! state that it was made from, so no node directs the others.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::members::is_name;
use crypto::digest::{SHA256, digest};

/// Versions that are kept, each in a slot of its own.
pub const SLOTS: u8 = 8;
/// The most canaries.
pub const CANARIES_MAX: usize = 64;
/// The most URLs that a canary requests from itself.
pub const CHECKS_MAX: usize = 32;
/// The most bytes of a comment, of a check, and of the reason for a failure, so that the state fits
/// an entry.
const TEXT_BYTES: usize = 1_000;
/// Hex digits of a version.
const VERSION_DIGITS: usize = 12;

/// The version of `content`: the beginning of its SHA-256.
pub fn version_of(content: &[u8]) -> String {
    let sum = digest(&SHA256, content);
    let hex: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..VERSION_DIGITS].to_owned()
}

/// A release: a version that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Its version: [`version_of`] its content.
    pub version: String,
    /// The slot of its content.
    pub slot: u8,
    /// The node on which the roll-out was ordered.
    pub node: String,
    /// The time of the order, in milliseconds since 1970 by that node's clock.
    pub unix_ms: u64,
    /// The operator's comment.
    pub comment: String,
    /// True once it was rolled out to all.
    pub passed: bool,
}

/// The stage of a roll-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RollOutStage {
    /// Only the canaries should have the version.
    Canary,
    /// All nodes should have it.
    All,
    /// No node should have it: it has failed.
    Failed,
}

impl RollOutStage {
    /// The stage's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Canary => "canary",
            Self::All => "all",
            Self::Failed => "failed",
        }
    }
}

/// A node that gets a version first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// Its name.
    pub node: String,
    /// True once it has reported success.
    pub is_well: bool,
}

/// The conditions under which a version goes from the canaries to all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollOutPlan {
    /// The canaries, at least one.
    pub canaries: Vec<String>,
    /// Milliseconds of observation.
    pub watch_ms: u64,
    /// URLs that the canaries request from themselves.
    pub checks: Vec<String>,
}

/// The state of the last roll-out, and the releases to return to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollOut {
    /// Grows with each roll-out. Reports about an earlier one are ignored.
    pub number: u64,
    /// The version of the roll-out.
    pub version: String,
    /// The present stage.
    pub stage: RollOutStage,
    /// The canaries; empty for a roll-out to all at once.
    pub canaries: Vec<Canary>,
    /// Milliseconds of observation.
    pub watch_ms: u64,
    /// URLs that the canaries request from themselves.
    pub checks: Vec<String>,
    /// The reason for the failure; empty without one.
    pub why: String,
    /// The version of the other nodes; `None` before the first that went to all.
    pub good: Option<String>,
    /// The releases that are kept. Of those that went to all, the last one did so last.
    pub releases: Vec<Release>,
}

/// The reason why a roll-out is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollOutRefusal {
    /// Another version is on its canaries.
    Busy {
        /// The version.
        version: String,
        /// The canaries without a report.
        awaited: Vec<String>,
    },
    /// All nodes have the version already.
    Known(String),
    /// No such version is kept that was rolled out to all.
    Unknown(String),
    /// There is no earlier version to return to.
    Nothing,
    /// The plan is invalid.
    Plan(&'static str),
}

impl fmt::Display for RollOutRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { version, awaited } => write!(
                f,
                "{version} is on its canaries; waiting for the report of {}. `larder cluster \
                 roll-back` ends the roll-out",
                awaited.join(", ")
            ),
            Self::Known(version) => write!(f, "{version} is the version of all nodes already"),
            Self::Unknown(version) => {
                write!(f, "no version {version} is kept that was rolled out to all nodes")
            }
            Self::Nothing => f.write_str("there is no earlier version to return to"),
            Self::Plan(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RollOutRefusal {}

impl RollOut {
    /// The state as JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes what [`RollOut::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        let has = |version: &String| state.release(version).is_some();
        let is_whole = has(&state.version) && state.good.iter().all(has);
        (is_whole && state.releases.iter().all(|own| own.slot < SLOTS)).then_some(state)
    }

    /// The first state: every node has `release`, without an order. For nodes with a version when
    /// there is no readable state.
    pub fn found(release: Release) -> Self {
        Self {
            number: 0,
            version: release.version.clone(),
            stage: RollOutStage::All,
            canaries: Vec::new(),
            watch_ms: 0,
            checks: Vec::new(),
            why: String::new(),
            good: Some(release.version.clone()),
            releases: vec![Release { passed: true, ..release }],
        }
    }

    /// The slot for the content of `version`: its own, a free one, or that of the version least
    /// likely to be wanted again. Two concurrent roll-outs mostly select different slots.
    pub fn slot_for(before: Option<&Self>, version: &str) -> u8 {
        let releases = before.map_or(&[][..], |state| &state.releases);
        if let Some(own) = releases.iter().find(|own| own.version == version) {
            return own.slot;
        }
        let first = version.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        let order = (0..SLOTS).map(|at| (first % SLOTS + at) % SLOTS);
        let is_free = |slot: &u8| releases.iter().all(|own| own.slot != *slot);
        let is_good =
            |own: &&Release| before.is_some_and(|s| s.good.as_ref() == Some(&own.version));
        let mut others = releases.iter().filter(|own| !is_good(own));
        let oldest = others.clone().find(|own| !own.passed).or_else(|| others.next());
        order.into_iter().find(is_free).or_else(|| oldest.map(|own| own.slot)).unwrap_or(0)
    }

    /// The state that begins the roll-out of `release` by `plan`.
    ///
    /// # Errors
    /// Another roll-out is under way, all nodes have the version, or the plan is invalid.
    pub fn begin(
        before: Option<&Self>,
        release: Release,
        plan: RollOutPlan,
    ) -> Result<Self, RollOutRefusal> {
        if let Some(own) = before.filter(|own| own.stage == RollOutStage::Canary) {
            return Err(own.busy());
        }
        let good = before.and_then(|own| own.good.clone());
        if good.as_ref() == Some(&release.version) {
            return Err(RollOutRefusal::Known(release.version));
        }
        let RollOutPlan { mut canaries, watch_ms, checks } = plan;
        canaries.sort_unstable();
        canaries.dedup();
        let is_long = |text: &String| text.len() > TEXT_BYTES;
        let fault = match () {
            () if canaries.is_empty() => Some("a roll-out begins with a canary"),
            () if canaries.len() > CANARIES_MAX => Some("there are at most 64 canaries"),
            () if !canaries.iter().all(|name| is_name(name)) => {
                Some("a canary is named by its node")
            }
            () if checks.len() > CHECKS_MAX => Some("there are at most 32 checks"),
            () if checks.iter().any(is_long) || is_long(&release.comment) => {
                Some("a comment and a check have at most 1000 bytes each")
            }
            () => None,
        };
        if let Some(fault) = fault {
            return Err(RollOutRefusal::Plan(fault));
        }
        let canaries = canaries.into_iter().map(|node| Canary { node, is_well: false }).collect();
        let mut releases = before.map(|own| own.releases.clone()).unwrap_or_default();
        releases.retain(|own| own.version != release.version && own.slot != release.slot);
        let (version, passed) = (release.version.clone(), false);
        releases.push(Release { passed, ..release });
        let number = before.map_or(0, |own| own.number) + 1;
        let (stage, why) = (RollOutStage::Canary, String::new());
        Ok(Self { number, version, stage, canaries, watch_ms, checks, why, good, releases })
    }

    fn busy(&self) -> RollOutRefusal {
        let awaited = self.canaries.iter().filter(|own| !own.is_well);
        let awaited = awaited.map(|own| own.node.clone()).collect();
        RollOutRefusal::Busy { version: self.version.clone(), awaited }
    }

    /// The release of this version.
    pub fn release(&self, version: &str) -> Option<&Release> {
        self.releases.iter().find(|own| own.version == version)
    }

    /// Returns true if `node` is a canary without a report.
    pub fn awaits(&self, node: &str) -> bool {
        let mut canaries = self.canaries.iter();
        self.stage == RollOutStage::Canary && canaries.any(|own| own.node == node && !own.is_well)
    }

    /// The release for `node`; `None` if it should keep its last one.
    pub fn wanted(&self, node: &str) -> Option<&Release> {
        let is_canary = self.canaries.iter().any(|own| own.node == node);
        match self.stage {
            RollOutStage::Canary if is_canary => self.release(&self.version),
            RollOutStage::All | RollOutStage::Canary | RollOutStage::Failed => {
                self.release(self.good.as_ref()?)
            }
        }
    }

    /// The state after the report of a canary in roll-out `number`, with the reason for a failure;
    /// `None` if no report is expected.
    #[must_use]
    pub fn canary_reported(
        &self,
        node: &str,
        number: u64,
        word: &Result<(), String>,
    ) -> Option<Self> {
        if self.number != number || !self.awaits(node) {
            return None;
        }
        let mut next = self.clone();
        if let Err(why) = word {
            next.fail(&format!("{node}: {why}"));
            return Some(next);
        }
        let mut own = next.canaries.iter_mut();
        own.find(|own| own.node == node)?.is_well = true;
        if next.canaries.iter().all(|own| own.is_well) {
            next.promote(&self.version);
        }
        Some(next)
    }

    /// The state after an operator's return to `version`, or to the one before. Canaries of a
    /// roll-out under way return as well.
    ///
    /// # Errors
    /// There is no version to return to.
    pub fn back(&self, version: Option<&str>) -> Result<Self, RollOutRefusal> {
        let mut next = self.clone();
        if self.stage == RollOutStage::Canary && version.is_none() {
            next.fail("it was rolled back by hand");
            return Ok(next);
        }
        let is_other = |own: &&Release| own.passed && self.good.as_ref() != Some(&own.version);
        let target = match version {
            Some(version) => {
                let found = self.release(version).filter(|own| own.passed);
                found.ok_or_else(|| RollOutRefusal::Unknown(version.to_owned()))?
            }
            None => self.releases.iter().rev().find(is_other).ok_or(RollOutRefusal::Nothing)?,
        };
        let is_good = self.good.as_ref() == Some(&target.version);
        if is_good && self.stage == RollOutStage::All {
            return Err(RollOutRefusal::Known(target.version.clone()));
        }
        next.number += 1;
        next.version.clone_from(&target.version);
        next.canaries.clear();
        (next.watch_ms, next.checks) = (0, Vec::new());
        next.why.clear();
        next.promote(&target.version);
        Ok(next)
    }

    fn promote(&mut self, version: &str) {
        self.stage = RollOutStage::All;
        self.good = Some(version.to_owned());
        if let Some(at) = self.releases.iter().position(|own| own.version == version) {
            let release = self.releases.remove(at);
            self.releases.push(Release { passed: true, ..release });
        }
    }

    fn fail(&mut self, why: &str) {
        self.stage = RollOutStage::Failed;
        self.why = why[..why.floor_char_boundary(TEXT_BYTES)].to_owned();
    }
}

#[cfg(test)]
mod tests;
