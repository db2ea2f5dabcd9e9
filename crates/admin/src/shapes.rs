//! Shapes: JSON Schemas (2020-12) of bodies, by the names that routes use.

use serde_json::{Map, Value, json};

use crate::explanation;

/// All schemas.
pub(crate) fn all() -> Value {
    let mut all = Map::new();
    let own = figures().into_iter().chain(rolls()).chain(upgrades());
    let own = own.chain(state()).chain(store()).chain(settings());
    for (name, shape) in own.chain(explanation::shapes()) {
        all.insert(name.to_owned(), shape);
    }
    Value::Object(all)
}

type NamedSchema = (&'static str, Value);

/// An object with all of `properties`.
fn object(properties: Value) -> Value {
    let names: Vec<_> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn number(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

fn maybe(mut shape: Value, kind: &str) -> Value {
    shape["type"] = json!([kind, "null"]);
    shape
}

fn flag(about: &str) -> Value {
    json!({ "type": "boolean", "description": about })
}

/// Header fields that records are to keep.
fn watch() -> Value {
    let name = json!({ "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$" });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "names": {
                "type": "array", "minItems": 1, "maxItems": 100, "items": name,
                "description": "Names of the fields; all by default.",
            },
            "filter": {
                "type": "string",
                "maxLength": 4096,
                "description": "The transactions, in the language of `larder log -q`.",
                "examples": ["resp.status >= 500"],
            },
            "secrets": flag("Keep values that are masked otherwise, such as Cookie."),
        },
    })
}

fn cluster() -> Value {
    let member = json!({ "type": "object", "required": ["name", "run", "live", "state", "lag"] });
    object(json!({
        "name": text("This node's name."),
        "connected": flag("It is in touch with the stream."),
        "stance": json!({ "enum": ["member", "draining", "left"] }),
        "is_shown": flag("Its peers have its current card."),
        "trusted": flag("It uses stored responses without validation."),
        "trusted_ms": number("The time that this lasts without contact to the stream."),
        "problem": maybe(text("Why it is out of touch."), "string"),
        "sequence": number("The sequence up to which it has applied the stream."),
        "last": number("The stream's last known sequence."),
        "queued": number("Entries that wait to be published."),
        "counts": json!({ "type": "object" }),
        "members": list(member),
        "shared": maybe(text("What nodes share by `secret_file`, and who orders certificates."), "object"),
        "configuration": maybe(text("The configuration that all nodes share, in short."), "object"),
    }))
}

/// The configuration that all nodes share.
fn configuration() -> Value {
    let object_of = |names: &[&str]| json!({ "type": "object", "required": names });
    object(json!({
        "node": text("This node's name."),
        "in_force": text("The version in force on this node; empty for none."),
        "problem": maybe(text("Why the state of roll-outs is not known."), "string"),
        "number": number("Number of the last roll-out; 0 for none."),
        "version": text("The version that it is about."),
        "stage": maybe(json!({ "enum": ["canary", "all", "failed", null] }), "string"),
        "why": text("Why it has failed."),
        "good": maybe(text("The version for nodes that are no canaries."), "string"),
        "canaries": list(object_of(&["node", "is_well"])),
        "watch_ms": number("The time for which canaries watch themselves."),
        "checks": list(text("URLs that they request of themselves.")),
        "releases": list(object_of(&["version", "node", "unix_ms", "comment", "passed"])),
        "nodes": list(object_of(&["name", "state", "live", "version", "fault"])),
    }))
}

/// The requests to roll a configuration out and back.
fn rolls() -> [NamedSchema; 3] {
    let carried = object(json!({
        "name": text("The name of its file."),
        "toml": text("Its text."),
        "vcl": {
            "type": "object",
            "description": "Files of the programs that it names and that those include, by path.",
            "additionalProperties": { "type": "string" },
        },
    }));
    let texts = |about: &str, most: u32| {
        json!({
            "type": "array", "maxItems": most, "description": about,
            "items": { "type": "string", "minLength": 1, "maxLength": 1_000 },
        })
    };
    let out = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["configuration"],
        "properties": {
            "configuration": carried,
            "canaries": texts("Nodes that apply it first; one is chosen by default.", 64),
            "watch_ms": number("Milliseconds for which they watch themselves."),
            "checks": texts("URLs that they request of themselves; a status may precede.", 32),
            "comment": { "type": "string", "maxLength": 1_000 },
            "drop_hosts": {
                "type": "boolean",
                "description": "Hosts that have a site now may lose it.",
            },
        },
    });
    let back = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "version": text("The version to go back to.") },
    });
    [("Configuration", configuration()), ("RollOut", out), ("RollBack", back)]
}

