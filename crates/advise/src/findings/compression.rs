//! Text that is sent without compression, since the site's settings switch it off.

use codec::CompressionScope;

use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::{Seen, Trace};

/// Least bytes of a body that are worth it.
const BODY_MIN: u64 = 1024;
/// Least bodies, for an opinion.
const BODIES_MIN: usize = 10;
/// The part of text that gzip saves, in tenths, measured over HTML, CSS and JavaScript.
const SAVED_TENTHS: u64 = 7;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let sites = trace.settings.config.sites.iter().enumerate();
    let off = sites.filter(|(_, site)| site.compress == CompressionScope::Off);
    off.filter_map(|(site, _)| suspicion(trace, site)).collect()
}

fn suspicion(trace: &Trace<'_>, site: usize) -> Option<Suspicion> {
    let plain = trace.asked().filter(|seen| seen.site == site && is_plain_text(trace, seen));
    let sizes: Vec<u64> = plain.map(|seen| seen.visit.body_bytes).collect();
    if sizes.len() < BODIES_MIN {
        return None;
    }
    let sent: u64 = sizes.iter().sum();
    let value = NewValue::Whole("\"stored\"".to_owned());
    Some(Suspicion {
        kind: FindingKind::Uncompressed,
        site,
        about: "compress".to_owned(),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "{} texts were sent plain to clients that take gzip, {} in all",
            sizes.len(),
            base::units::Bytes(sent)
        )),
        edits: vec![Edit { scope: Scope::Site(site), table: "", key: "compress", value }],
        bytes: sent / 10 * SAVED_TENTHS,
        is_fault: true,
        risk: "compression takes time of the processor once for each stored response".to_owned(),
        hints: Vec::new(),
    })
}

fn is_plain_text(trace: &Trace<'_>, seen: &Seen<'_>) -> bool {
    let visit = seen.visit;
    let takes_gzip = visit.field("accept-encoding").is_some_and(|codings| {
        String::from_utf8_lossy(codings).to_ascii_lowercase().contains("gzip")
    });
    if !takes_gzip || visit.status != 200 || visit.body_bytes < BODY_MIN {
        return false;
    }
    let head = trace.samples.find(visit).head();
    let kind = head.headers.value(message::HeaderId::ContentType).unwrap_or_default();
    let is_text = kind.starts_with(b"text/")
        || [&b"json"[..], b"javascript", b"xml"]
            .iter()
            .any(|word| kind.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)));
    is_text && !head.headers.contains(message::HeaderId::ContentEncoding)
}
