//! Backends: `backend.list` and `backend.set_health` for servers of origins and backends of VCLs,
//! in varnishd's columns and JSON.

use std::net::SocketAddr;
use std::sync::Arc;

use flow::vcl::link::BackendOrigin;
use message::date;
use origin::{HealthOverride, ProbeHistory, ProbeVerdict, ServerStatus};
use varnishcli::{Call, Reply, Status, json_string};
use vcl::backend::{Backend, Leaf, Listing, ShardMember};

use super::reply::{NAME, json};
use crate::glob::matches_glob;
use crate::state::Daemon;

/// A row of the list.
struct BackendRow {
    /// The VCL of the backend, or its stand-in.
    vcl: String,
    name: String,
    /// `backend`, or the kind of director.
    kind: &'static str,
    /// The word for what decides on the health: probes, or a fixed state.
    admin: &'static str,
    good: GoodCount,
    healthy: bool,
    /// The time of the last change, in seconds since 1970.
    changed: f64,
    details: Details,
    target: OverrideTarget,
}

/// The good ones among probes or members.
#[derive(Clone, Copy, Default)]
struct GoodCount {
    count: u32,
    of: u32,
}

/// The details that `-p` adds.
enum Details {
    /// No details.
    Hidden,
    /// It is not probed.
    Unprobed,
    Probes {
        threshold: u32,
        history: ProbeHistory,
    },
    Director {
        listing: Listing,
        members: Vec<Backend>,
    },
}

/// The target of an operator's override.
enum OverrideTarget {
    Server { origin: String, server: Arc<str> },
    Backend(Backend),
}

/// Lists the backends of the program in force, or those that a pattern matches.
pub(super) fn list(daemon: &Daemon, call: &Call) -> Reply {
    let (mut pattern, mut details) = (None, false);
    for word in &call.arguments {
        match (word.strip_prefix(b"-"), pattern) {
            (Some(b"p"), None) => details = true,
            (Some(flag), None) => {
                let text = format!("Invalid flag {}", String::from_utf8_lossy(flag));
                return Reply::new(Status::Argument, text);
            }
            (None, None) => pattern = Some(word.as_slice()),
            _ => return Reply::new(Status::Argument, "Too many arguments"),
        }
    }
    let rows = matching_rows(daemon, pattern.unwrap_or_default());
    match call.json {
        true => json(call, 3, &as_json(&rows, details)),
        false => Reply::ok(as_text(&rows, details)),
    }
}

/// Applies an operator's override.
pub(super) fn set_health(daemon: &Daemon, peer: SocketAddr, call: &Call) -> Reply {
    let [pattern, state] = &call.arguments[..] else {
        return Reply::new(Status::TooFew, "Too few parameters\n");
    };
    let order = match state.as_slice() {
        b"auto" => HealthOverride::Auto,
        b"healthy" => HealthOverride::Up,
        b"sick" => HealthOverride::Down,
        other => {
            let text = format!("Invalid state {}", String::from_utf8_lossy(other));
            return Reply::new(Status::Argument, text);
        }
    };
    let rows = matching_rows(daemon, pattern);
    if rows.is_empty() {
        return Reply::new(Status::Argument, "No Backends matches");
    }
    for BackendRow { vcl, name, target, .. } in &rows {
        match target {
            // A server that a reload has just removed is skipped.
            OverrideTarget::Server { origin, server } => {
                _ = daemon.order_servers(origin, Some(server), order);
            }
            OverrideTarget::Backend(Backend::Leaf(leaf)) => {
                if let Some(connected) = BackendOrigin::of(leaf) {
                    connected.set_order(order);
                }
            }
            OverrideTarget::Backend(Backend::Director(director)) => {
                let said = match order {
                    HealthOverride::Auto => None,
                    HealthOverride::Up => Some(true),
                    HealthOverride::Drain | HealthOverride::Down => Some(false),
                };
                if let Some(word) = director.admin_health() {
                    word.set_order(said, rt::now().unix_ms as f64 / 1000.0);
                }
            }
            OverrideTarget::Backend(Backend::None) => {}
        }
        base::tell!(Notice, "larder: Varnish CLI: {peer}: {vcl}.{name}: {}", order.word());
    }
    Reply::ok("")
}

