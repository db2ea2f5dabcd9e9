//! Certificates: the commands `tls.cert.*` of Varnish 9.

use std::fmt::Write as _;
use std::path::PathBuf;

use base::Counters;
use config::Config;
use varnishcli::{Call, CliCommand, Reply, Status, json_string};

use super::vcl::{log_operation, words};
use crate::cli_certificates::{
    CertificateDefinition, CertificateRefusal, CertificateStage, CliCertificate, read_new,
};
use crate::state::Daemon;

/// The frontend of a certificate for all listeners.
const ALL: &str = "default";

/// Runs one of these commands. It may read files: call it on a thread that may block.
pub(super) fn answer(daemon: &Daemon, counters: &Counters, call: &Call) -> Reply {
    if !daemon.with_config(speaks_tls) {
        return Reply::new(Status::Cannot, "No listener speaks TLS (-a ADDRESS,https)\n");
    }
    let done = carry_out(daemon, counters, call);
    let done =
        if call.verb == CliCommand::TlsCertList { done } else { log_operation(daemon, call, done) };
    done.unwrap_or_else(|refused| refused)
}

/// Logs that handshakes fail for want of a certificate, if so.
pub(crate) fn log_missing(daemon: &Daemon) {
    let is_open = daemon.with_config(speaks_tls) && daemon.certificates().is_empty();
    if is_open {
        base::tell!(
            Warn,
            "larder: there is no certificate: TLS clients are refused until tls.cert.load and \
             tls.cert.commit of Varnish's CLI"
        );
    }
}

fn speaks_tls(config: &Config) -> bool {
    config.listen.iter().any(|spec| spec.tls)
}

fn carry_out(daemon: &Daemon, counters: &Counters, call: &Call) -> Result<Reply, Reply> {
    let refused = |refused: CertificateRefusal| {
        refused.limit.iter().for_each(|limit| counters.limit(*limit));
        Reply::new(Status::Cannot, format!("{refused}\n"))
    };
    let words = words(call)?;
    let changed = match (call.verb, &words[..]) {
        (CliCommand::TlsCertList, []) => return Ok(list(daemon, call.json, false)),
        (CliCommand::TlsCertList, ["-s"]) => return Ok(list(daemon, call.json, true)),
        (CliCommand::TlsCertList, [other, ..]) => {
            return Err(Reply::new(Status::Argument, format!("Unknown option: {other}\n")));
        }
        (CliCommand::TlsCertLoad, words) => {
            let Load { order, idle } = load(words)?;
            daemon.with_config(|config| check_frontend(config, &order))?;
            let limits = daemon.shared.live().limits.clone();
            return daemon
                .change_cli_certificates(|cli_certificates| {
                    let pair = read_new(&order, &limits)?;
                    cli_certificates.stage(order, pair, &limits)
                })
                .map(|_| {
                    Reply::ok(idle.iter().map(|flag| without_effect(flag)).collect::<String>())
                })
                .map_err(refused);
        }
        (CliCommand::TlsCertDiscard, [id]) => {
            daemon.change_cli_certificates(|cli_certificates| cli_certificates.discard(id))
        }
        (CliCommand::TlsCertRollback, _) => daemon.change_cli_certificates(|cli_certificates| {
            cli_certificates.roll_back();
            Ok(())
        }),
        (CliCommand::TlsCertReload, _) => {
            let limits = daemon.shared.live().limits.clone();
            daemon.change_cli_certificates(|cli_certificates| cli_certificates.read_again(&limits))
        }
        // The table has checked the numbers of arguments.
        _ => daemon.change_cli_certificates(|cli_certificates| {
            cli_certificates.commit();
            Ok(())
        }),
    };
    changed.map_err(refused)?;
    if matches!(call.verb, CliCommand::TlsCertCommit | CliCommand::TlsCertReload) {
        let shown =
            daemon.with_cli_certificates(|cli_certificates| cli_certificates.shown().count());
        let done = if call.verb == CliCommand::TlsCertCommit { "committed" } else { "read again" };
        base::tell!(Notice, "larder: Varnish CLI: certificates {done}: {shown} are in use");
    }
    Ok(Reply::ok(""))
}

fn without_effect(flag: &str) -> String {
    format!("{flag} is without effect: versions and suites of TLS are Larder's own\n")
}

/// The certificates, all or those that a commit changes: in lines of four columns separated by
/// tabs, or as JSON without the head that other commands have, as Varnish 9 lists them.
fn list(daemon: &Daemon, json: bool, only_staged: bool) -> Reply {
    daemon.with_cli_certificates(|cli_certificates| {
        let all = cli_certificates.all().iter();
        let listed = all.filter(|own| !only_staged || own.stage != CertificateStage::Active);
        match json {
            true => {
                let rows: Vec<_> = listed.map(object).collect();
                Reply::ok(format!("[\n{}\n]\n", rows.join(",\n")))
            }
            false => Reply::ok(listed.map(line).collect::<String>()),
        }
    })
}

fn line(own: &CliCertificate) -> String {
    let (frontend, id) = (own.order.frontend.as_deref().unwrap_or(ALL), &own.order.id);
    let subject: String = own.pair.subject().chars().filter(|c| !c.is_control()).collect();
    format!("{frontend}\t{id}\t{}\t{subject}\n", own.stage.word())
}

