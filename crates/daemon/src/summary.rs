//! The summary: lines that the daemon logs when it begins to serve: sites, origins, resources.

use config::{Config, LogTarget, Programs};

use crate::machine_warnings::mebibytes;
use crate::state::Daemon;

/// Names in one list; the rest are counted.
const NAMED_MAX: usize = 5;

/// Logs what is served.
pub(crate) fn log_served(daemon: &Daemon) {
    daemon.with_config(|config| {
        base::tell!(Info, "larder: serving {}", served(config));
    });
    let memory = mebibytes(daemon.memory().size);
    let disk: Vec<_> = daemon.with_config(|config| {
        let volumes = config.disk.iter().flat_map(|disk| &disk.volumes);
        volumes.map(|own| format!("{} in {}", mebibytes(own.bytes), own.path.display())).collect()
    });
    let disk = if disk.is_empty() { String::new() } else { format!(", disk {}", list(disk)) };
    let cores = daemon.cores();
    let (admin, log) = (console(daemon), daemon.with_config(|config| log(daemon, config)));
    base::tell!(Info, "larder: memory {memory}{disk}, workers {cores}, admin {admin}, log {log}");
}

/// The sites and their origins.
fn served(config: &Config) -> String {
    let hosts: Vec<_> = config.sites.iter().flat_map(|site| site.hosts.iter().cloned()).collect();
    let hosts = match hosts.as_slice() {
        [all] if all == "*" => "every host".to_owned(),
        _ => list(hosts),
    };
    let mut sources = Vec::new();
    for origin in &config.origins {
        let servers = origin.servers.iter().map(|server| server.address.to_string()).collect();
        let servers = list(servers);
        // An origin of the command line is named by its server.
        let is_named = !origin.name.contains(&servers);
        sources.push(if is_named { format!("{} ({servers})", origin.name) } else { servers });
    }
    let roots = config.sites.iter().flat_map(|site| &site.files);
    sources.extend(roots.map(|files| format!("files in {}", files.root.display())));
    let by_program = config.vcl != Programs::None;
    if by_program || config.sites.iter().any(|site| site.program().is_some()) {
        sources.push("backends of its VCL".to_owned());
    }
    sources.dedup();
    match sources.is_empty() {
        true => hosts,
        false => format!("{hosts}; from {}", list(sources)),
    }
}

/// The addresses of the admin listener.
fn console(daemon: &Daemon) -> String {
    let socket = daemon.has_socket().then(|| daemon.admin_socket().display().to_string());
    let consoles = daemon.open_consoles();
    let addresses = consoles.iter().map(|address| format!("http://{address}"));
    let all: Vec<_> = socket.into_iter().chain(addresses).collect();
    if all.is_empty() { "nowhere".to_owned() } else { list(all) }
}

/// The place of the access log.
fn log(daemon: &Daemon, config: &Config) -> String {
    let file = config.access_log.as_ref().map(|log| match &log.target {
        LogTarget::Stdout => "stdout".to_owned(),
        LogTarget::File(path) => path.display().to_string(),
        LogTarget::SyslogPath(path) => format!("syslog at {}", path.display()),
        LogTarget::SyslogAddress(address) => format!("syslog at {address}"),
    });
    let ring = daemon.ring.as_ref().map(|ring| format!("ring {}", ring.folder().display()));
    let all: Vec<_> = file.into_iter().chain(ring).collect();
    if all.is_empty() { "off".to_owned() } else { list(all) }
}

/// The first names, and the number of the rest.
fn list(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        served(&config::load_str(text, "larder.toml").expect(text).0)
    }

    #[test]
    fn hosts_and_their_sources_are_named_and_long_lists_counted() {
        let origin = "[[origin]]\nname = \"app\"\nservers = [\"http://a\", \"http://b:81\"]\n";
        let site = |hosts: &str| format!("{origin}[[site]]\nhost = [{hosts}]\norigin = \"app\"\n");
        assert_eq!(said(&site("\"*\"")), "every host; from app (a:80, b:81)");
        assert_eq!(said(&site("\"a.test\", \"*\"")), "a.test, *; from app (a:80, b:81)");
        let many: Vec<_> = (0..8).map(|n| format!("\"{n}.test\"")).collect();
        let said = said(&site(&many.join(", ")));
        assert!(said.starts_with("0.test, 1.test, 2.test, 3.test, 4.test and 3 more; "), "{said}");
    }

    #[test]
    fn the_origin_of_the_command_line_is_its_address() {
        let origin = "127.0.0.1:8080".to_owned();
        let options = config::CliOptions { origin, ..config::CliOptions::default() };
        let config = config::from_cli(&options).expect("a configuration");
        assert_eq!(served(&config), "every host; from 127.0.0.1:8080");
    }
}