/// The backends that `pattern` matches. A pattern without a dot covers the program in force and the
/// configuration's servers.
fn matching_rows(daemon: &Daemon, pattern: &[u8]) -> Vec<BackendRow> {
    let mut rows = declared(daemon);
    let active = daemon.vcls.active().map(|(name, _)| name);
    for (vcl, instance) in daemon.vcls.loaded() {
        let own = instance.backends().into_iter().filter_map(|backend| row(&vcl, backend));
        rows.extend(own);
    }
    // A server's name may have dots, a VCL's has none: the text before the first dot is the VCL.
    let is_current = |row: &BackendRow| row.vcl == NAME || Some(&row.vcl) == active.as_ref();
    let is_whole =
        |row: &BackendRow| matches_glob(pattern, format!("{}.{}", row.vcl, row.name).as_bytes());
    rows.retain(|row| match pattern {
        b"" => is_current(row),
        _ if pattern.contains(&b'.') && is_whole(row) => true,
        _ => is_current(row) && matches_glob(pattern, row.name.as_bytes()),
    });
    rows
}

/// The servers of origins.
fn declared(daemon: &Daemon) -> Vec<BackendRow> {
    let config = daemon.with_config(Clone::clone);
    let probe = |origin: &str| {
        let own = config.origins.iter().find(|own| &*own.name == origin)?;
        own.probe.clone()
    };
    let of = |(origin, server): (String, ServerStatus)| {
        let probe = probe(&origin);
        let window = probe.as_ref().map(|probe| probe.window);
        BackendRow {
            vcl: NAME.to_owned(),
            name: format!("{origin}({})", server.name),
            kind: "backend",
            admin: admin(server.order, probe.is_some()),
            good: window
                .map(|of| GoodCount { count: server.probes.count_ones(), of })
                .unwrap_or_default(),
            healthy: server.healthy,
            changed: server.changed_ms as f64 / 1000.0,
            details: probe.map_or(Details::Unprobed, |probe| Details::Probes {
                threshold: probe.threshold,
                history: server.history,
            }),
            target: OverrideTarget::Server { origin, server: server.name },
        }
    };
    daemon.servers().into_iter().map(of).collect()
}

/// A backend of a program; `None` for a name of something else.
fn row(vcl: &str, backend: Backend) -> Option<BackendRow> {
    let (name, vcl) = (backend.name().to_owned(), vcl.to_owned());
    match &backend {
        Backend::None => None,
        Backend::Leaf(leaf) => Some(of_leaf(vcl, name, leaf)),
        Backend::Director(director) => {
            let (members, listing) =
                (director.members(), director.listing(rt::now().unix_ms as f64 / 1000.0));
            let good = members.iter().filter(|member| member.health().is_healthy).count() as u32;
            let hidden = listing == Listing::Hidden;
            let said = director.admin_health().and_then(|word| word.order());
            Some(BackendRow {
                vcl,
                name,
                kind: director.kind(),
                admin: match said {
                    Some(false) => "sick",
                    None if !hidden => "probe",
                    _ => "healthy",
                },
                good: match hidden {
                    true => GoodCount::default(),
                    false => GoodCount { count: good, of: members.len() as u32 },
                },
                healthy: hidden || good > 0,
                changed: backend.health().changed,
                details: match listing {
                    Listing::Hidden => Details::Hidden,
                    listing => Details::Director { listing, members },
                },
                target: OverrideTarget::Backend(backend),
            })
        }
    }
}

