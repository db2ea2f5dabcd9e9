//! The log ring of a running daemon as a source: visits made from its records, the latest of them.

use std::collections::VecDeque;

use observe::heads::{Field, HeadSide};
use observe::record::Kind;
use observe::{Flags, Record};

use crate::visit::{BodyPrint, Visit};

/// Visits of a ring, the latest of them.
#[derive(Debug)]
pub struct RingVisits {
    most: usize,
    visits: VecDeque<Visit>,
}

impl RingVisits {
    /// At most `most` visits.
    pub fn new(most: usize) -> Self {
        Self { most, visits: VecDeque::new() }
    }

    /// Adds the visit of a record of a ring that keeps request fields of these names. The oldest
    /// visit makes room for it.
    pub fn push(&mut self, record: &Record<'_>, names: &[String]) {
        let Some(visit) = visit(record, names) else { return };
        if self.visits.len() >= self.most.max(1) {
            self.visits.pop_front();
        }
        self.visits.push_back(visit);
    }

    /// The visits, in the order of their records.
    pub fn into_visits(self) -> Vec<Visit> {
        self.visits.into()
    }
}

/// The visit of a record; `None` for what no visitor has asked for, but for background fetches,
/// which visitors cause.
fn visit(record: &Record<'_>, names: &[String]) -> Option<Visit> {
    let is_meant = matches!(record.kind, Kind::Client | Kind::Background);
    if !is_meant || record.flags.has(Flags::REFUSED) {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let evidence = record.fetch_evidence();
    let fields_of = |side| evidence.into_iter().flat_map(move |evidence| evidence.fields_of(side));
    let owned = |field: Field<'_>| (text(field.name), field.value.to_vec());
    let kept = names.iter().zip(record.values.iter());
    let kept = kept.filter_map(|(name, value)| Some((name.to_ascii_lowercase(), value?.to_vec())));
    let mut fields: Vec<_> = kept.collect();
    let further = fields_of(HeadSide::Bereq).map(owned);
    let further: Vec<_> =
        further.filter(|(name, _)| !fields.iter().any(|(own, _)| own == name)).collect();
    fields.extend(further);
    let fingerprint = evidence.and_then(|evidence| evidence.fingerprint);
    Some(Visit {
        at_ms: record.start_unix_ms,
        client: record.client,
        is_tls: record.flags.has(Flags::TLS),
        site: text(record.site),
        host: text(record.host),
        method: text(record.method),
        target: sent_target(record),
        fields,
        status: record.status,
        body_bytes: record.body_out,
        served: Some(record.served),
        not_stored: text(record.not_stored),
        evidence: text(record.evidence),
        limit: text(record.limit),
        fetch_us: fetch_us(record),
        response: evidence.map(|_| fields_of(HeadSide::Beresp).map(owned).collect()),
        body: fingerprint.map(|own| BodyPrint { exact: own.0 }),
        class: text(record.class),
    })
}

/// The target as the client sent it, with the parameters that were removed behind the others.
fn sent_target(record: &Record<'_>) -> Vec<u8> {
    let mut target = record.target.to_vec();
    let removed = record.fetch_evidence().map_or(&b""[..], |evidence| evidence.removed);
    if !removed.is_empty() {
        target.push(if target.contains(&b'?') { b'&' } else { b'?' });
        target.extend_from_slice(removed);
    }
    target
}

/// Microseconds from the begin of the fetch to the origin's head, or to the end without one.
fn fetch_us(record: &Record<'_>) -> Option<u64> {
    let begin = u64::from(record.phases.fetch?);
    let end = record.phases.head.map_or(record.phases.end, u64::from);
    Some(end.saturating_sub(begin))
}

#[cfg(test)]
mod tests {
    use observe::fetch_evidence::FetchEvidence;
    use observe::heads::Heads;
    use observe::record::{Phases, add_evidence};

    use super::*;

    const NAMES: [&str; 2] = ["User-Agent", "Accept"];

    /// The visits of records that are written with these values and this evidence.
    fn visits(most: usize, records: &[(Record<'_>, Option<FetchEvidence<'_>>)]) -> Vec<Visit> {
        let (mut visits, names) = (RingVisits::new(most), NAMES.map(str::to_owned));
        for (record, evidence) in records {
            let mut bytes = Vec::new();
            record.with_derived_flags().write([Some(&b"curl"[..]), None], &mut bytes);
            if let Some(evidence) = evidence {
                add_evidence(&mut bytes, 0, evidence);
            }
            visits.push(&Record::read(&bytes).expect("a record").0, &names);
        }
        visits.into_visits()
    }

    fn record(target: &'static [u8]) -> Record<'static> {
        Record { target, host: b"a.example", method: b"GET", ..Record::default() }
    }

    #[test]
    fn a_visit_has_what_the_evidence_of_its_fetch_says() {
        let mut heads = Heads::default();
        for (side, name, value) in [
            (HeadSide::Bereq, "user-agent", "the daemon's"),
            (HeadSide::Bereq, "cookie", "sid=00ff"),
            (HeadSide::Beresp, "cache-control", "private"),
        ] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            heads.add(1_000, Field { side, name, value });
        }
        let evidence = FetchEvidence {
            removed: b"utm_source=x",
            fields: heads.bytes(),
            ..FetchEvidence::default()
        };
        let phases = Phases { fetch: Some(100), head: Some(350), end: 900, ..Phases::default() };
        let [one, other] =
            ["/a", "/a?b=1"].map(|target| Record { phases, ..record(target.as_bytes()) });
        let visits = visits(9, &[(one, Some(evidence)), (other, Some(evidence)), (one, None)]);
        let targets: Vec<_> = visits.iter().map(|visit| &visit.target[..]).collect();
        assert_eq!(targets, [&b"/a?utm_source=x"[..], b"/a?b=1&utm_source=x", b"/a"]);
        let expected = [("user-agent", "curl"), ("cookie", "sid=00ff")];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.as_bytes().to_vec());
        assert_eq!(visits[0].fields, expected.map(owned));
        assert_eq!(visits[0].response, Some(vec![owned(("cache-control", "private"))]));
        assert_eq!((visits[0].fetch_us, visits[0].body), (Some(250), None));
        assert_eq!((visits[2].response.clone(), visits[2].fields.len()), (None, 1));
    }

    #[test]
    fn the_latest_visits_of_visitors_are_kept() {
        let all = [
            record(b"/1"),
            Record { kind: Kind::Warm, ..record(b"/warm") },
            Record { kind: Kind::Fragment, ..record(b"/fragment") },
            Record { flags: Flags::REFUSED, ..record(b"/refused") },
            record(b"/2"),
            Record { kind: Kind::Background, ..record(b"/3") },
        ];
        let targets: Vec<_> = visits(2, &all.map(|record| (record, None)))
            .into_iter()
            .map(|visit| visit.target)
            .collect();
        assert_eq!(targets, [b"/2", b"/3"]);
    }
}
