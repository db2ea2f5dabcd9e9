//! VCL: the commands `vcl.*`, `param.set` and others about programs.

use varnishcli::{Call, CliCommand, Reply, Spec, Status, json_begin};

use crate::state::Daemon;
use crate::vcl::{Code, State};

/// The name of a program's text that is given on the CLI.
const INLINE: &str = "<vcl.inline>";

/// Runs one of these commands. It may compile: call it where it may block.
pub(super) fn answer(daemon: &Daemon, call: &Call) -> Reply {
    carry_out(daemon, call).unwrap_or_else(|refused| refused)
}

fn carry_out(daemon: &Daemon, call: &Call) -> Result<Reply, Reply> {
    let vcls = &daemon.vcls;
    let words = words(call)?;
    match (call.verb, &words[..]) {
        (CliCommand::VclLoad, [name, file, rest @ ..]) => {
            let state = State::of(rest.first().map(|word| word.as_bytes()))?;
            log_operation(daemon, call, vcls.load(name, Code::File(file), state))
        }
        (CliCommand::VclInline, [name, text, rest @ ..]) => {
            let state = State::of(rest.first().map(|word| word.as_bytes()))?;
            log_operation(daemon, call, vcls.load(name, Code::Text(INLINE, text.as_bytes()), state))
        }
        (CliCommand::VclUse, [name]) => {
            if !daemon.takes_programs() {
                return Err(Reply::new(
                    Status::Cannot,
                    "No site of the configuration takes a VCL: see `vcl` in larder.toml",
                ));
            }
            let used = vcls.use_it(name)?;
            daemon.refresh();
            log_operation(daemon, call, Ok(used))
        }
        (CliCommand::VclDiscard, patterns) => log_operation(daemon, call, vcls.discard(patterns)),
        (CliCommand::VclLabel, [label, name]) => {
            let labelled = vcls.label(label, name)?;
            daemon.refresh();
            log_operation(daemon, call, Ok(labelled))
        }
        (CliCommand::VclState, [name, state]) => {
            log_operation(daemon, call, vcls.set_state(name, State::of(Some(state.as_bytes()))?))
        }
        (CliCommand::VclShow, ["-v", rest @ ..]) => vcls.show(one(rest)?, true),
        (CliCommand::VclShow, rest) => vcls.show(one(rest)?, false),
        (CliCommand::VclDeps, _) => Ok(Reply::ok(vcls.deps(call))),
        (CliCommand::VclList, _) if call.json => {
            let begin = json_begin(2, &call.words, rt::now().unix_ms);
            Ok(Reply::ok(format!("{begin}{}\n]\n", vcls.list(true))))
        }
        (CliCommand::VclList, _) => Ok(Reply::ok(vcls.list(false))),
        (CliCommand::ParamSet, [name, value]) => {
            vcls.set_param(name, Some(value))?;
            daemon.refresh();
            match call.json {
                true => Ok(super::params::show_one(daemon, call, name)),
                false => log_operation(daemon, call, Ok(Reply::ok(""))),
            }
        }
        (CliCommand::ParamReset, [name]) => {
            vcls.set_param(name, None)?;
            daemon.refresh();
            log_operation(daemon, call, Ok(Reply::ok("")))
        }
        (CliCommand::DebugXid, numbers) => Ok(xid(daemon, numbers)),
        // The table has checked the numbers of arguments.
        _ => Err(Reply::new(Status::TooFew, "Too few parameters\n")),
    }
}

/// The arguments as text.
pub(super) fn words(call: &Call) -> Result<Vec<&str>, Reply> {
    let mut words = Vec::with_capacity(call.arguments.len());
    for (at, word) in call.arguments.iter().enumerate() {
        words.push(std::str::from_utf8(word).map_err(|_| {
            Reply::new(Status::Argument, format!("argument {} is not UTF-8", at + 1))
        })?);
    }
    Ok(words)
}

/// The optional single argument.
fn one<'a>(rest: &[&'a str]) -> Result<Option<&'a str>, Reply> {
    match rest {
        [] => Ok(None),
        [name] => Ok(Some(name)),
        [_, other, ..] => {
            let text = format!("Too many parameters: '{other}'");
            Err(Reply::new(Status::Argument, text))
        }
    }
}

/// Logs the operation.
pub(super) fn log_operation(
    daemon: &Daemon,
    call: &Call,
    done: Result<Reply, Reply>,
) -> Result<Reply, Reply> {
    let (how, reply) = match &done {
        Ok(reply) => ("done", reply),
        Err(reply) => ("refused", reply),
    };
    if daemon.vcls.params().is_on(vcl::params::Param::SyslogCliTraffic) {
        // Texts are long, and reasons have many lines.
        let words = call.words.iter().take(3).map(|word| String::from_utf8_lossy(word));
        let line: Vec<_> = words.map(|word| word.chars().take(80).collect::<String>()).collect();
        let line = line.join(" ");
        let status = reply.status as u16;
        base::tell!(Notice, "larder: Varnish CLI: {}: {how} ({status})", line.escape_debug());
    }
    done
}

/// Sets the number of the next transaction. As with varnishd, text that is no number is 0.
fn xid(daemon: &Daemon, numbers: &[&str]) -> Reply {
    let xids = &daemon.shared.vcl.xids;
    if let Some(first) = numbers.first() {
        xids.set(first.parse().unwrap_or(0));
    }
    let chunk = numbers.get(1).and_then(|chunk| chunk.parse().ok()).unwrap_or(1_u32);
    Reply::ok(format!("XID is {} chunk {chunk}", xids.last()))
}

/// The table of commands, for `larder serve -x cli`.
pub fn document() -> String {
    let section = |spec: &Spec| format!("{}\n  {}\n\n", spec.syntax, spec.help);
    varnishcli::TABLE.iter().map(section).collect()
}