fn of_leaf(vcl: String, name: String, leaf: &Arc<Leaf>) -> BackendRow {
    let connected = BackendOrigin::of(leaf);
    let status = connected.and_then(BackendOrigin::status);
    let probe = connected.and_then(|connected| connected.origin.config().probe.as_ref());
    let probes = status.as_ref().map_or(0, |status| status.probes.count_ones());
    BackendRow {
        vcl,
        name,
        kind: "backend",
        admin: admin(status.as_ref().map(|s| s.order).unwrap_or_default(), probe.is_some()),
        good: probe.map(|probe| GoodCount { count: probes, of: probe.window }).unwrap_or_default(),
        healthy: status.as_ref().is_none_or(|status| status.probed != ProbeVerdict::Sick),
        changed: status.as_ref().map_or(0.0, |status| status.changed_ms as f64 / 1000.0),
        details: probe.map_or(Details::Unprobed, |probe| Details::Probes {
            threshold: probe.threshold,
            history: status.as_ref().map(|status| status.history).unwrap_or_default(),
        }),
        target: OverrideTarget::Backend(Backend::Leaf(Arc::clone(leaf))),
    }
}

/// The word for what decides on a backend's health: probes, or a fixed state.
fn admin(order: HealthOverride, probed: bool) -> &'static str {
    match order {
        HealthOverride::Auto if probed => "probe",
        HealthOverride::Auto | HealthOverride::Up => "healthy",
        HealthOverride::Drain | HealthOverride::Down => "sick",
    }
}

fn word(healthy: bool) -> &'static str {
    if healthy { "healthy" } else { "sick" }
}

/// A line of the list: cells of columns, or text of its own.
enum Line {
    Cells(Vec<String>),
    Text(String),
}

fn cells<const N: usize>(cells: [&str; N]) -> Line {
    Line::Cells(cells.map(str::to_owned).into())
}

fn as_text(rows: &[BackendRow], details: bool) -> String {
    let mut lines = vec![cells(["Backend name", "Admin", "Probe", "Health", "Last change"])];
    for row in rows {
        let mut changed = [0; date::DATE_LEN];
        date::write_http_date(row.changed as u64, &mut changed);
        lines.push(cells([
            &format!("{}.{}", row.vcl, row.name),
            row.admin,
            &format!("{}/{}", row.good.count, row.good.of),
            word(row.healthy),
            &String::from_utf8_lossy(&changed),
        ]));
        match &row.details {
            Details::Probes { threshold, history } if details => {
                lines.push(Line::Text(probes_text(row.good, *threshold, history)));
            }
            Details::Director { listing, members } if details => {
                lines.push(Line::Text(String::new()));
                lines.extend(members_lines(listing, members));
                lines.push(Line::Text(String::new()));
            }
            _ => {}
        }
    }
    laid_out(&lines)
}