/// The request for a new process, and its outcome.
fn upgrades() -> [NamedSchema; 2] {
    let wanted = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "binary": text("The program; by default the one at the path of the running one."),
        },
    });
    let done = object(json!({
        "pid": number("The id of the process that serves now."),
        "version": text("Its version."),
        "before": number("The id of the process that ends with its connections."),
        "drain_ms": number("Milliseconds that its connections have."),
    }));
    [("Upgrade", wanted), ("Upgraded", done)]
}

fn figures() -> [NamedSchema; 7] {
    let number = json!({ "type": "integer" });
    let ring = object(json!({
        "folder": text("The folder of its files."),
        "size": self::number("Bytes of one core's ring."),
    }));
    let stand = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["order"],
        "properties": { "order": { "enum": ["join", "drain", "leave"] } },
    });
    [
        ("Cluster", cluster()),
        ("Stand", stand),
        (
            "Figures",
            json!({
                "type": "object",
                "description": "Figures by name; related ones in objects.",
                "additionalProperties": {
                    "oneOf": [number, { "type": "object", "additionalProperties": number }],
                },
            }),
        ),
        (
            "OpenApi",
            json!({
                "type": "object",
                "required": ["openapi", "info", "paths"],
                "properties": { "openapi": { "type": "string" } },
            }),
        ),
        ("Ring", ring),
        ("Watch", watch()),
        (
            "Watched",
            object(
                json!({ "seconds": self::number("Seconds until the fields are dropped again.") }),
            ),
        ),
    ]
}

fn counts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "integer" } })
}

fn status() -> Value {
    object(json!({
        "version": text("The daemon's version."),
        "role": text("The caller's role: `read`, `purge` or `config`."),
        "uptime_seconds": number("Seconds since the start."),
        "config_file": maybe(text("The configuration file; `null` with flags."), "string"),
        "waits_for_restart": list(text("A changed setting that takes effect at a restart.")),
        "dashboard": object(json!({
            "addresses": list(text("A listener's address.")),
            "tokens": text("The folder with a token for each role, on the daemon's machine."),
        })),
        "cores": number("Core threads."),
        "sites": number("How many there are."),
        "origins": number("How many there are."),
        "cache": object(json!({
            "objects": number("Stored responses."),
            "bytes": number("Bytes of the stored responses and their index."),
            "budget_bytes": number("The budget of these bytes."),
            "evictions": number("Responses evicted for lack of memory."),
            "bans": number("Bans kept."),
        })),
        "limit_hits": counts(),
    }))
}

