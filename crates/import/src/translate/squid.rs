//! From squid.conf to `larder.toml`: Squid as an accelerator in front of its peers.
//!
//! What `http_access` denies stays denied: a rule about something that no route looks at denies
//! more requests.

use std::collections::BTreeMap;

use super::predicate::{Atom, NameKind, Predicate};
use super::state::{State, option};
use super::units;
use crate::document::{Block, Settings, SiteBlock, quote};
use crate::syntax::Directive;

/// Meaning of a list (`acl`).
#[derive(Clone, Debug)]
enum Acl {
    /// Hosts, which sites have.
    Hosts(Vec<String>),
    Requests(Predicate),
}

/// Hosts of one site, and the directives that name them.
struct HostSet {
    hosts: Vec<String>,
    from: Vec<usize>,
}

/// Makes a site for each list of hosts.
pub(crate) fn make(state: &mut State<'_>, lines: &[Directive]) {
    let acls = acls(lines);
    let mut base = Settings::default();
    let mut listens = false;
    for own in lines {
        match own.name.as_str() {
            "http_port" | "https_port" => listens |= port(state, own, &mut base),
            "acl" | "http_access" | "cache_peer" | "cache_peer_access" => {}
            _ => whole(state, own),
        }
    }
    let peers = peers(state, lines);
    if !listens || peers.is_empty() {
        let why = "no port is an accelerator's, or no peer is an origin server";
        lines.iter().for_each(|own| state.ledger.left(own.id, why, "Larder is no forward proxy"));
        return;
    }
    for set in host_sets(lines, &acls) {
        let mut site = Settings::default();
        site.add("host", set.hosts.iter().map(String::as_str), &set.from);
        site.0.extend(base.0.iter().cloned());
        purgers(lines, &acls, &mut site);
        match origin(state, lines, &acls, &peers, &set.hosts) {
            Some(name) => site.text("origin", &name, &[]),
            None => site.put("respond", "{ status = 501 }", &[]),
        }
        let routes = access(state, lines, &acls, &set.hosts);
        let site = Block { settings: site, from: Vec::new() };
        state.document.sites.push(SiteBlock { site, routes });
    }
    for own in lines.iter().filter(|own| own.name == "acl") {
        if state.ledger.is_open(own.id) {
            state
                .ledger
                .not_needed(own.id, "what uses it is carried over by its meaning, or nothing does");
        }
    }
}

/// The lists of hosts, each host in the first that has it; one for all hosts without such a list.
fn host_sets(lines: &[Directive], acls: &BTreeMap<&str, Acl>) -> Vec<HostSet> {
    let mut sets: Vec<HostSet> = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for own in lines.iter().filter(|own| own.name == "acl" && own.arg(1) == "dstdomain") {
        let Some(Acl::Hosts(hosts)) = acls.get(own.arg(0)) else { continue };
        let new: Vec<String> = hosts.iter().filter(|own| !taken.contains(own)).cloned().collect();
        taken.extend(new.iter().cloned());
        if !new.is_empty() {
            sets.push(HostSet { hosts: new, from: vec![own.id] });
        }
    }
    for own in lines.iter().filter(|own| own.name.ends_with("_port")) {
        let name = option(own, "defaultsite").filter(|name| !taken.iter().any(|own| own == name));
        if let Some(name) = name {
            taken.push(name.to_owned());
            sets.push(HostSet { hosts: vec![name.to_owned()], from: vec![own.id] });
        }
    }
    if sets.is_empty() {
        sets.push(HostSet { hosts: vec!["*".to_owned()], from: Vec::new() });
    }
    sets
}

/// Opens a port. Returns false for one of a forward proxy.
fn port(state: &mut State<'_>, own: &Directive, site: &mut Settings) -> bool {
    let has = |name: &str| own.args.iter().any(|arg| arg == name);
    let is_accelerator = has("accel") || has("vhost") || option(own, "defaultsite").is_some();
    if !is_accelerator {
        state.ledger.left(own.id, "this port is a forward proxy's", "keep Squid for it");
        return false;
    }
    let text = own.arg(0);
    let mut address = if text.contains(':') { text.to_owned() } else { format!(":{text}") };
    if own.name == "https_port" {
        address.push_str(" tls");
        let file = |names: [&str; 2]| names.iter().find_map(|name| option(own, name));
        let cert = file(["tls-cert", "cert"]);
        if let Some(cert) = cert {
            site.text("tls.cert", cert, &[own.id]);
            site.text("tls.key", file(["tls-key", "key"]).unwrap_or(cert), &[own.id]);
        }
    }
    state.document.top.add("listen", [address.as_str()], &[own.id]);
    true
}

