//! `[[neighbour]]`.

use super::section::{Section, TEXTS, keys};

pub(crate) const NEIGHBOUR: Section = Section {
    title: "[[neighbour]]",
    about: "Another cache that is told of what is invalidated here: Varnish, Squid, nginx, a \
            service with an API. With `ask` it is also asked for what is missing here. The limits \
            `neighbour_queue`, `neighbour_retry` and \
            `neighbour_timeout` are its, too.",
    keys: || {
        keys! {
            "origin", "the name of an [[origin]], or a URL", "required, or `htcp`", "Where it is: each server of an [[origin]], with its `[origin.tls]`, is told for itself.";
            "htcp", TEXTS, "none", "Addresses that are told by datagrams of HTCP instead, such as \"10.0.0.5:4827\": a CLR (RFC 2756) for each URL. A multicast group is told once, and not asked whether it has heard.";
            "ask", "the name of an [[origin]], or a URL", "none", "Where the neighbour with this `htcp` address answers requests: its one server. A miss is put to it by HTCP (TST) before the origin is asked, and what it has is fetched from there, by a request with `only-if-cached`. Pages are asked for over TLS by `https`, and without by `http`. The limit `sibling_timeout` is about it.";
            "dialect", "\"purge\", \"nginx-helper\", \"foshttpcache\", \"xkey\", \"souin\", \"fastly\" or \"cloudflare\"", "\"purge\"", "How an origin is told: `purge` (`PURGE url`: Squid, nginx, another Larder, the usual VCL), `nginx-helper` (`GET /purge/path`), `foshttpcache` (`PURGE url`, `BAN` with `X-Host`, `X-Url`, `X-Content-Type` and `X-Cache-Tags`: Varnish with FOSHttpCache's VCL), `xkey` (the same, surrogate keys by `PURGEKEYS`: Varnish with vmod xkey), `souin`, `fastly`, `cloudflare` (their APIs). What a dialect has no word for the neighbour is not told: it is counted and logged.";
            "path", "a path", "Souin's `/souin-api/souin`", "The path of its API: `/service/ID` of Fastly's, `/client/v4/zones/ID` of Cloudflare's.";
            "token", "a string", "none", "What shows that one may: sent in `Authorization: Bearer`, to Fastly in `Fastly-Key`.";
            "sites", TEXTS, "all", "Sites, by their first hosts, of which it has pages. What is invalidated of others it is not told; all of these is all that it has.";
        }
    },
    later: &[],
};
