//! Routes: the one table of paths, requests and responses. The listener looks requests up in it,
//! and the OpenAPI description is made from it.

use std::fmt;

use base::Limit;

use crate::role::Role;

/// The operation of a route. The daemon's [`Api::answer`](crate::Api::answer) performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Liveness.
    Health,
    /// Readiness for clients.
    Ready,
    /// The cluster and its members.
    Cluster,
    /// The operator's order for this node.
    Stand,
    /// The configuration that all nodes share, and the progress of its roll-out.
    Configuration,
    /// Roll a configuration out.
    RollOut,
    /// Roll all nodes back to an earlier configuration.
    RollBack,
    /// The Prometheus page.
    Metrics,
    /// Every figure by name.
    Stats,
    /// The folder of the log ring.
    Ring,
    /// Read the configuration again; the response is plain text.
    ReloadText,
    /// Read the configuration again.
    Reload,
    /// Explain what would happen to a request.
    Explain,
    /// The version, the time since the start, and the state of the store.
    Status,
    /// The sites, with their rules.
    Sites,
    /// The origins and their servers.
    Origins,
    /// The operator's order for servers.
    Order,
    /// Stored objects.
    Objects,
    /// The bans in force.
    Bans,
    /// Invalidate.
    Purge,
    /// Advice on the configuration.
    Advice,
    /// Evidence about the store, for advice.
    Evidence,
    /// Warm the store.
    Warm,
    /// The progress of warming.
    Warming,
    /// The configuration in force.
    Config,
    /// Check a configuration.
    Check,
    /// Every limit.
    Parameters,
    /// The OpenAPI description.
    Describe,
    /// A file of the dashboard.
    Dashboard,
    /// A file of the documentation.
    Documentation,
    /// Live figures for the dashboard.
    Live,
    /// Make records keep header fields for a while.
    Watch,
}

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteMethod {
    /// GET, and HEAD; changes nothing.
    Get,
    /// POST.
    Post,
}

impl RouteMethod {
    /// The method's token.
    pub fn token(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// The callers that may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Every caller: it reveals nothing.
    Public,
    /// Callers with this role; every caller with `[admin] metrics = "open"`.
    OpenMetrics(Role),
    /// Callers with this role or a stronger one.
    Role(Role),
}

/// A parameter of the query.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The kind of value that the parameter takes.
    pub kind: Kind,
    /// The description.
    pub about: &'static str,
}

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text of at least one byte.
    Text,
    /// A whole number up to this.
    Count(u64),
}

impl Kind {
    /// Returns true if `text` is such a value.
    pub(crate) fn takes(self, text: &str) -> bool {
        match self {
            Self::Text => !text.is_empty(),
            Self::Count(most) => {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                digits && text.parse::<u64>().is_ok_and(|n| n <= most)
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Count(most) => write!(f, "a whole number up to {most}"),
        }
    }
}

/// The body of a response with status 200.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// Another media type.
    Other(&'static str),
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestContent {
    /// No body.
    Empty,
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of this schema, or no body.
    MaybeJson(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub verb: RouteMethod,
    /// The whole path; `{file}` at its end stands for all paths below.
    pub path: &'static str,
    /// The callers that may use the route.
    pub needs: RouteAccess,
    /// The operation that is carried out.
    pub operation: Operation,
    /// True if the operation changes something. Changes are logged, and refused from other web
    /// sites.
    pub changes: bool,
    /// The description, one sentence.
    pub about: &'static str,
    /// Parameters of the query.
    pub query: &'static [Parameter],
    /// The body of a request.
    pub takes: RequestContent,
    /// Keys of the body whose values the audit log hides.
    pub hides: &'static [&'static str],
    /// The body of a response with status 200.
    pub gives: Content,
    /// Statuses besides 200 and the common ones, each with its meaning.
    pub also: &'static [(u16, &'static str)],
}

impl Route {
    /// Returns true if the route is for `path`.
    fn is_of(&self, path: &str) -> bool {
        match self.path.strip_suffix(BELOW) {
            Some(folder) => path.starts_with(folder),
            None => path == self.path,
        }
    }

    /// The name of the path's variable part, if it has one.
    pub(crate) fn variable(&self) -> Option<&'static str> {
        self.path.ends_with(BELOW).then(|| BELOW.trim_matches(['{', '}']))
    }
}

/// A GET route without parameters.
const fn get(
    path: &'static str,
    needs: RouteAccess,
    operation: Operation,
    gives: Content,
) -> Route {
    Route {
        verb: RouteMethod::Get,
        path,
        needs,
        operation,
        changes: false,
        about: "",
        query: &[],
        takes: RequestContent::Empty,
        hides: &[],
        gives,
        also: &[],
    }
}

