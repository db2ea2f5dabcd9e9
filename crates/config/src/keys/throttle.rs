//! Limits on how often, and how much at once, clients may ask.

use super::section::{BOOLEAN, COUNT, Key, Section, TEXTS, keys};

/// The keys of a limit of either kind.
fn terms() -> Vec<Key> {
    keys! {
        "per", "\"address\", \"site\" or { field = \"X-Api-Key\" }", "\"address\"", "Who is counted as one: an IPv4 address or the /64 of an IPv6 address, all together, or requests with the same value of a field (those without it by address). The address is the client's as `trusted_proxies` say it.";
        "path", TEXTS, "every path", "The paths that it is for, as a route's `path`. Of a path that can be read in several ways each reading counts.";
        "exempt", TEXTS, "no one", "Addresses or networks that are not limited; `unix:` for clients of a unix socket.";
        "status", "429 or 503", "429", "The status of a refusal; nginx has 503 where nothing is said.";
        "dry_run", BOOLEAN, "false", "Whether what would be refused is only counted and logged.";
    }
}

pub(crate) const RATE: Section = Section {
    title: "[site.rate]",
    about: "How often clients may ask, counted for each by itself; also in a route. Further \
            requests wait or are refused with 429 and Retry-After. A list of tables holds all of \
            them: a request comes in when each lets it in. A route that says nothing counts \
            together with its site; `false` in a route takes the limit off.",
    keys: || {
        let mut keys = keys! {
            "requests", "a rate such as \"10/s\"", "required", "So many in a second (`/s`), a minute (`/m`) or an hour (`/h`), at an even pace: `60/m` lets one in every second.";
            "burst", COUNT, "0", "How many more may come at once; what was taken of it comes back at the rate. With 10, eleven come in at once. As nginx's `burst` with `nodelay`, or its `delay`.";
            "queue", COUNT, "0", "How many beyond that wait for their turn, in the order in which they came and no longer than `rate_wait`, instead of being refused. As nginx's `burst` without `nodelay`.";
        };
        keys.extend(terms());
        keys
    },
    later: &[("count", "every request counts, hits too; a route, or `path`, limits what is dear")],
};

pub(crate) const CONCURRENT: Section = Section {
    title: "[site.concurrent]",
    about: "How many requests of a client may be under way at once, from their heads to the last \
            bytes of their answers; also in a route. Further ones are refused with 429. Lists and \
            routes are as for `[site.rate]`. Connections have a limit of their own, \
            `connections_per_ip`.",
    keys: || {
        let mut keys = keys! {
            "requests", COUNT, "required", "So many, at least 1. A WebSocket connection is one as long as it lasts.";
        };
        keys.extend(terms());
        keys
    },
    later: &[],
};
