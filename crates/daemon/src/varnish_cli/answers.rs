//! Answers to the commands of Varnish's CLI, in varnishd's words, columns and JSON, so that
//! programs that parse varnishd's replies can parse these.

use std::net::SocketAddr;

use ban::Expression;
use base::{Counter, Counters};
use flow::invalidate::ResponseSelector;
use varnishcli::{Call, CliCommand, Reply, Status, json_string};

use super::reply::{NAME, json, unknown_parameter};
use super::{backends, certificates, params};
use crate::state::Daemon;

/// Milliseconds that the reply to a ban waits for the count of objects. Plugins send many bans, one
/// after the other.
const COUNT_MS: u64 = 50;

/// The Varnish release that the CLI follows, in the form by which clients detect it.
const LIKE: &str = "varnish-7.1.1 revision 7cee1c581bead20e88d101ab3d72afb29f14d87a";

/// The banner of the CLI.
pub(super) fn banner() -> Reply {
    const RULE: &str = "-----------------------------";
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    Reply::ok(format!(
        "{RULE}\nVarnish Cache CLI 1.0\n{RULE}\n{system},{machine}\n{LIKE} (larder-{version})\n\nType \
         'help' for command list.\nType 'quit' to close CLI session.\n"
    ))
}

/// Runs a command. The reply is cut to the parameter `cli_limit`.
pub(super) async fn answer(
    daemon: &Daemon,
    counters: &Counters,
    peer: SocketAddr,
    call: &Call,
) -> Reply {
    let reply = carry_out(daemon, counters, peer, call).await;
    match params::reply_limit(daemon) {
        // A parser needs these replies complete.
        Some(limit) if call.verb != CliCommand::Stats => reply.cut(limit),
        _ => reply,
    }
}

async fn carry_out(daemon: &Daemon, counters: &Counters, peer: SocketAddr, call: &Call) -> Reply {
    match call.verb {
        // Sessions handle authentication.
        CliCommand::Auth => Reply::new(Status::Close, ""),
        CliCommand::Banner => banner(),
        CliCommand::Help if call.json => varnishcli::help_json(call, rt::now().unix_ms),
        CliCommand::Help => varnishcli::help(call),
        CliCommand::Ping if call.json => json(call, 2, " \"PONG\"\n"),
        CliCommand::Ping => Reply::ok(format!("PONG {} 1.0", rt::now().unix_secs())),
        CliCommand::Quit => Reply::new(Status::Close, "Closing CLI connection"),
        CliCommand::Status if call.json => json(call, 2, " \"running\""),
        CliCommand::Status => Reply::ok(RUNNING),
        CliCommand::Start => Reply::new(Status::Cannot, RUNNING),
        CliCommand::Stop => Reply::new(Status::Cannot, "The cache ends with the daemon"),
        CliCommand::Pid => pid(call),
        CliCommand::PanicShow => {
            Reply::new(Status::Cannot, "Child has not panicked or panic has been cleared")
        }
        CliCommand::PanicClear => panic_clear(call),
        CliCommand::StorageList => storage_list(daemon, call),
        // Without programs, the configuration takes a program's place.
        CliCommand::VclList if daemon.vcls.is_empty() && !daemon.vcls.is_varnishd() => {
            settings(call)
        }
        CliCommand::VclList
        | CliCommand::VclLoad
        | CliCommand::VclInline
        | CliCommand::VclUse
        | CliCommand::VclDiscard
        | CliCommand::VclLabel
        | CliCommand::VclState
        | CliCommand::VclShow
        | CliCommand::VclDeps
        | CliCommand::ParamSet
        | CliCommand::ParamReset
        | CliCommand::DebugXid => {
            // It may compile for milliseconds, which must not block others.
            tokio::task::block_in_place(|| super::vcl::answer(daemon, call))
        }
        CliCommand::TlsCertCommit
        | CliCommand::TlsCertDiscard
        | CliCommand::TlsCertList
        | CliCommand::TlsCertLoad
        | CliCommand::TlsCertReload
        | CliCommand::TlsCertRollback => {
            // It may read files.
            tokio::task::block_in_place(|| certificates::answer(daemon, counters, call))
        }
        CliCommand::DebugSrandom => Reply::ok(""),
        CliCommand::Stats => Reply::ok(crate::stats::json(daemon)),
        CliCommand::ParamShow => params::show(daemon, call),
        CliCommand::BackendList => backends::list(daemon, call),
        CliCommand::BackendSetHealth => backends::set_health(daemon, peer, call),
        CliCommand::BanList => ban_list(daemon, call),
        CliCommand::Ban
        | CliCommand::Purge
        | CliCommand::BanUrl
        | CliCommand::PurgeUrl
        | CliCommand::UrlPurge => match words(call) {
            Ok(words) => ban(daemon, counters, peer, &words).await,
            Err(reply) => reply,
        },
    }
}

/// The configuration, listed as a program.
fn settings(call: &Call) -> Reply {
    match call.json {
        true => json(
            call,
            2,
            &format!(
                "\n  {{\n    \"status\": \"active\",\n    \"state\": \"auto\",\n    \
                 \"temperature\": \"warm\",\n    \"busy\": 0,\n    \"name\": \"{NAME}\"\n}}"
            ),
        ),
        false => Reply::ok(format!("active   auto    warm         0    {NAME}\n")),
    }
}