/// A file of the dashboard. It holds no data, and every caller may read it.
const fn page(path: &'static str, kind: &'static str) -> Route {
    Route {
        about: "A file of the dashboard.",
        ..get(path, RouteAccess::Public, Operation::Dashboard, Content::Other(kind))
    }
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const READ: RouteAccess = RouteAccess::Role(Role::Read);
const PURGE: RouteAccess = RouteAccess::Role(Role::Purge);
const CONFIG: RouteAccess = RouteAccess::Role(Role::Config);
const TEXT: Content = Content::Other("text/plain; charset=utf-8");

/// Most objects in one response.
pub const OBJECTS_MAX: u64 = 1_000;

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Text, about }
}

const OBJECTS: [Parameter; 7] = [
    text("url", "All variants of this URL."),
    text("prefix", "URLs with this prefix; a path alone is for every host."),
    text("host", "Responses of this host."),
    text("tag", "Responses with this surrogate key; can be combined with `prefix` and `host`."),
    text("ban", "Responses that this ban expression matches."),
    text("site", "Responses of this site, by its first host; can be combined with everything."),
    Parameter {
        name: "limit",
        kind: Kind::Count(OBJECTS_MAX),
        about: "The maximum number; 100 by default.",
    },
];

const LIVE: [Parameter; 1] =
    [text("site", "Figures of this site only, by its first host; of all sites by default.")];

/// Parameters that the documentation's own search adds to links.
const DOCUMENTS_QUERY: [Parameter; 2] =
    [text("h", "Words that the page highlights."), text("q", "Words that the page searches for.")];

