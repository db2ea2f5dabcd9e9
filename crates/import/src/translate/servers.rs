//! Servers: their hosts, their certificates, and those that only redirect to HTTPS.

use std::collections::BTreeMap;

use super::answers;
use super::conditions::question;
use super::listen::{self, Listeners};
use super::state::State;
use crate::document::{Settings, SiteBlock, quote};
use crate::syntax::Directive;

/// A server with what is known of it before its site is made.
#[derive(Debug)]
pub(crate) struct ServerBlock<'d> {
    pub(crate) directive: &'d Directive,
    pub(crate) listeners: Listeners,
    /// Its hosts as Larder writes them; none for one that answers for all others.
    pub(crate) hosts: Vec<String>,
    /// Directives that name them.
    pub(crate) named_by: Vec<usize>,
}

impl<'d> ServerBlock<'d> {
    /// Looks at a `server` block.
    pub(crate) fn new(state: &mut State<'_>, directive: &'d Directive) -> Self {
        let own = directive.children();
        let listeners = listen::listeners(state, own);
        let (mut hosts, mut named_by) = (Vec::new(), Vec::new());
        for names in own.iter().filter(|own| own.name == "server_name") {
            named_by.push(names.id);
            for name in &names.args {
                match host(name) {
                    Host::Named(own) => hosts.extend(own),
                    Host::Nobody => state.ledger.default(names.id, "this name is no host's"),
                    Host::Unknown => {
                        let instead = "write the hosts, or `*.example.com`";
                        let why = "a host is no expression, and has no `*` at its end";
                        state.ledger.left(names.id, why, instead);
                    }
                }
            }
        }
        hosts.dedup();
        Self { directive, listeners, hosts, named_by }
    }

    /// The directives of the block.
    pub(crate) fn own(&self) -> &'d [Directive] {
        self.directive.children()
    }
}

enum Host {
    Named(Vec<String>),
    Nobody,
    Unknown,
}

fn host(name: &str) -> Host {
    if name.is_empty() || name == "_" || name == "--" || name == "-" {
        return Host::Nobody;
    }
    if name.starts_with('~') || name.ends_with(".*") || name.contains('$') {
        return Host::Unknown;
    }
    match name.strip_prefix('.') {
        Some(rest) => Host::Named(vec![rest.to_owned(), format!("*.{rest}")]),
        None => Host::Named(vec![name.to_ascii_lowercase()]),
    }
}

/// Certificates of a server.
pub(crate) fn certificates(state: &mut State<'_>, server: &ServerBlock<'_>, to: &mut Settings) {
    for own in server.own() {
        match own.name.as_str() {
            "ssl_certificate" | "ssl_certificate_key" if own.arg(0).contains('$') => {
                let why = "the file of a certificate has no variable";
                state.ledger.left(own.id, why, "`[tls.acme]` orders certificates for all hosts");
            }
            "ssl_certificate" => to.add("tls.cert", [own.arg(0)], &[own.id]),
            "ssl_certificate_key" => to.add("tls.key", [own.arg(0)], &[own.id]),
            "ssl_client_certificate" => to.text("tls.client_ca", own.arg(0), &[own.id]),
            "ssl_verify_client" => match own.arg(0) {
                "on" => to.text("tls.client_auth", "require", &[own.id]),
                "optional" => to.text("tls.client_auth", "optional", &[own.id]),
                "off" => state.ledger.default(own.id, "clients need no certificate"),
                _ => {
                    let why = "a certificate that cannot be verified is not accepted";
                    state.ledger.left(own.id, why, "`client_auth = \"optional\"`");
                }
            },
            "ssl_crl" => {
                state.ledger.left(own.id, "lists of revoked certificates are not read", "");
            }
            _ => {}
        }
    }
}

/// A redirect of plain HTTP to HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpsRedirect {
    pub(crate) status: String,
    /// The target, if it is not the host that was asked for.
    target: String,
    pub(crate) from: Vec<usize>,
    /// It holds for these hosts only.
    hosts: Option<Vec<String>>,
}

/// The redirect that is all that a server does; `None` if it does anything else.
pub(crate) fn https_redirect(server: &ServerBlock<'_>) -> Option<HttpsRedirect> {
    if server.listeners.tls {
        return None;
    }
    let own = server.own();
    let root = own.iter().find(|own| own.name == "location" && own.args == ["/"]);
    let in_root = root.into_iter().flat_map(Directive::children);
    let is_return = |own: &&Directive| matches!(own.name.as_str(), "return" | "rewrite");
    if let Some(found) = own.iter().find(is_return).and_then(to_https) {
        return Some(found);
    }
    let by_host: Vec<_> = own.iter().filter_map(host_redirect).collect();
    if let Some((first, rest)) = by_host.split_first() {
        let mut all = first.clone();
        for other in rest {
            all.from.extend(&other.from);
            all.hosts.as_mut()?.extend(other.hosts.clone()?);
        }
        let other = own.iter().filter(|own| own.name == "return");
        all.from.extend(other.map(|own| own.id));
        return Some(all);
    }
    let found = in_root.filter(is_return).find_map(to_https);
    let has_application = own.iter().any(|own| own.name == "location" && serves(own));
    let mut found = found.filter(|_| !has_application)?;
    found.from.extend(root.map(|root| root.id));
    Some(found)
}