/// A certificate as Varnish lists it, with its names, expiry and file.
fn object(own: &CliCertificate) -> String {
    let string = |text: &str| json_string(text.as_bytes());
    let names: Vec<_> = own.pair.names().map(string).collect();
    let mut text = format!(
        "  {{\"frontend\": {}, \"id\": {}, \"status\": \"{}\", \"subject\": {}, ",
        string(own.order.frontend.as_deref().unwrap_or(ALL)),
        string(&own.order.id),
        own.stage.word(),
        string(own.pair.subject()),
    );
    // Writing to a String cannot fail.
    _ = write!(
        text,
        "\"names\": [{}], \"expires\": {}, \"file\": {}, \"default\": {}}}",
        names.join(", "),
        own.pair.not_after(),
        string(&own.order.cert.display().to_string()),
        own.order.is_default,
    );
    text
}

/// The arguments of `tls.cert.load`.
#[derive(Debug, PartialEq, Eq)]
struct Load<'a> {
    order: CertificateDefinition,
    /// Options without effect.
    idle: Vec<&'a str>,
}

/// Parses an optional id and a file, with options anywhere.
fn load<'a>(words: &[&'a str]) -> Result<Load<'a>, Reply> {
    let (mut order, mut idle, mut named) =
        (CertificateDefinition::default(), Vec::new(), Vec::new());
    let (mut key, mut words) = (None, words.iter().copied());
    while let Some(word) = words.next() {
        let mut value = || {
            let none = || Reply::new(Status::Cannot, format!("No value specified for: {word}\n"));
            words.next().filter(|value| !value.is_empty()).ok_or_else(none)
        };
        match word {
            "-k" => key = Some(PathBuf::from(value()?)),
            "-f" => order.frontend = Some(value()?.to_owned()),
            "-d" => order.is_default = true,
            "-p" | "-c" | "-s" => {
                value()?;
                idle.push(word);
            }
            "-o" => idle.push(word),
            option if option.starts_with('-') => {
                let text = format!("Unknown TLS option: {option}\n");
                return Err(Reply::new(Status::Cannot, text));
            }
            name => named.push(name),
        }
    }
    let cert = match named[..] {
        [cert] => cert,
        [id, cert] => {
            id.clone_into(&mut order.id);
            cert
        }
        [] => return Err(Reply::new(Status::TooFew, "Too few parameters\n")),
        _ => return Err(Reply::new(Status::TooMany, "Too many parameters\n")),
    };
    order.cert = PathBuf::from(cert);
    order.key = key.unwrap_or_else(|| order.cert.clone());
    Ok(Load { order, idle })
}

/// Certificates are for all listeners, so that one listener may be named only if there is no other.
fn check_frontend(config: &Config, order: &CertificateDefinition) -> Result<(), Reply> {
    let Some(wanted) = &order.frontend else { return Ok(()) };
    let all: Vec<_> = config.listen.iter().filter(|spec| spec.tls).collect();
    if !all.iter().any(|spec| spec.name.as_ref() == Some(wanted)) {
        return Err(Reply::new(Status::Cannot, format!("Frontend '{wanted}' not found\n")));
    }
    if all.len() > 1 {
        let text = format!(
            "-f {wanted}: {} listeners speak TLS, and certificates are for all of them\n",
            all.len()
        );
        return Err(Reply::new(Status::Cannot, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(id: &str, cert: &str, key: &str) -> CertificateDefinition {
        let (id, cert, key) = (id.to_owned(), PathBuf::from(cert), PathBuf::from(key));
        CertificateDefinition { id, cert, key, ..CertificateDefinition::default() }
    }

    #[test]
    fn options_stand_before_between_and_behind_id_and_file() {
        let loaded = |order, idle: &[&'static str]| Ok(Load { order, idle: idle.to_vec() });
        assert_eq!(load(&["/a.pem"]), loaded(order("", "/a.pem", "/a.pem"), &[]));
        let a = order("a", "/a.pem", "/a.key");
        for words in [
            ["a", "/a.pem", "-k", "/a.key"],
            ["-k", "/a.key", "a", "/a.pem"],
            ["a", "-k", "/a.key", "/a.pem"],
        ] {
            assert_eq!(load(&words), loaded(a.clone(), &[]), "{words:?}");
        }
        let all = ["/a.pem", "-d", "-f", "a1", "-p", "TLSv1.3", "-c", "X", "-s", "Y", "-o"];
        let frontend = Some("a1".to_owned());
        let wanted =
            CertificateDefinition { is_default: true, frontend, ..order("", "/a.pem", "/a.pem") };
        assert_eq!(load(&all), loaded(wanted, &["-p", "-c", "-s", "-o"]));
    }

    #[test]
    fn what_is_wrong_with_arguments_is_said() {
        for (words, status, text) in [
            (&["-d"][..], Status::TooFew, "Too few parameters\n"),
            (&["a", "b", "c"], Status::TooMany, "Too many parameters\n"),
            (&["a", "-k"], Status::Cannot, "No value specified for: -k\n"),
            (&["a", "-x"], Status::Cannot, "Unknown TLS option: -x\n"),
        ] {
            assert_eq!(load(words), Err(Reply::new(status, text)), "{words:?}");
        }
    }
}