fn state() -> [NamedSchema; 4] {
    let status = status();
    let site = object(json!({
        "name": text("Its first host."),
        "hosts": list(json!({ "type": "string" })),
        "presets": list(json!({ "type": "string" })),
        "origins": list(json!({ "type": "string" })),
        "requests": counts(),
        "errors": number("Answers with a 5xx status."),
        "observed": maybe(counts(), "object"),
        "differing": list(object(json!({
            "url": text("The URL."),
            "route": text("The route; empty for none."),
            "cause": text("The cookie or field that makes the difference."),
            "unix_ms": number("The time, in milliseconds since 1970."),
        }))),
        "rules": text("Its rules in the order in which they decide."),
    }));
    let server = object(json!({
        "name": text("Its address."),
        "addresses": list(json!({ "type": "string" })),
        "weight": number("Its share."),
        "backup": flag("It gets requests only while no other server is in use."),
        "healthy": flag("It gets requests."),
        "order": text("The operator's order: `auto`, `up`, `drain` or `down`."),
        "probed": text("The result of probes: `unknown`, `healthy` or `sick`."),
        "down_since_ms": maybe(
            number("The time when it became unhealthy, in milliseconds since 1970."),
            "integer",
        ),
        "ejected_ms": number("Milliseconds until its ejection ends."),
        "failures": number("Failed requests since its last response."),
        "requests": number("Exchanges begun with it."),
        "failed": number("Of these, those without a usable response."),
        "in_flight": number("Exchanges under way."),
        "waiting": number("Requests waiting for a connection to it."),
        "answers": number("Responses whose heads were received."),
        "answers_us": number("Microseconds until their heads, connecting included, of all together."),
        "last_error": maybe(text("Its latest failure."), "string"),
        "last_error_ms": maybe(number("When that was, in milliseconds since 1970."), "integer"),
    }));
    let origin = object(json!({
        "name": text("The name in sites."),
        "healthy": flag("One of its servers gets requests."),
        "servers": list(server),
    }));
    let order = json!({
        "type": "object",
        "required": ["origin", "order"],
        "additionalProperties": false,
        "properties": {
            "origin": text("The origin's name."),
            "server": text("The server, by its `name` or as configured; all by default."),
            "order": {
                "enum": ["auto", "up", "drain", "down"],
                "description": "`drain` and `down` keep new requests away, and what is under way \
                                ends; `down` is for one that is broken. `up` sends it requests \
                                whatever probes say. `auto` lets probes decide.",
            },
        },
    });
    [
        ("Status", status),
        ("Sites", object(json!({ "sites": list(site) }))),
        ("Origins", object(json!({ "origins": list(origin) }))),
        ("Order", order),
    ]
}

fn store() -> [NamedSchema; 9] {
    let stored = object(json!({
        "url": text("Its URL."),
        "vary": list(json!({ "type": "string" })),
        "status": number("Its status."),
        "age_ms": number("Its age."),
        "ttl_ms": number("The lifetime when it was stored."),
        "fresh_ms": number("The remaining lifetime."),
        "stale_ms": number("The time since it became stale."),
        "grace_ms": number("The grace: how long it is served stale while a fetch renews it."),
        "stale_if_error_ms": number("How long it is served stale when the origin fails."),
        "bytes": maybe(number("The length of the body, if known."), "integer"),
        "hits": number("The approximate number of hits."),
        "tags": number("The number of surrogate keys."),
    }));
    let ban = object(json!({
        "number": number("Later ones have larger numbers."),
        "text": text("The expression."),
        "soft": flag("Matching responses become stale instead of being removed."),
        "age_ms": number("Milliseconds since it was made."),
        "objects": number("The number of responses hit so far."),
        "over": flag("All stored responses have been tested against it."),
    }));
    let purged = object(json!({
        "purged": number("The number of stored responses hit, as far as known."),
        "pending": flag("Not all responses have been tested yet. Those that match are not used."),
    }));
    [
        ("Objects", object(json!({ "objects": list(stored), "more": flag("There are more.") }))),
        ("Bans", object(json!({ "bans": list(ban) }))),
        ("Purge", purge()),
        ("Purged", purged),
        ("Evidence", evidence()),
        ("Advice", advice()),
        ("Warm", warm()),
        ("Campaign", campaign()),
        ("Warming", warming()),
    ]
}

/// The schema of advice.
fn advice() -> Value {
    let figures = || json!({ "type": "object", "additionalProperties": { "type": "number" } });
    let finding = object(json!({
        "number": number("Its number."),
        "kind": text("Its kind, such as `query-parameter-unused`."),
        "site": text("The site."),
        "about": text("The parameter, cookie, field or limit that it is about."),
        "paths": text("The paths concerned; empty for the whole site."),
        "points": json!({ "type": "number", "description": "Hundredths that the hit ratio gains." }),
        "predicted": maybe(figures(), "object"),
        "bytes": number("Bytes that a change of the application would save."),
        "risk": text("The danger of the change."),
        "proof": object(json!({
            "kind": json!({ "enum": ["bodies", "counts", "missing"] }),
            "text": text("The proof in words."),
        })),
        "file": maybe(text("The file to change."), "string"),
        "change": maybe(list(json!({ "type": "object", "required": ["line", "lines"] })), "array"),
        "hints": list(text("A further change.")),
    }));
    object(json!({
        "requests": number("Requests that were replayed."),
        "first_unix_ms": maybe(number("The time of the first."), "integer"),
        "last_unix_ms": maybe(number("The time of the last."), "integer"),
        "replayed": figures(),
        "findings": list(finding),
        "untried": number("Further changes that were not tried, since there were too many."),
        "few_networks": flag("The requests come from too few networks for some of the findings."),
    }))
}