/// The parents that are origin servers.
fn peers<'l>(state: &mut State<'_>, lines: &'l [Directive]) -> Vec<&'l Directive> {
    let mut all = Vec::new();
    for own in lines.iter().filter(|own| own.name == "cache_peer") {
        if own.arg(1) == "parent" && own.args.iter().any(|arg| arg == "originserver") {
            all.push(own);
        } else {
            let instead = "`[[neighbour]]` with `htcp` and `ask` asks other caches";
            state.ledger.left(own.id, "this peer is another cache", instead);
        }
    }
    all
}

/// The name of the origin of the peers that may answer for these hosts; `None` without one, or
/// where that is not known.
fn origin(
    state: &mut State<'_>,
    lines: &[Directive],
    acls: &BTreeMap<&str, Acl>,
    peers: &[&Directive],
    hosts: &[String],
) -> Option<String> {
    let mut settings = Settings::default();
    for own in peers {
        let name = option(own, "name").unwrap_or_else(|| own.arg(0));
        let rules: Vec<&Directive> = lines
            .iter()
            .filter(|rule| rule.name == "cache_peer_access" && rule.arg(0) == name)
            .collect();
        let Some(may) = may_answer(&rules, acls, hosts) else {
            let why = "which peer answers depends on more than the host";
            let instead = "a route with `origin`; until then Larder answers 501";
            rules.iter().for_each(|own| state.ledger.left(own.id, why, instead));
            return None;
        };
        rules.iter().for_each(|own| state.ledger.carried(own.id, ""));
        if may {
            server(own, &mut settings);
        } else {
            state.ledger.carried(own.id, "");
        }
    }
    if !settings.has("servers") {
        return None;
    }
    let is_same = |block: &&Block| block.settings.0.get(1..) == Some(&settings.0[..]);
    let known = state.document.origins.iter().position(|block| is_same(&block));
    let at = known.unwrap_or(state.document.origins.len());
    let name = if at == 0 { "app".to_owned() } else { format!("app-{}", at + 1) };
    if known.is_none() {
        let mut all = Settings::default();
        all.text("name", &name, &[]);
        all.0.append(&mut settings.0);
        state.document.origins.push(Block { settings: all, from: Vec::new() });
    }
    Some(name)
}

/// Decides whether a peer with these rules answers for hosts; `None` if that depends on more.
fn may_answer(rules: &[&Directive], acls: &BTreeMap<&str, Acl>, hosts: &[String]) -> Option<bool> {
    for rule in rules {
        let when = requests(rule, 2, acls, hosts);
        if when.is_always() {
            return Some(rule.arg(1) == "allow");
        }
        if !(when.is_exact && when.any.is_empty()) {
            return None;
        }
    }
    Some(rules.last().is_none_or(|rule| rule.arg(1) == "deny"))
}

fn server(own: &Directive, settings: &mut Settings) {
    let has = |name: &str| own.args.iter().any(|arg| arg == name);
    let scheme = if has("ssl") || has("tls") { "https" } else { "http" };
    let url = quote(&format!("{scheme}://{}:{}", own.arg(0), own.arg(2)));
    let value = match option(own, "weight").filter(|weight| *weight != "1") {
        Some(weight) => format!("{{ url = {url}, weight = {weight} }}"),
        None => url,
    };
    settings.add_written("servers", [value], &[own.id]);
    if has("sourcehash") || has("userhash") || has("carp") {
        settings.text("balance", "hash", &[own.id]);
    }
    if let Some(host) = option(own, "forceddomain") {
        settings.text("host", host, &[own.id]);
    }
}

fn acls(lines: &[Directive]) -> BTreeMap<&str, Acl> {
    let mut all: BTreeMap<&str, Acl> = BTreeMap::new();
    let nets = |texts: &[&str]| {
        Acl::Requests(Predicate::of(Atom::Client(
            texts.iter().map(|own| (*own).to_owned()).collect(),
        )))
    };
    all.insert("all", Acl::Requests(Predicate::always()));
    all.insert("localhost", nets(&["127.0.0.0/8", "::1"]));
    for own in lines.iter().filter(|own| own.name == "acl") {
        let acl = acl(own);
        match (all.get_mut(own.arg(0)), acl) {
            (Some(Acl::Hosts(known)), Acl::Hosts(more)) => known.extend(more),
            (Some(Acl::Requests(known)), Acl::Requests(more)) => *known = known.clone().or(&more),
            (_, acl) => _ = all.insert(own.arg(0), acl),
        }
    }
    all
}

