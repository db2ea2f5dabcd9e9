//! Questions to an origin, for what a log does not tell: heads of responses, and bodies with and
//! without a parameter.
//!
//! Only what visitors asked for with GET, and what a cache may look up, is asked again, and never
//! with their cookies.

use std::collections::{BTreeMap, BTreeSet};

use message::query;
use observe::record::Served;

use crate::reception::{Course, receive};
use crate::settings::Settings;
use crate::visit::{BodyPrint, Visit};

/// Pages that are asked for with and without one parameter.
const PAGES_BY_PARAMETER: usize = 15;
/// Least requests with a parameter, for questions about it.
const REQUESTS_MIN: usize = 10;

/// A request that an origin is asked to answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Host.
    pub host: String,
    /// Path and query.
    pub target: Vec<u8>,
}

impl Question {
    /// The origin's answer at `at_ms`, as a visit of no client.
    pub fn answered(
        &self,
        at_ms: u64,
        status: u16,
        fields: Vec<(String, Vec<u8>)>,
        body_bytes: u64,
        body: BodyPrint,
    ) -> Visit {
        Visit {
            at_ms,
            host: self.host.clone(),
            method: "GET".to_owned(),
            target: self.target.clone(),
            status,
            body_bytes,
            served: Some(Served::Refresh),
            response: Some(fields),
            body: Some(body),
            ..Visit::default()
        }
    }
}

/// At most `most` questions about what `visits` asked for: half about parameters, the others about
/// what was asked for most.
pub fn questions(visits: &[Visit], settings: &Settings, most: usize) -> Vec<Question> {
    let mut counts: BTreeMap<Question, usize> = BTreeMap::new();
    for visit in visits.iter().filter(|visit| visit.method == "GET" && may_be_kept(visit.status)) {
        let reception = receive(settings, visit).filter(|own| own.course == Course::Lookup);
        if reception.is_some_and(|own| !own.notes.personal) {
            let question = Question { host: visit.host.clone(), target: visit.target.clone() };
            *counts.entry(question).or_default() += 1;
        }
    }
    let mut asked = BTreeSet::new();
    let mut list = Vec::new();
    let mut ask = |question: Question, end: usize| {
        if list.len() < end && asked.insert(question.clone()) {
            list.push(question);
        }
    };
    for question in about_parameters(&counts) {
        ask(question, most / 2);
    }
    let mut popular: Vec<_> = counts.into_iter().collect();
    popular.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    popular.into_iter().for_each(|(question, _)| ask(question, most));
    list
}

/// Returns true for statuses that caches keep: pages, redirects, and pages that are not there.
fn may_be_kept(status: u16) -> bool {
    matches!(status, 200 | 301 | 302 | 307 | 308 | 404 | 410)
}

/// Questions with and without each frequent parameter.
fn about_parameters(counts: &BTreeMap<Question, usize>) -> Vec<Question> {
    let mut by_name: BTreeMap<&[u8], (usize, Vec<&Question>)> = BTreeMap::new();
    for (question, count) in counts {
        for name in query::params(query_of(&question.target)).map(query::name) {
            let (requests, questions) = by_name.entry(name).or_default();
            *requests += count;
            if questions.len() < PAGES_BY_PARAMETER {
                questions.push(question);
            }
        }
    }
    let mut frequent: Vec<_> =
        by_name.into_iter().filter(|(_, (requests, _))| *requests >= REQUESTS_MIN).collect();
    frequent.sort_by_key(|(_, (requests, _))| std::cmp::Reverse(*requests));
    let pair = |name: &[u8], question: &Question| {
        let mut target = question.target.clone();
        query::remove_params(&mut target, |own| own == name);
        [question.clone(), Question { host: question.host.clone(), target }]
    };
    let of_name = |(name, (_, questions)): (&[u8], (usize, Vec<&Question>))| {
        questions.into_iter().flat_map(|own| pair(name, own)).collect::<Vec<_>>()
    };
    frequent.into_iter().flat_map(of_name).collect()
}

fn query_of(target: &[u8]) -> &[u8] {
    let at = target.iter().position(|byte| *byte == b'?').map_or(target.len(), |at| at + 1);
    &target[at..]
}
