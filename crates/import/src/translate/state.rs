//! State that the parts of a translation share: facts of the whole configuration, the ledger, and
//! the document that is being made.

use std::collections::BTreeMap;

use super::chain::Chain;
use crate::document::{Document, Settings};
use crate::report::Ledger;
use crate::syntax::Directive;

/// Facts of the whole configuration, each by its name.
#[derive(Debug, Default)]
pub(crate) struct World<'d> {
    pub(crate) upstreams: BTreeMap<&'d str, &'d Directive>,
    /// `map`, `geo` and `split_clients`, by their variables without the dollar sign.
    pub(crate) maps: BTreeMap<&'d str, &'d Directive>,
    pub(crate) rate_zones: BTreeMap<&'d str, &'d Directive>,
    pub(crate) connection_zones: BTreeMap<&'d str, &'d Directive>,
    pub(crate) log_formats: BTreeMap<&'d str, &'d Directive>,
    /// Something is cached: then what is not said to be cached is not.
    pub(crate) caches: bool,
    /// There is an access log.
    pub(crate) logs: bool,
}

impl<'d> World<'d> {
    /// Gathers them from the directives of `http`.
    pub(crate) fn new(http: &'d [Directive]) -> Self {
        let mut world = World::default();
        for directive in http {
            let first = directive.arg(0);
            match directive.name.as_str() {
                "upstream" => _ = world.upstreams.insert(first, directive),
                "map" | "split_clients" => world.add_map(directive.arg(1), directive),
                "geo" => world.add_map(directive.args.last().map_or("", |name| name), directive),
                "limit_req_zone" => add_zone(&mut world.rate_zones, directive),
                "limit_conn_zone" => add_zone(&mut world.connection_zones, directive),
                "log_format" => _ = world.log_formats.insert(first, directive),
                _ => {}
            }
            directive.visit(&mut |own| {
                let is_cache = matches!(own.name.as_str(), "proxy_cache" | "fastcgi_cache");
                world.caches |= is_cache && own.arg(0) != "off";
                world.logs |= own.name == "access_log" && own.arg(0) != "off";
            });
        }
        world
    }

    fn add_map(&mut self, variable: &'d str, directive: &'d Directive) {
        self.maps.insert(variable.trim_start_matches('$'), directive);
    }
}

fn add_zone<'d>(zones: &mut BTreeMap<&'d str, &'d Directive>, directive: &'d Directive) {
    if let Some(zone) = option(directive, "zone") {
        zones.insert(zone.split(':').next().unwrap_or(zone), directive);
    }
}

/// The value of an argument `name=value`.
pub(crate) fn option<'d>(directive: &'d Directive, name: &str) -> Option<&'d str> {
    let values = directive.args.iter().filter_map(|arg| arg.strip_prefix(name));
    values.filter_map(|rest| rest.strip_prefix('=')).next()
}

/// A translation under way.
#[derive(Debug)]
pub(crate) struct State<'d> {
    pub(crate) world: World<'d>,
    pub(crate) ledger: Ledger,
    pub(crate) document: Document,
}

impl State<'_> {
    /// The settings of a table at the top.
    pub(crate) fn table(&mut self, name: &'static str) -> &mut Settings {
        self.document.tables.entry(name).or_default()
    }
}

/// Sources of the answers to the requests of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// An application that speaks HTTP.
    Http,
    /// One that gets calls of gRPC.
    Grpc,
    /// One that speaks FastCGI.
    FastCgi,
    /// Files.
    Files,
    /// An answer of the configuration.
    Answer,
}

impl Handler {
    /// Tells whether responses come from an application.
    pub(crate) fn is_application(self) -> bool {
        matches!(self, Self::Http | Self::Grpc | Self::FastCgi)
    }

    /// The beginning of the names of its directives.
    pub(crate) fn family(self) -> &'static str {
        match self {
            Self::FastCgi => "fastcgi",
            Self::Grpc => "grpc",
            Self::Http | Self::Files | Self::Answer => "proxy",
        }
    }
}

/// A site or a route while its settings are gathered.
#[derive(Debug)]
pub(crate) struct Scope<'s, 'd> {
    pub(crate) state: &'s mut State<'d>,
    pub(crate) chain: Chain<'d>,
    pub(crate) handler: Handler,
    /// It is a site, not a route.
    pub(crate) is_site: bool,
    pub(crate) out: Settings,
}

impl Scope<'_, '_> {
    /// Tells whether responses come from an application.
    pub(crate) fn has_application(&self) -> bool {
        self.handler.is_application()
    }

    pub(crate) fn left(&mut self, directive: &Directive, why: &str, instead: &str) {
        self.state.ledger.left(directive.id, why, instead);
    }

    pub(crate) fn default(&mut self, directive: &Directive, why: &str) {
        self.state.ledger.default(directive.id, why);
    }

    pub(crate) fn not_needed(&mut self, directive: &Directive, why: &str) {
        self.state.ledger.not_needed(directive.id, why);
    }

    pub(crate) fn carried(&mut self, directive: &Directive, remark: &str) {
        self.state.ledger.carried(directive.id, remark);
    }
}

/// The numbers of directives.
pub(crate) fn ids(directives: &[&Directive]) -> Vec<usize> {
    directives.iter().map(|directive| directive.id).collect()
}