/// The table.
pub const TABLE: &[Route] = &[
    Route {
        about: "Whether the daemon answers.",
        ..get("/healthz", RouteAccess::Public, Operation::Health, TEXT)
    },
    Route {
        about: "Whether the daemon is ready for clients.",
        also: &[(503, "It is not: the body has the reasons, one in a line.")],
        ..get("/readyz", RouteAccess::Public, Operation::Ready, TEXT)
    },
    Route {
        about: "Every figure, as Prometheus reads them.",
        ..get(
            "/metrics",
            RouteAccess::OpenMetrics(Role::Read),
            Operation::Metrics,
            Content::Other("text/plain; version=0.0.4"),
        )
    },
    Route {
        about: "Every figure by name.",
        ..get("/stats", READ, Operation::Stats, Content::Json("Figures"))
    },
    Route {
        about: "The folder of the log ring.",
        also: &[(404, "The log ring is off.")],
        ..get("/ring", READ, Operation::Ring, Content::Json("Ring"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Reads the configuration again; the response is plain text.",
        also: &[(422, "It cannot be used; what is in force stays.")],
        ..get("/reload", CONFIG, Operation::ReloadText, TEXT)
    },
    Route {
        about: "The version, the uptime, the state of the store, and the caller's role.",
        ..get("/api/v1/status", READ, Operation::Status, Content::Json("Status"))
    },
    Route {
        about: "The sites: hosts, presets, origins, requests so far, and the rules in short.",
        ..get("/api/v1/sites", READ, Operation::Sites, Content::Json("Sites"))
    },
    Route {
        about: "The origins and the state of their servers.",
        ..get("/api/v1/origins", READ, Operation::Origins, Content::Json("Origins"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Takes servers out, puts them back, or lets probes decide again.",
        takes: RequestContent::Json("Order"),
        also: &[(404, "There is no such origin or server.")],
        ..get("/api/v1/origins/order", CONFIG, Operation::Order, Content::Json("Origins"))
    },
    Route {
        about: "The stored responses that the parameters select; all without any.",
        query: &OBJECTS,
        also: &[(404, "There is no such site."), (422, "An invalid URL or expression.")],
        ..get("/api/v1/objects", READ, Operation::Objects, Content::Json("Objects"))
    },
    Route {
        about: "The cluster as this node knows it: its members, their lag, what each may use. The \
                name is empty where there is no `[cluster]`.",
        ..get("/api/v1/cluster", READ, Operation::Cluster, Content::Json("Cluster"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Has the node drain, leave its cluster, or join it again. It is answered when the \
                others have been shown; `is_shown` is false if they could not be.",
        takes: RequestContent::Json("Stand"),
        also: &[(409, "There is no `[cluster]`, or the order does not fit the node's state.")],
        ..get("/api/v1/cluster/order", CONFIG, Operation::Stand, Content::Json("Cluster"))
    },
    Route {
        about: "The configuration that all nodes share: the versions, which node has which, and how \
                far the last roll-out is.",
        ..get(
            "/api/v1/cluster/configuration",
            READ,
            Operation::Configuration,
            Content::Json("Configuration"),
        )
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Rolls a configuration out: to canaries, and to all nodes once these are well. Only \
                over the admin socket: it may have files served that no token may see.",
        takes: RequestContent::Json("RollOut"),
        hides: &["configuration"],
        also: &[
            (409, "Nodes share no configuration, or another roll-out is under way."),
            (422, "It cannot be used; nothing is rolled out."),
            (503, "The cluster is out of touch."),
        ],
        ..get(
            "/api/v1/cluster/roll-out",
            CONFIG,
            Operation::RollOut,
            Content::Json("Configuration"),
        )
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Has all nodes go back to a version that was on all before, the last one if none is \
                said; while one is on its canaries, these.",
        takes: RequestContent::Json("RollBack"),
        also: &[
            (409, "Nodes share no configuration, or there is nothing to go back to."),
            (422, "There is no such version."),
            (503, "The cluster is out of touch."),
        ],
        ..get(
            "/api/v1/cluster/roll-back",
            CONFIG,
            Operation::RollBack,
            Content::Json("Configuration"),
        )
    },
    Route {
        about: "The bans that may still matter to something stored, the oldest first.",
        ..get("/api/v1/bans", READ, Operation::Bans, Content::Json("Bans"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Invalidates the selected responses. After the reply none of them is served as fresh.",
        takes: RequestContent::Json("Purge"),
        also: &[(404, "No site has the URL's host."), (422, "An invalid URL or expression.")],
        ..get("/api/v1/purge", PURGE, Operation::Purge, Content::Json("Purged"))
    },
    Route {
        about: "What would serve the visitors better, by the last requests in the log ring, with proof and \
                the lines for the configuration file. It is made now, which may take seconds.",
        also: &[
            (404, "The log ring is off."),
            (409, "The configuration file or the log ring cannot be read, or there is no file."),
            (503, "Advice is being made already."),
        ],
        ..get("/api/v1/advice", CONFIG, Operation::Advice, Content::Json("Advice"))
    },
    Route {
        about: "What `larder advise` needs to know of the store: memory, responses that came back \
                soon after their eviction, variants, marks and the latest invalidations.",
        ..get("/api/v1/evidence", READ, Operation::Evidence, Content::Json("Evidence"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Has pages fetched before a visitor asks for them, or stops that.",
        takes: RequestContent::Json("Warm"),
        also: &[(404, "There is no such site or campaign."), (422, "An invalid URL.")],
        ..get("/api/v1/warm", PURGE, Operation::Warm, Content::Json("Campaign"))
    },
    Route {
        about: "The campaigns that warm the store, and the pace of each origin.",
        ..get("/api/v1/warm", READ, Operation::Warming, Content::Json("Warming"))
    },
    Route {
        about: "The configuration in force, every site in full, secrets left out.",
        ..get("/api/v1/config", CONFIG, Operation::Config, Content::Json("Config"))
    },
    Route {
        verb: RouteMethod::Post,
        about: "Says what is wrong with a configuration: the one in the body, whose files are not \
                looked at, or without a body the daemon's own.",
        takes: RequestContent::MaybeJson("Text"),
        ..get("/api/v1/config/check", CONFIG, Operation::Check, Content::Json("Checked"))
    },
    Route {
        verb: RouteMethod::Post,
        changes: true,
        about: "Reads the configuration again. One that cannot be used changes nothing.",
        also: &[(422, "It cannot be used; what is in force stays.")],
        ..get("/api/v1/config/reload", CONFIG, Operation::Reload, Content::Json("Checked"))
    },
    Route {
        about: "Every limit: its value, its default, and the number of times that it was reached.",
        ..get("/api/v1/parameters", READ, Operation::Parameters, Content::Json("Parameters"))
    },
    Route {
        about: "The folder of the log ring.",
        also: &[(404, "The log ring is off.")],
        ..get("/api/v1/ring", READ, Operation::Ring, Content::Json("Ring"))
    },
    Route {
        verb: RouteMethod::Post,
        path: "/api/v1/log/fields",
        about: "Has records in the log ring keep header fields of requests and responses, of \
                clients and origins, for some seconds from now on; who asks again goes on. \
                Secrets are masked unless the role `config` asks for them.",
        takes: RequestContent::Json("Watch"),
        also: &[
            (403, "Secrets need the role `config`."),
            (404, "The log ring is off."),
            (422, "An invalid filter."),
            (503, "The limit `log_readers` is reached."),
        ],
        ..get("/api/v1/log/fields", READ, Operation::Watch, Content::Json("Watched"))
    },
    Route {
        verb: RouteMethod::Post,
        path: "/api/v1/explain",
        about: "What would happen to a request now and why, without its happening, and what became \
                of the last ones for its URL.",
        takes: RequestContent::Json("Question"),
        ..get("/api/v1/explain", READ, Operation::Explain, Content::Json("Explanation"))
    },
    Route {
        about: "This description.",
        ..get("/api/v1/openapi.json", READ, Operation::Describe, Content::Json("OpenApi"))
    },
    Route {
        about: "Figures every second, as server-sent events: `hello`, `history`, then `figures`.",
        query: &LIVE,
        also: &[
            (404, "There is no such site."),
            (503, "The limit `dashboard_viewers` is reached."),
        ],
        ..get("/api/v1/live", READ, Operation::Live, Content::Other("text/event-stream"))
    },
    page("/", HTML),
    page("/app.css", STYLE),
    page("/app.js", SCRIPT),
    page("/advice.js", SCRIPT),
    page("/api.js", SCRIPT),
    page("/board.js", SCRIPT),
    page("/charts.js", SCRIPT),
    page("/cluster.js", SCRIPT),
    page("/config.js", SCRIPT),
    page("/dom.js", SCRIPT),
    page("/explain.js", SCRIPT),
    page("/format.js", SCRIPT),
    page("/history.js", SCRIPT),
    page("/icon.svg", "image/svg+xml"),
    page("/news.js", SCRIPT),
    page("/origins.js", SCRIPT),
    page("/purge.js", SCRIPT),
    page("/sites.js", SCRIPT),
    page("/tables.js", SCRIPT),
    Route {
        about: "The licence of the dashboard's chart library.",
        ..page("/uplot-license.txt", "text/plain; charset=utf-8")
    },
    page("/uplot.css", STYLE),
    page("/uplot.js", SCRIPT),
    Route {
        about: "A file of the documentation in `[admin] docs`.",
        query: &DOCUMENTS_QUERY,
        also: &[(404, "There is no such file, or no documentation.")],
        ..get(
            "/docs/{file}",
            RouteAccess::Public,
            Operation::Documentation,
            Content::Other("text/html; charset=utf-8"),
        )
    },
];

/// The end of a route's path that stands for all paths below.
const BELOW: &str = "{file}";

/// The routes that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteSet {
    /// All routes.
    Whole,
    /// Health only.
    Health,
    /// Metrics only.
    Metrics,
}

impl RouteSet {
    /// Returns true if the set has a route of the operation.
    fn has(self, operation: Operation) -> bool {
        match self {
            Self::Whole => true,
            Self::Health => matches!(operation, Operation::Health | Operation::Ready),
            Self::Metrics => operation == Operation::Metrics,
        }
    }

    /// The routes of `path`.
    pub(crate) fn of_path(self, path: &str) -> impl Iterator<Item = &'static Route> + '_ {
        TABLE.iter().filter(move |route| route.is_of(path) && self.has(route.operation))
    }

    /// The path whose response lists the others, for messages.
    pub(crate) fn directory(self) -> &'static str {
        match self {
            Self::Whole => "/api/v1/openapi.json lists all paths",
            Self::Health => "there are /healthz and /readyz",
            Self::Metrics => "there is /metrics",
        }
    }

    /// The limit on its connections.
    pub(crate) fn connections(self) -> Limit {
        match self {
            Self::Whole => Limit::AdminConnections,
            Self::Health => Limit::HealthConnections,
            Self::Metrics => Limit::MetricsConnections,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_route_is_there_once_and_says_what_it_does() {
        let mut seen = HashSet::new();
        for route in TABLE {
            assert!(seen.insert((route.verb, route.path)), "{}", route.path);
            assert!(route.about.ends_with('.'), "{}", route.path);
            assert!(route.path.starts_with('/'), "{}", route.path);
        }
    }

    #[test]
    fn only_posts_change_something_and_none_without_a_role() {
        for route in TABLE.iter().filter(|route| route.changes) {
            assert_eq!(route.verb, RouteMethod::Post, "{}", route.path);
            let RouteAccess::Role(role) = route.needs else { panic!("{}", route.path) };
            assert!(role > Role::Read, "{}", route.path);
        }
    }

    #[test]
    fn parts_have_what_they_are_for_and_nothing_else() {
        let paths = |part: RouteSet| {
            let own = TABLE.iter().filter(|route| part.of_path(route.path).next().is_some());
            own.map(|route| route.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(RouteSet::Health), ["/healthz", "/readyz"]);
        assert_eq!(paths(RouteSet::Metrics), ["/metrics"]);
        assert_eq!(paths(RouteSet::Whole).len(), TABLE.len());
    }

    #[test]
    fn a_count_is_digits_up_to_its_most() {
        let count = Kind::Count(10);
        for (text, taken) in [("0", true), ("10", true), ("11", false), ("+1", false), ("", false)]
        {
            assert_eq!(count.takes(text), taken, "{text}");
        }
        assert!(Kind::Text.takes("x") && !Kind::Text.takes(""));
    }
}