/// The schema of evidence about the store.
fn evidence() -> Value {
    let pages = |page: Value| {
        object(json!({
            "count": number("The number of such pages."),
            "pages": list(page),
        }))
    };
    let varied = object(json!({
        "url": text("The URL."),
        "vary": list(json!({ "type": "string" })),
        "variants": number("The number of its variants."),
        "bodies": number("The number of different bodies that these have."),
    }));
    let marked = object(json!({
        "url": text("The URL."),
        "left_ms": number("Milliseconds until requests for it wait for each other again."),
    }));
    let invalidation = object(json!({
        "unix_ms": number("The time, in milliseconds since 1970."),
        "selection": text("What it selects: a URL, or a ban's expression."),
        "soft": flag("Responses only became stale."),
        "objects": number("Stored responses that it has reached."),
    }));
    object(json!({
        "memory": object(json!({
            "bytes": number("Bytes in use."),
            "budget_bytes": number("The budget of these bytes."),
            "objects": number("Stored responses."),
            "stores": number("Responses stored since the start."),
            "evictions": number("Responses evicted since the start."),
            "refused": number("Responses not stored for lack of memory."),
            "too_large": number("Responses not stored for their size."),
            "returned": object(json!({
                "quarter": number("With up to a quarter of the main queue evicted between: a quarter more memory would have kept them, about."),
                "half": number("Up to a half: half as much memory again would have kept them, about."),
                "three_quarters": number("Up to three quarters."),
                "whole": number("More."),
            })),
        })),
        "variants": object(json!({
            "stored": number("Variants stored since the start."),
            "equal": number("Of these, those with the body of another variant."),
            "over": number("Responses evicted because their page had too many variants."),
        })),
        "varied": pages(varied),
        "marked": pages(marked),
        "invalidations": list(invalidation),
    }))
}

/// The schema of an order to warm the store.
fn warm() -> Value {
    let url = json!({ "type": "string", "pattern": "^https?://[a-z0-9]{1,60}/[a-z0-9/]{0,60}$" });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "maxLength": 200, "description": "What is warmed, for the list of campaigns." },
            "pages": {
                "type": "array",
                "maxItems": 1000,
                "description": "The pages.",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["url"],
                    "properties": {
                        "url": url,
                        "visits": {
                            "type": "integer", "minimum": 0, "maximum": 1_000_000_000_000_u64,
                            "description": "The number of visits. Pages with more are fetched first.",
                        },
                    },
                },
            },
            "sitemaps": {
                "type": "array", "maxItems": 100, "items": url,
                "description": "URLs of sitemaps. The sites themselves are asked for them.",
            },
            "site": {
                "type": "string", "minLength": 1,
                "description": "The site, by its first host, whose own sitemaps and list are read.",
            },
            "campaign": number("The campaign to which pages are added, by its number."),
            "more": flag("Further pages follow for this campaign."),
            "stop": flag("Stops all campaigns; goes with nothing else."),
        },
    })
}

/// The schema of a campaign that warms the store.
fn campaign() -> Value {
    object(json!({
        "number": number("Its number."),
        "title": text("What it warms."),
        "found": number("URLs so far."),
        "fetched": number("URLs that were fetched and are stored."),
        "fresh": number("URLs of which a fresh response was stored already."),
        "unstored": number("URLs whose responses may not be stored for all visitors."),
        "failed": number("URLs whose origin failed."),
        "dropped": number("URLs that had no place, or were stopped."),
        "over": flag("The fate of all URLs is known."),
        "stopped": flag("It was stopped."),
        "took_ms": number("The time that it has taken so far, or took, in milliseconds."),
        "left_ms": maybe(number("The time until its end at its present rate, in milliseconds."), "integer"),
        "faults": list(text("A sitemap or line that could not be read.")),
    }))
}

