//! Report of advice: as text for people, and as JSON.

use std::fmt::Write as _;

use base::units::Bytes;
use observe::text::Printable;
use serde_json::{Value, json};

use crate::advice::Advice;
use crate::finding::{Change, Finding};
use crate::replay::Figures;

/// Text of clients and origins, harmless to terminals.
pub fn printable(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}

/// A finding as text.
pub fn finding(advice: &Advice, finding: &Finding) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    _ = write_finding(&advice.figures, finding, &mut out);
    out
}

/// The advice as text.
pub fn text(advice: &Advice) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    _ = write_text(advice, &mut out);
    out
}

fn write_text(advice: &Advice, out: &mut String) -> std::fmt::Result {
    let before = &advice.figures;
    let seconds = advice.span_ms.map_or(0, |(first, last)| last.saturating_sub(first) / 1000);
    writeln!(out, "{} requests over {seconds} s, replayed:", advice.visits)?;
    writeln!(out, "  {}", figures(before))?;
    if advice.findings.is_empty() {
        writeln!(out, "\nNothing was found that should be changed.")?;
    }
    for finding in &advice.findings {
        writeln!(out)?;
        write_finding(before, finding, out)?;
    }
    if advice.untried > 0 {
        writeln!(
            out,
            "\n{} further changes were not tried, since there were too many: ask again after the \
             first ones are made.",
            advice.untried
        )?;
    }
    if advice.has_few_networks {
        writeln!(
            out,
            "\nThe requests come from few networks, or have no address of the client: cookies, \
             static files, redirects and pages that refuse to be stored are left alone. Behind a \
             proxy, name it in `trusted_proxies`, or let the log have the client's address."
        )?;
    }
    Ok(())
}

fn figures(figures: &Figures) -> String {
    format!(
        "hit ratio {:.1}%, {} requests to the origin, {:.1} s of waiting for it, {} from it, {} of \
         memory",
        figures.ratio(),
        figures.origin_requests,
        figures.origin_us as f64 / 1e6,
        size(figures.origin_bytes),
        size(figures.memory_bytes),
    )
}

/// Bytes in a unit in which they have at most four digits.
fn size(bytes: u64) -> String {
    let shift = [30, 20, 10].into_iter().find(|shift| bytes >> shift >= 10).unwrap_or(0);
    Bytes(bytes >> shift << shift).to_string()
}

fn write_finding(before: &Figures, finding: &Finding, out: &mut String) -> std::fmt::Result {
    let Finding { number, kind, site, about, paths, proof, after, bytes, risk, change, hints } =
        finding;
    let place = if paths.is_empty() { site.clone() } else { format!("{site}, {paths}") };
    writeln!(out, "{number}. {kind}: {} ({})", printable(about), printable(&place))?;
    writeln!(out, "   {}", kind.about())?;
    if let Some(after) = after {
        writeln!(out, "   gain:  {}", gain(before, after))?;
    }
    if *bytes > 0 {
        writeln!(out, "   gain:  {} fewer bytes", size(*bytes))?;
    }
    writeln!(out, "   proof: {}", printable(proof.text()))?;
    writeln!(out, "   risk:  {}", printable(risk))?;
    if let Some(change) = change {
        write_change(change, out)?;
    }
    for hint in hints {
        writeln!(out, "   {}", printable(hint))?;
    }
    Ok(())
}

fn write_change(change: &Change, out: &mut String) -> std::fmt::Result {
    for place in &change.places {
        writeln!(out, "   {}:{}", change.file, place.line)?;
        for line in &place.lines {
            writeln!(out, "{}", format!("       {}", printable(line)).trim_end())?;
        }
    }
    Ok(())
}

fn gain(before: &Figures, after: &Figures) -> String {
    let fewer = |before: u64, after: u64| i128::from(before) - i128::from(after);
    let requests = fewer(before.origin_requests, after.origin_requests);
    let share = requests as f64 * 100.0 / before.origin_requests.max(1) as f64;
    format!(
        "{:+.1} points, {requests} fewer requests to the origin ({share:.1}%), {:.1} s less waiting",
        after.ratio() - before.ratio(),
        fewer(before.origin_us, after.origin_us) as f64 / 1e6,
    )
}

/// The advice as JSON.
pub fn json(advice: &Advice) -> Value {
    let of = |finding: &Finding| finding_json(&advice.figures, finding);
    json!({
        "requests": advice.visits,
        "first_unix_ms": advice.span_ms.map(|(first, _)| first),
        "last_unix_ms": advice.span_ms.map(|(_, last)| last),
        "replayed": figures_json(&advice.figures),
        "untried": advice.untried,
        "few_networks": advice.has_few_networks,
        "findings": advice.findings.iter().map(of).collect::<Vec<_>>(),
    })
}

fn figures_json(figures: &Figures) -> Value {
    json!({
        "requests": figures.requests,
        "hits": figures.hits,
        "ratio": figures.ratio(),
        "origin_requests": figures.origin_requests,
        "origin_seconds": figures.origin_us as f64 / 1e6,
        "origin_bytes": figures.origin_bytes,
        "memory_bytes": figures.memory_bytes,
        "evicted": figures.evicted,
    })
}

fn finding_json(before: &Figures, finding: &Finding) -> Value {
    let places = |change: &Change| {
        let place = |lines: &crate::edit::Lines| json!({"line": lines.line, "lines": lines.lines});
        change.places.iter().map(place).collect::<Vec<_>>()
    };
    json!({
        "number": finding.number,
        "kind": finding.kind.word(),
        "site": finding.site,
        "about": finding.about,
        "paths": finding.paths,
        "points": finding.points(before),
        "predicted": finding.after.as_ref().map(figures_json),
        "bytes": finding.bytes,
        "risk": finding.risk,
        "proof": {"kind": finding.proof.word(), "text": finding.proof.text()},
        "file": finding.change.as_ref().map(|change| &change.file),
        "change": finding.change.as_ref().map(places),
        "hints": finding.hints,
    })
}