fn acl(own: &Directive) -> Acl {
    let values: Vec<String> = own.args.iter().skip(2).cloned().collect();
    let ignores_case = values.first().is_some_and(|own| own == "-i");
    let values: Vec<String> = values.into_iter().filter(|own| own != "-i" && own != "--").collect();
    let patterns = || -> Vec<String> {
        let start = if ignores_case { "~*" } else { "~" };
        values.iter().map(|own| format!("{start} {own}")).collect()
    };
    let are_regexes =
        values.iter().all(|own| linear::Regex::new(own, linear::Options::default()).is_ok());
    let predicate = match own.arg(1) {
        "dstdomain" => {
            let hosts = values.iter().flat_map(|own| match own.strip_prefix('.') {
                Some(host) => vec![host.to_owned(), format!("*.{host}")],
                None => vec![own.clone()],
            });
            return Acl::Hosts(hosts.collect());
        }
        "src" if values.iter().all(|own| !own.contains('-')) => Predicate::of(Atom::Client(values)),
        "method" => Predicate::methods(values),
        "urlpath_regex" if are_regexes => Predicate::of(Atom::Path(patterns())),
        "browser" if are_regexes => Predicate::of(Atom::UserAgent(patterns())),
        "referer_regex" if are_regexes => Predicate::named(NameKind::Header, "Referer", patterns()),
        // An accelerator has its own ports only, and speaks HTTP.
        "port" | "proto" => Predicate::always(),
        _ => Predicate::unknown(),
    };
    Acl::Requests(predicate.with(&[own.id]))
}

/// The routes that deny: what a rule denies and none before it allows.
fn access(
    state: &mut State<'_>,
    lines: &[Directive],
    acls: &BTreeMap<&str, Acl>,
    hosts: &[String],
) -> Vec<Block> {
    let mut denied = Predicate::never();
    let mut open = Predicate::always();
    let rules: Vec<&Directive> = lines.iter().filter(|own| own.name == "http_access").collect();
    for own in &rules {
        let when = requests(own, 1, acls, hosts).with(&[own.id]);
        if own.arg(0) == "deny" {
            denied = denied.or(&open.and(&when));
        }
        open = open.and(&when.not());
        state.ledger.carried(own.id, "");
    }
    // What no rule names gets the contrary of the last.
    if rules.last().is_some_and(|own| own.arg(0) == "allow") {
        denied = denied.or(&open);
    }
    if !denied.is_exact {
        let why = "the rules need what no route looks at; requests for which they may hold get 403";
        let instead = "`when` of a route looks at addresses, methods, paths and fields";
        rules.iter().for_each(|own| state.ledger.left(own.id, why, instead));
    }
    let routes = denied.any.iter().map(|one| {
        let mut block = Block::default();
        one.write(&mut block.settings, &denied.from);
        block.settings.put("respond", "{ status = 403 }", &[]);
        block
    });
    routes.collect()
}

/// Names the clients that may purge.
fn purgers(lines: &[Directive], acls: &BTreeMap<&str, Acl>, site: &mut Settings) {
    let is_purge = |name: &str| {
        lines.iter().any(|own| {
            own.name == "acl"
                && own.arg(0) == name
                && own.arg(1) == "method"
                && own.arg(2) == "PURGE"
        })
    };
    for own in lines.iter().filter(|own| own.name == "http_access" && own.arg(0) == "allow") {
        let [_, names @ ..] = own.args.as_slice() else { continue };
        let rest: Vec<&String> = names.iter().filter(|name| !is_purge(name)).collect();
        if rest.len() == names.len() || rest.len() != 1 {
            continue;
        }
        let Some(Acl::Requests(predicate)) = acls.get(rest[0].as_str()) else { continue };
        if let [one] = predicate.any.as_slice()
            && let [Atom::Client(nets)] = one.atoms.as_slice()
        {
            site.add("purge.allow", nets.iter().map(String::as_str), &[own.id]);
        }
    }
}

/// The requests for hosts of a site that a rule is about. Its lists begin at the argument `first`.
fn requests(
    own: &Directive,
    first: usize,
    acls: &BTreeMap<&str, Acl>,
    hosts: &[String],
) -> Predicate {
    let mut all = Predicate::always();
    for word in own.args.iter().skip(first) {
        let (name, is_not) = match word.strip_prefix('!') {
            Some(name) => (name, true),
            None => (word.as_str(), false),
        };
        let one = match acls.get(name) {
            Some(Acl::Hosts(own)) => match hosts.iter().filter(|host| own.contains(host)).count() {
                0 => Predicate::never(),
                all if all == hosts.len() => Predicate::always(),
                _ => Predicate::unknown(),
            },
            Some(Acl::Requests(predicate)) => predicate.clone(),
            None if matches!(name, "manager" | "to_localhost" | "to_linklocal" | "CONNECT") => {
                Predicate::never()
            }
            None => Predicate::unknown(),
        };
        all = all.and(&if is_not { one.not() } else { one });
    }
    all
}