/// The schema of the state of warming.
fn warming() -> Value {
    let waiting = object(json!({
        "site": text("The site, by its first host."),
        "urls": number("The number of URLs that wait."),
    }));
    let origin = object(json!({
        "origin": text("Its name; that of the site if a VCL selects it."),
        "running": number("Fetches under way."),
        "window": number("Fetches at the same time that its first-byte time allows."),
        "median_ms": maybe(json!({ "type": "number", "minimum": 0, "description": "The median of its last first-byte times, in milliseconds." }), "number"),
        "rests": flag("It fails, and is left alone for a while."),
    }));
    object(json!({
        "campaigns": list(campaign()),
        "waiting": list(waiting),
        "origins": list(origin),
    }))
}

/// The schema of a purge, which selects objects in exactly one way.
fn purge() -> Value {
    let one_or_more = |about: &str, item: Value| {
        let many = json!({ "type": "array", "minItems": 1, "maxItems": 1000, "items": item });
        json!({ "description": about, "oneOf": [item, many] })
    };
    let url = json!({
        "type": "string",
        "pattern": "^https?://[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?(/[!-\"$-~]*)?$",
    });
    let name = json!({ "type": "string", "pattern": "^[!-+\\--~]+$" });
    let host = json!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?$" });
    let ways = ["url", "prefix", "host", "tags", "ban", "all"];
    let way = |name: &&str| {
        let others = ways.iter().filter(|other| *other != name);
        // `tags` may be limited to a `host`.
        let others = others.filter(|other| !(*name == "tags" && **other == "host"));
        let none = others.map(|other| ((*other).to_owned(), json!(false)));
        json!({ "required": [name], "properties": none.collect::<Map<_, _>>() })
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "url": one_or_more("Every variant of these URLs, over either scheme.", url),
            "prefix": {
                "type": "string",
                "pattern": "^(https?://[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?)?/[!-\"$-~]{0,200}$",
                "description": "All URLs with this prefix; a path alone is for every host.",
            },
            "host": { "description": "All of this host.", "allOf": [host] },
            "tags": one_or_more("All with one of these surrogate keys.", name),
            "ban": {
                "type": "string",
                "description": "All that this expression matches, in Varnish's ban language.",
                "examples": ["req.http.host == example.org && req.url ~ ^/shop/"],
            },
            "all": { "const": true, "description": "Everything." },
            "wait": { "enum": ["local", "quorum", "all"], "description": "The nodes that the response waits for." },
            "soft": flag("They become stale, and may be served while one fetch renews them."),
            "wait_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": 60_000,
                "default": 5_000,
                "description": "Milliseconds that the answer may wait until all is counted. The \
                                purge itself does not wait.",
            },
        },
        "oneOf": ways.iter().map(way).collect::<Vec<_>>(),
    })
}

fn settings() -> [NamedSchema; 4] {
    let parameter = object(json!({
        "name": text("Its name in `[limits]`."),
        "value": text("As it would be written."),
        "default": text("As it would be written."),
        "is_default": flag("The value is the default."),
        "hits": number("The number of times that it was reached."),
        "about": text("What it bounds, and what happens beyond it."),
    }));
    let checked = object(json!({
        "good": flag("The configuration can be used."),
        "said": text("Errors and warnings: file, line, column."),
        "stays": list(text("A changed setting that takes effect at a restart.")),
    }));
    let config = object(json!({
        "file": maybe(text("The configuration file; `null` with flags."), "string"),
        "sites": text("Every site in full."),
    }));
    [
        ("Config", config),
        (
            "Text",
            json!({
                "type": "object",
                "required": ["toml"],
                "additionalProperties": false,
                "properties": { "toml": text("A whole larder.toml.") },
            }),
        ),
        ("Checked", checked),
        ("Parameters", object(json!({ "parameters": list(parameter) }))),
    ]
}