/// Aligns cells in columns, with varnishd's spacing for a terminal.
fn laid_out(lines: &[Line]) -> String {
    const TERMINAL: usize = 80;
    const COLUMNS: usize = 5;
    let mut widths = [0; COLUMNS];
    let mut longest = 0;
    for line in lines {
        let Line::Cells(cells) = line else { continue };
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = cell.len().max(*width);
        }
        longest = longest.max(cells.iter().map(|cell| cell.len() + 1).sum::<usize>() - 1);
    }
    let between = (TERMINAL.saturating_sub(longest) / COLUMNS).clamp(1, 3);
    let mut out = String::new();
    for line in lines {
        match line {
            Line::Text(text) => out.push_str(text),
            Line::Cells(cells) => {
                for (at, cell) in cells.iter().enumerate() {
                    let wide = match at {
                        _ if at + 1 == cells.len() => 0,
                        0 => widths[0] + between,
                        _ => widths[at] + between + 1,
                    };
                    out.push_str(&format!("{cell:wide$}"));
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Letters, names and bits of a probe's history.
fn bits(history: &ProbeHistory) -> [(char, &'static str, u64); 8] {
    [
        ('4', "Good IPv4", history.ipv4),
        ('6', "Good IPv6", history.ipv6),
        ('U', "Good UNIX", history.unix),
        ('x', "Error Xmit", history.unsent),
        ('X', "Good Xmit", history.sent),
        ('r', "Error Recv", history.failed),
        ('R', "Good Recv", history.received),
        ('H', "Happy", history.good),
    ]
}

fn probes_text(good: GoodCount, threshold: u32, history: &ProbeHistory) -> String {
    let GoodCount { count: good, of: window } = good;
    let mut out = format!(
        " Current states  good: {good:2} threshold: {threshold:2} window: {window:2}\n  Average \
         response time of good probes: {:.6}\n  Oldest {} Newest\n",
        history.average,
        "=".repeat(50),
    );
    for (letter, name, bits) in bits(history) {
        if bits != 0 {
            let one = |at: u32| if bits >> at & 1 == 1 { letter } else { '-' };
            let map: String = (0..u64::BITS).rev().map(one).collect();
            out.push_str(&format!("  {map} {name}\n"));
        }
    }
    out
}

fn members_lines(listing: &Listing, members: &[Backend]) -> Vec<Line> {
    let heads: &[&str] = match listing {
        Listing::Hidden | Listing::Plain => &["", "Backend", "Weight", "Health"],
        Listing::Fallback { .. } => &["", "Backend", "Current", "Health"],
        Listing::Random(_) => &["", "Backend", "Weight", "Health"],
        Listing::Shard { .. } => &["", "Backend", "Ident", "Health", "Rampup  Remaining"],
    };
    let mut lines = vec![Line::Cells(heads.iter().map(|head| (*head).to_owned()).collect())];
    let total = total(listing, members);
    for (at, member) in members.iter().enumerate() {
        let healthy = member.health().is_healthy;
        let health = word(healthy);
        lines.push(match listing {
            Listing::Hidden | Listing::Plain => cells(["", member.name(), "-", health]),
            Listing::Fallback { current, .. } => {
                let mark = if *current == Some(at) { "*" } else { "" };
                cells(["", member.name(), mark, health])
            }
            Listing::Random(_) => {
                let share = format!("{:6.2}%", 100.0 * weight(listing, at, healthy) / total);
                cells(["", member.name(), &share, health])
            }
            Listing::Shard { members, .. } => {
                let Some(ShardMember { ident, share, remaining }) = members.get(at) else {
                    continue;
                };
                let growth = format!("{:6.2}% {remaining:8.3}s", 100.0 * share);
                cells(["", member.name(), ident, health, &growth])
            }
        });
    }
    lines
}

/// A member's weight; zero for one that gets no requests.
fn weight(listing: &Listing, at: usize, healthy: bool) -> f64 {
    match listing {
        Listing::Random(weights) if healthy => weights.get(at).copied().unwrap_or_default(),
        _ => 0.0,
    }
}

/// The sum of the weights, never zero.
fn total(listing: &Listing, members: &[Backend]) -> f64 {
    let all = members.iter().enumerate();
    let sum: f64 = all.map(|(at, member)| weight(listing, at, member.health().is_healthy)).sum();
    if sum > 0.0 { sum } else { 1.0 }
}

fn as_json(rows: &[BackendRow], details: bool) -> String {
    let one = |row: &BackendRow| {
        let mut fields = vec![
            format!("\"type\": \"{}\"", row.kind),
            format!("\"admin_health\": \"{}\"", row.admin),
            format!(
                "\"probe_message\": [{}, {}, \"{}\"]",
                row.good.count,
                row.good.of,
                word(row.healthy)
            ),
        ];
        match &row.details {
            Details::Unprobed if details => fields.push("\"probe_details\": {}".to_owned()),
            Details::Probes { threshold, history } if details => {
                fields.push(probes_json(row.good, *threshold, history));
            }
            Details::Director { listing, members } if details => {
                fields.push(members_json(listing, members));
            }
            _ => {}
        }
        fields.push(format!("\"last_change\": {:.3}", row.changed));
        let name = json_string(format!("{}.{}", row.vcl, row.name).as_bytes());
        format!("    {name}: {{\n      {}\n    }}", fields.join(",\n      "))
    };
    match rows {
        [] => "\n  {\n  \n  }".to_owned(),
        _ => format!("\n  {{\n{}\n  }}", rows.iter().map(one).collect::<Vec<_>>().join(",\n")),
    }
}

fn probes_json(good: GoodCount, threshold: u32, history: &ProbeHistory) -> String {
    let GoodCount { count: good, of: window } = good;
    let maps =
        bits(history).map(|(letter, _, bits)| format!("        \"bits_{letter}\": {bits},\n"));
    format!(
        "\"probe_details\": {{\n{}        \"good\": {good},\n        \
         \"threshold\": {threshold},\n        \"window\": {window}\n      }}",
        maps.concat()
    )
}

fn members_json(listing: &Listing, members: &[Backend]) -> String {
    let head = match listing {
        Listing::Hidden | Listing::Plain => String::new(),
        Listing::Fallback { sticky, .. } => format!("        \"sticky\": {sticky},\n"),
        Listing::Random(_) => {
            let all = members.iter().enumerate();
            let sum: f64 =
                all.map(|(at, member)| weight(listing, at, member.health().is_healthy)).sum();
            format!("        \"total_weight\": {sum:.6},\n")
        }
        Listing::Shard { warmup, rampup, .. } => {
            format!("        \"warmup\": {warmup:.6},\n        \"rampup_duration\": {rampup:.6},\n")
        }
    };
    let one = |(at, member): (usize, &Backend)| {
        let healthy = member.health().is_healthy;
        let health = format!("\"health\": \"{}\"", word(healthy));
        let fields = match listing {
            Listing::Hidden | Listing::Plain => vec![health],
            Listing::Fallback { current, .. } => {
                vec![format!("\"current\": {}", *current == Some(at)), health]
            }
            Listing::Random(_) => {
                vec![format!("\"weight\": {:.6}", weight(listing, at, healthy)), health]
            }
            Listing::Shard { members, .. } => {
                let ShardMember { ident, share, remaining } = members.get(at)?;
                vec![
                    format!("\"ident\": {}", json_string(ident.as_bytes())),
                    health,
                    format!("\"rampup\": {share:.6}"),
                    format!("\"rampup_remaining\": {remaining:.3}"),
                ]
            }
        };
        let name = json_string(member.name().as_bytes());
        let fields = fields.join(",\n            ");
        Some(format!("          {name}: {{\n            {fields}\n          }}"))
    };
    let rows: Vec<_> = members.iter().enumerate().filter_map(one).collect();
    let rows = if rows.is_empty() { "          ".to_owned() } else { rows.join(",\n") };
    format!("\"probe_details\": {{\n{head}        \"backends\": {{\n{rows}\n        }}\n      }}")
}

#[cfg(test)]
mod tests {
    use vcl::backend::BackendSpec;

    use super::*;

    fn row(name: &str, admin: &'static str, good: [u32; 2], details: Details) -> BackendRow {
        let [count, of] = good;
        BackendRow {
            vcl: "boot".to_owned(),
            name: name.to_owned(),
            kind: "backend",
            admin,
            good: GoodCount { count, of },
            healthy: count > 1 || of == 0,
            changed: 1_795_361_470.392,
            details,
            target: OverrideTarget::Backend(Backend::None),
        }
    }

    fn member(name: &str) -> Backend {
        Backend::Leaf(Leaf::new(name, BackendSpec::default()))
    }

    fn director(name: &str, listing: Listing, members: &[&str]) -> BackendRow {
        let members: Vec<_> = members.iter().copied().map(member).collect();
        let all = members.len() as u32;
        row(name, "probe", [all, all], Details::Director { listing, members })
    }

    // The output of varnishd 7.1.1, but for the values of times.

    #[test]
    fn columns_are_varnishds() {
        let rows = [
            row("default", "probe", [5, 5], Details::Unprobed),
            row("v1", "healthy", [0, 0], Details::Unprobed),
            row("v2", "sick", [0, 5], Details::Unprobed),
        ];
        let expected = "\
Backend name   Admin      Probe    Health     Last change
boot.default   probe      5/5      healthy    Sun, 22 Nov 2026 15:31:10 GMT
boot.v1        healthy    0/0      healthy    Sun, 22 Nov 2026 15:31:10 GMT
boot.v2        sick       0/5      sick       Sun, 22 Nov 2026 15:31:10 GMT
";
        assert_eq!(as_text(&rows, false), expected);
        assert_eq!(as_text(&[], false), "Backend name   Admin    Probe    Health    Last change\n");
    }

    #[test]
    fn columns_move_together_where_names_are_long() {
        // The length of VCL name, dot and backend name; and of the space between the columns.
        for (long, between) in [(14, 3), (15, 3), (16, 2), (20, 2), (21, 1), (49, 1)] {
            let name = "x".repeat(long - "boot.".len());
            let text = as_text(&[row(&name, "healthy", [0, 0], Details::Unprobed)], false);
            let (one, two) = (" ".repeat(between), " ".repeat(between + 1));
            let line = format!("boot.{name}{one}healthy{two}0/0  {two}healthy{two}Sun, 22");
            assert!(text.contains(&line), "{text}{line}");
        }
    }

    #[test]
    fn probes_are_reported_as_varnishd_does() {
        let history = ProbeHistory {
            good: 0b11_1111,
            ipv4: 0b1_1111,
            sent: 0b1_1111,
            received: 0b1_1101,
            failed: 0b10,
            average: 0.001_234_6,
            ..ProbeHistory::default()
        };
        let probed = Details::Probes { threshold: 2, history };
        let dashes = "-".repeat(58);
        let expected = format!(
            "\
Backend name   Admin    Probe    Health     Last change
boot.default   probe    5/5      healthy    Sun, 22 Nov 2026 15:31:10 GMT
 Current states  good:  5 threshold:  2 window:  5
  Average response time of good probes: 0.001235
  Oldest ================================================== Newest
  -{dashes}44444 Good IPv4
  -{dashes}XXXXX Good Xmit
  -{dashes}---r- Error Recv
  -{dashes}RRR-R Good Recv
  {dashes}HHHHHH Happy

"
        );
        let rows = [row("default", "probe", [5, 5], probed)];
        assert_eq!(as_text(&rows, true), expected);
        let expected = "
  {
    \"boot.default\": {
      \"type\": \"backend\",
      \"admin_health\": \"probe\",
      \"probe_message\": [5, 5, \"healthy\"],
      \"probe_details\": {
        \"bits_4\": 31,
        \"bits_6\": 0,
        \"bits_U\": 0,
        \"bits_x\": 0,
        \"bits_X\": 31,
        \"bits_r\": 2,
        \"bits_R\": 29,
        \"bits_H\": 63,
        \"good\": 5,
        \"threshold\": 2,
        \"window\": 5
      },
      \"last_change\": 1795361470.392
    }
  }";
        assert_eq!(as_json(&rows, true), expected);
        assert_eq!(as_json(&[], true), "\n  {\n  \n  }");
    }

    #[test]
    fn directors_tell_of_their_members() {
        let sharded =
            |ident: &str| ShardMember { ident: ident.into(), share: 0.12441, remaining: 17.513 };
        let rows = [
            director("rr", Listing::Plain, &["v1"]),
            director("fb", Listing::Fallback { sticky: false, current: Some(0) }, &["v1", "v2"]),
            director("r", Listing::Random(vec![2.0, 6.0]), &["v1", "v2"]),
            director(
                "sh",
                Listing::Shard { warmup: 0.0, rampup: 20.0, members: vec![sharded("foo")] },
                &["v1"],
            ),
        ];
        let text = as_text(&rows, true);
        for expected in [
            "
               Backend    Weight     Health
               v1         -          healthy
",
            "
               Backend    Current    Health
               v1         *          healthy
               v2                    healthy
",
            "
               v1          25.00%    healthy
               v2          75.00%    healthy
",
            "
               Backend    Ident      Health     Rampup  Remaining
               v1         foo        healthy     12.44%   17.513s
",
        ] {
            assert!(text.contains(&format!("{expected}\n")), "{text}{expected}");
        }
        let json = as_json(&rows, true);
        for expected in [
            "
        \"sticky\": false,
        \"backends\": {
          \"v1\": {
            \"current\": true,
",
            "
        \"total_weight\": 8.000000,
",
            "
            \"weight\": 6.000000,
            \"health\": \"healthy\"
",
            "
        \"rampup_duration\": 20.000000,
",
            "
            \"ident\": \"foo\",
            \"health\": \"healthy\",
            \"rampup\": 0.124410,
",
        ] {
            assert!(json.contains(expected), "{json}{expected}");
        }
    }
}