/// Storages, as varnishd's flags name them.
fn storage_list(daemon: &Daemon, call: &Call) -> Reply {
    let names: Vec<_> = match daemon.vcls.is_varnishd() {
        true => daemon.vcls.storages().iter().map(|storage| storage.name.as_str()).collect(),
        false => vec!["memory"],
    };
    if call.json {
        let row = |name: &&str| {
            let name = json_string(name.as_bytes());
            format!("  {{\n    \"name\": {name},\n    \"storage\": \"malloc\"\n}}")
        };
        let rows: Vec<_> = names.iter().map(row).collect();
        return json(call, 2, &format!("\n{}", rows.join(",\n")));
    }
    let rows: String = names.iter().map(|name| format!("\tstorage.{name} = malloc\n")).collect();
    Reply::ok(format!("Storage devices:\n{rows}"))
}

const RUNNING: &str = "Child in state running";

fn pid(call: &Call) -> Reply {
    let id = std::process::id();
    match call.json {
        true => json(call, 2, &format!("\n  {{\"master\": {id}, \"worker\": {id}}}")),
        false => Reply::ok(format!("Master: {id:>10}\nWorker: {id:>10}\n")),
    }
}

fn panic_clear(call: &Call) -> Reply {
    match call.arguments.first().map(Vec::as_slice) {
        None => Reply::new(Status::Cannot, "No panic to clear"),
        Some(b"-z") => Reply::ok(""),
        Some(other) => unknown_parameter(other),
    }
}

/// The words of an expression. A word with blanks is split again, as varnishd's child does.
fn words(call: &Call) -> Result<Vec<&str>, Reply> {
    let words: Result<Vec<_>, _> =
        call.arguments.iter().map(|word| std::str::from_utf8(word)).collect();
    match words.as_deref() {
        Ok([regex]) if !matches!(call.verb, CliCommand::Ban | CliCommand::Purge) => {
            Ok(vec!["req.url", "~", regex])
        }
        Ok([whole]) => Ok(whole.split_ascii_whitespace().collect()),
        Ok(words) => Ok(words.to_vec()),
        Err(_) => Err(Reply::new(Status::Argument, "an argument is not UTF-8")),
    }
}

/// Bans the objects that the expression matches, of all sites.
async fn ban(daemon: &Daemon, counters: &Counters, peer: SocketAddr, words: &[&str]) -> Reply {
    if words.len() < 3 || words.iter().any(|word| word.is_empty()) {
        return Reply::new(Status::TooFew, "Too few parameters\n");
    }
    let refused = |why: String| Reply::new(Status::Argument, why);
    let expression = match Expression::of_words(words.iter().copied()) {
        Ok(expression) => expression,
        Err(kind) => return refused(kind.to_string()),
    };
    let text = expression.listed();
    let whats = match selectors(daemon, expression) {
        Ok(whats) => whats,
        Err(why) => return refused(why),
    };
    let (mut objects, mut pending) = (0, false);
    for what in whats {
        match daemon.shared.invalidator.purge(what, false, rt::now(), COUNT_MS).await {
            Ok(outcome) => {
                objects += outcome.objects;
                pending |= outcome.pending;
            }
            Err(why) => return Reply::new(Status::Cannot, why.to_string()),
        }
    }
    counters.inc(Counter::Purges);
    counters.add(Counter::Invalidations, objects);
    let more = if pending { " so far" } else { "" };
    let hit = format!("{objects} stored responses hit{more}");
    base::tell!(Notice, "larder: Varnish CLI: {peer}: ban {text}: {hit}");
    Reply::ok(hit)
}

/// The responses that an expression matches. For programs it has Varnish's meaning: their objects
/// keep all fields. For policies, surrogate keys are kept as hashes, and an expression on them must
/// name whole keys.
fn selectors(daemon: &Daemon, expression: Expression) -> Result<Vec<ResponseSelector>, String> {
    let live = daemon.shared.live();
    let programs = live.sites.listed.iter().any(|site| site.vcl.is_some());
    let policies = live.sites.listed.iter().any(|site| site.vcl.is_none());
    let by_keys = policies.then(|| ResponseSelector::of_expression(expression.clone()));
    if !programs {
        return Ok(Vec::from_iter(by_keys.transpose()?));
    }
    // The two readings differ only if the expression tests keys.
    let by_keys = by_keys.and_then(Result::ok);
    let by_keys = by_keys.filter(|what| !matches!(what, ResponseSelector::Ban { tags: None, .. }));
    Ok([Some(ResponseSelector::by_fields(expression)), by_keys].into_iter().flatten().collect())
}

/// The bans, the newest first. Varnish's column of referring objects has the number of objects hit.
fn ban_list(daemon: &Daemon, call: &Call) -> Reply {
    let now = rt::now();
    let bans = daemon.shared.cache.bans();
    let mut rows = Vec::with_capacity(bans.len());
    for listed in bans.iter().rev() {
        let ban = &listed.ban;
        let made = now.unix_at(i64::try_from(ban.made_ms()).unwrap_or(i64::MAX)).max(0);
        let time = format!("{}.{:03}000", made / 1000, made % 1000);
        let soft = if ban.is_soft() { " (soft)" } else { "" };
        let spec = format!("{}{soft}", ban.text());
        let (hits, over) = (ban.objects(), listed.over);
        rows.push(match call.json {
            true => format!(
                "  {{\n    \"time\": {time},\n    \"refs\": {hits},\n    \"completed\": {over},\n    \
                 \"spec\": {}\n}}",
                json_string(spec.as_bytes())
            ),
            false => format!("{time} {hits:5} {}  {spec}\n", if over { 'C' } else { '-' }),
        });
    }
    match call.json {
        true => json(call, 2, &format!("\n{}", rows.join(",\n"))),
        false => Reply::ok(format!("Present bans:\n{}", rows.concat())),
    }
}