/// Settings of the whole daemon.
fn whole(state: &mut State<'_>, own: &Directive) {
    let (id, first) = (own.id, own.arg(0));
    match own.name.as_str() {
        "cache_mem" => match size(own) {
            Some(bytes) => state.table("memory").put("size", units::size(bytes), &[id]),
            None => state.ledger.left(id, "this is not a size", ""),
        },
        "request_body_max_size" => match size(own) {
            Some(bytes) if bytes > 0 => {
                state.table("limits").put("request_body_bytes", units::size(bytes), &[id]);
            }
            _ => state.ledger.left(id, "this is not a size", "`[limits] request_body_bytes`"),
        },
        "workers" => state.document.top.put("workers", first, &[id]),
        "cache_effective_user" => state.table("run").text("user", first, &[id]),
        "cache_effective_group" => state.table("run").text("group", first, &[id]),
        "access_log" if first == "none" => {
            state.ledger.default(id, "there is no access log unless one is named");
        }
        "access_log" => {
            let path = first.trim_start_matches("daemon:").trim_start_matches("stdio:");
            state.table("access_log").text("path", path, &[id]);
            if own.args.len() > 1 && own.arg(1) != "combined" {
                state.ledger.carried(id, "in the combined format; `format` has others");
            }
        }
        "refresh_pattern"
            if own.args.last().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) =>
        {
            let why =
                "a tenth of the age by Last-Modified, within `heuristic`; `ttl` sets a fixed one";
            state.ledger.default(id, why);
        }
        "refresh_pattern"
        | "cache_dir"
        | "cache"
        | "logformat"
        | "delay_pools"
        | "url_rewrite_program"
        | "htcp_port"
        | "icp_port"
        | "ssl_bump"
        | "request_header_access"
        | "reply_header_access"
        | "request_header_add"
        | "reply_header_add"
        | "auth_param" => {
            squid_left(state, own);
        }
        "collapsed_forwarding"
        | "pipeline_prefetch"
        | "forwarded_for"
        | "via"
        | "httpd_suppress_version_string" => {
            state.ledger.default(id, "this is always so, and named in X-Forwarded-For and Via");
        }
        name if NOT_NEEDED.contains(&name) => {
            state.ledger.not_needed(id, "the daemon chooses this itself, within `[limits]`");
        }
        _ => state.ledger.left(id, "this directive is not known here", ""),
    }
}

/// Directives that nothing here needs.
const NOT_NEEDED: &[&str] = &[
    "visible_hostname",
    "unique_hostname",
    "pid_filename",
    "coredump_dir",
    "cache_log",
    "cache_store_log",
    "cache_mgr",
    "cachemgr_passwd",
    "maximum_object_size",
    "maximum_object_size_in_memory",
    "minimum_object_size",
    "memory_replacement_policy",
    "cache_replacement_policy",
    "cache_swap_low",
    "cache_swap_high",
    "shutdown_lifetime",
    "dns_nameservers",
    "hosts_file",
    "max_filedescriptors",
    "memory_pools",
    "buffered_logs",
    "half_closed_clients",
    "server_persistent_connections",
    "client_persistent_connections",
    "never_direct",
    "always_direct",
    "logfile_rotate",
    "strip_query_terms",
    "quick_abort_min",
    "quick_abort_max",
    "quick_abort_pct",
    "range_offset_limit",
    "snmp_port",
];

fn squid_left(state: &mut State<'_>, own: &Directive) {
    if matches!(own.name.as_str(), "htcp_port" | "icp_port") && own.arg(0) == "0" {
        return state.ledger.default(own.id, "there is no such port unless one is named");
    }
    let instead = match own.name.as_str() {
        "cache_dir" => "`[disk]` keeps responses over restarts",
        "refresh_pattern" => "a route with `cache.ttl`, for responses that name no lifetime",
        "cache" => "`cache = false` in a route",
        "logformat" => "`[access_log] format`, in nginx's or Varnish's variables",
        "htcp_port" => "`[htcp] listen`",
        "auth_param" => "`basic_auth`",
        name if name.contains("header") => "`request_headers` and `response_headers`",
        _ => "Larder is no forward proxy",
    };
    state.ledger.left(own.id, "no setting is made of this directive", instead);
}

/// Bytes of `512 MB`.
fn size(own: &Directive) -> Option<u64> {
    let unit = match own.arg(1).to_ascii_uppercase().as_str() {
        "" | "BYTES" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    own.arg(0).parse::<u64>().ok()?.checked_mul(unit)
}