fn serves(location: &Directive) -> bool {
    location.children().iter().any(|own| own.name.ends_with("_pass"))
}

/// A `return` or `rewrite` whose target is the same path over HTTPS.
pub(crate) fn to_https(own: &Directive) -> Option<HttpsRedirect> {
    let (status, url) = if own.name == "return" {
        match own.args.as_slice() {
            [status, url] => (status.clone(), url.clone()),
            _ => return None,
        }
    } else {
        let is_all = matches!(own.arg(0), "^" | "^(.*)$" | "^(.*)" | "^/(.*)$" | "(.*)");
        if !is_all {
            return None;
        }
        let status = if own.arg(2) == "permanent" { "301" } else { "302" };
        let url = own.arg(1).trim_end_matches('?');
        let url = url.strip_suffix("/$1").or_else(|| url.strip_suffix("$1"));
        let url = match url {
            Some(start) => format!("{start}$request_uri"),
            None => own.arg(1).trim_end_matches('?').to_owned(),
        };
        (status.to_owned(), url)
    };
    let rest = url.strip_prefix("https://")?;
    let ends = ["$request_uri", "$uri$is_args$args", "$uri"];
    ends.iter().find_map(|end| rest.strip_suffix(end)).filter(|host| !host.contains('/'))?;
    let status = match status.as_str() {
        "308" | "307" => "308",
        _ => "301",
    };
    let target = answers::target(&url, "https")?;
    Some(HttpsRedirect { status: status.to_owned(), target, from: vec![own.id], hosts: None })
}

/// The redirect of one host, as certbot writes them.
fn host_redirect(own: &Directive) -> Option<HttpsRedirect> {
    let asked = (own.name == "if").then(|| question(own)).flatten()?;
    if asked.variable != "$host" || asked.operator != "=" {
        return None;
    }
    let inner = own.children().iter().find(|own| own.name == "return")?;
    let mut found = to_https(inner)?;
    found.from.push(own.id);
    found.hosts = Some(vec![asked.value.to_owned()]);
    Some(found)
}

/// Redirects to HTTPS by host.
#[derive(Debug, Default)]
pub(crate) struct HttpsRedirects(BTreeMap<String, HttpsRedirect>);

impl HttpsRedirects {
    /// Takes those of a server in.
    pub(crate) fn add(&mut self, server: &ServerBlock<'_>, redirect: &HttpsRedirect) {
        let own = redirect.hosts.clone().unwrap_or_else(|| match server.hosts.as_slice() {
            [] => vec!["*".to_owned()],
            hosts => hosts.to_vec(),
        });
        for host in own {
            let mut redirect = redirect.clone();
            redirect.from.extend(&server.named_by);
            redirect.from.push(server.directive.id);
            self.0.entry(host).or_insert(redirect);
        }
    }

    /// Takes out those of a site's hosts. A server without hosts redirects those of all others.
    pub(crate) fn take(&mut self, hosts: &[String]) -> Option<HttpsRedirect> {
        let mut found: Option<HttpsRedirect> = None;
        for host in hosts {
            let Some(other) = self.0.remove(host) else { continue };
            match &mut found {
                Some(found) => found.from.extend(&other.from),
                None => found = Some(other),
            }
        }
        let mut found = found.or_else(|| self.0.get("*").cloned())?;
        found.from.sort_unstable();
        found.from.dedup();
        Some(found)
    }

    /// Sites for the hosts that no other site has.
    pub(crate) fn sites(self) -> Vec<SiteBlock> {
        let mut sites: Vec<(HttpsRedirect, SiteBlock)> = Vec::new();
        for (host, redirect) in self.0 {
            let same = sites
                .iter_mut()
                .find(|(own, _)| own.target == redirect.target && own.status == redirect.status);
            let site = match same {
                Some((_, site)) => site,
                None => {
                    let site = SiteBlock::default();
                    sites.push((redirect.clone(), site));
                    let (_, site) = sites.last_mut().expect("it was just pushed");
                    site
                }
            };
            site.site.settings.add("host", [host.as_str()], &redirect.from);
            let HttpsRedirect { target, status, .. } = &redirect;
            let value = format!("{{ to = {}, status = {status} }}", quote(target));
            site.site.settings.put("redirect", value, &[]);
        }
        sites.into_iter().map(|(_, site)| site).collect()
    }
}
