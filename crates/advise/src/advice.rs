//! Advice: findings of all detectors, each tried by a replay with its change and nothing else.

use crate::edit::apply;
use crate::finding::{Change, Finding, FindingKind, Suspicion};
use crate::findings::{DETECTORS, are_few};
use crate::replay::{Figures, replay};
use crate::settings::Settings;
use crate::trace::Trace;
use crate::visit::Visit;

/// Least gain of the hit ratio, in hundredths, that is worth a change.
const LEAST_POINTS: f64 = 0.2;
/// Least share of requests to the origin, in hundredths, that is worth a change.
const LEAST_SAVED: u64 = 2;

/// Most replays that try changes: each takes as long as the visits are many, and clients choose how
/// many names of parameters and cookies there are.
const REPLAYS_MAX: usize = 60;

/// Figures and findings of some visits.
#[derive(Debug)]
pub struct Advice {
    /// Visits that were read.
    pub visits: usize,
    /// Unix times of the first and the last, in milliseconds.
    pub span_ms: Option<(u64, u64)>,
    /// Figures under the present settings.
    pub figures: Figures,
    /// The findings, the most useful first.
    pub findings: Vec<Finding>,
    /// Number of lighter suspicions whose change was not tried, since there were too many.
    pub untried: usize,
    /// Too few networks for advice on cookies and on pages that refuse to be stored.
    pub has_few_networks: bool,
}

/// The replays that are left.
struct Budget {
    replays: usize,
    untried: usize,
}

impl Budget {
    /// Returns true if a suspicion may be tried.
    fn permits(&mut self, suspicion: &Suspicion) -> bool {
        if suspicion.edits.is_empty() {
            return true;
        }
        let is_left = self.replays > 0;
        self.replays = self.replays.saturating_sub(1);
        self.untried += usize::from(!is_left);
        is_left
    }
}

/// Finds what would serve the visits better than `settings` do.
pub fn advise(mut visits: Vec<Visit>, settings: &Settings) -> Advice {
    visits.sort_by_key(|visit| visit.at_ms);
    let trace = Trace::new(&visits, settings);
    let mut suspicions: Vec<_> = DETECTORS.iter().flat_map(|detect| detect(&trace)).collect();
    suspicions.sort_by_key(|suspicion| std::cmp::Reverse(suspicion.proof.weight()));
    let mut budget = Budget { replays: REPLAYS_MAX, untried: 0 };
    suspicions.retain(|suspicion| budget.permits(suspicion));
    let mut findings = Vec::new();
    let mut useless = Vec::new();
    for suspicion in suspicions {
        match tried(&trace, suspicion.clone()) {
            Some(finding) => findings.push(finding),
            None => useless.push(suspicion),
        }
    }
    let mut joint = together(useless);
    joint.retain(|suspicion| budget.permits(suspicion));
    findings.extend(joint.into_iter().filter_map(|own| tried(&trace, own)));
    let before = trace.figures;
    let use_of = |finding: &Finding| {
        let saved = finding
            .after
            .map_or(0, |after| before.origin_requests.saturating_sub(after.origin_requests));
        (saved, finding.bytes)
    };
    findings.sort_by_key(|finding| std::cmp::Reverse(use_of(finding)));
    for (at, finding) in findings.iter_mut().enumerate() {
        finding.number = at + 1;
    }
    let first = trace.clients.first().map(|visit| visit.at_ms);
    let span_ms = first.zip(trace.clients.last().map(|visit| visit.at_ms));
    Advice {
        visits: trace.clients.len(),
        span_ms,
        figures: trace.figures,
        findings,
        untried: budget.untried,
        has_few_networks: are_few(&trace.seen),
    }
}

/// Cookies that help only together, since visitors have several: one suspicion for each site.
fn together(useless: Vec<Suspicion>) -> Vec<Suspicion> {
    let mut of_sites: Vec<Suspicion> = Vec::new();
    for next in useless.into_iter().filter(|own| own.kind == FindingKind::CookieUnused) {
        match of_sites.iter_mut().find(|own| own.site == next.site) {
            Some(own) => {
                own.about = format!("{}, {}", own.about, next.about);
                own.proof = own.proof.with(&next.proof);
                own.risk = format!("{}; {}", own.risk, next.risk);
                own.edits.extend(next.edits);
            }
            None => of_sites.push(next),
        }
    }
    of_sites
}

/// Tries the change of a suspicion. `None` if it is not worth it.
fn tried(trace: &Trace<'_>, suspicion: Suspicion) -> Option<Finding> {
    let Suspicion { kind, site, about, paths, proof, edits, bytes, is_fault, risk, mut hints } =
        suspicion;
    let mut tried = None;
    if !edits.is_empty() {
        match changed(trace.settings, &edits) {
            Ok((change, settings)) => {
                let after = replay(&trace.clients, &trace.samples, &settings);
                tried = Some((after, change));
            }
            Err(why) => hints.push(format!("by hand, since the file cannot be changed: {why}")),
        }
    }
    let is_useful = tried.as_ref().is_some_and(|(after, _)| is_better(&trace.figures, after));
    if !is_useful && !is_fault {
        return None;
    }
    let (after, change) = tried.unzip();
    let site = trace.settings.site_name(site).to_owned();
    let number = 0;
    Some(Finding { number, kind, site, about, paths, proof, after, bytes, risk, change, hints })
}

fn is_better(before: &Figures, after: &Figures) -> bool {
    let saved = before.origin_requests.saturating_sub(after.origin_requests);
    after.ratio() - before.ratio() >= LEAST_POINTS
        || saved * 100 >= before.origin_requests * LEAST_SAVED && saved > 0
}

/// The settings after `edits`, as `larder check` would read them.
fn changed(settings: &Settings, edits: &[crate::edit::Edit]) -> Result<(Change, Settings), String> {
    let (text, places) = apply(&settings.text, edits)?;
    let read = settings
        .with_text(&text)
        .map_err(|faults| faults.first().map_or_else(String::new, |fault| fault.message.clone()))?;
    Ok((Change { file: settings.file.clone(), places, text }, read))
}

#[cfg(test)]
mod tests;
