//! The one table of keys: what `larder.toml` may say and where, its type and its default.
//! The parser looks unknown keys up in it, its messages quote it, and the reference page is made
//! from it.

use base::limits;

mod cluster;
mod disk;
mod entry;
mod logs;
mod neighbour;
mod ports;
mod section;
mod throttle;
mod tracing;

pub(crate) use cluster::CLUSTER;
pub(crate) use disk::{DISK, DISK_VOLUME};
pub(crate) use entry::{BASIC_AUTH, FORWARD_AUTH};
pub(crate) use logs::{ACCESS_LOG, ERROR_LOG, LOG_RING};
pub(crate) use neighbour::NEIGHBOUR;
pub(crate) use ports::{HEALTH, HTCP, METRICS, VARNISH_CLI};
pub use section::{Key, Section};
pub(crate) use throttle::{CONCURRENT, RATE};
pub(crate) use tracing::{FIELD_FILE, TRACING};

use section::{BOOLEAN, COUNT, DURATION, PATHS, SIZE, TABLE, TEXTS, keys, pair};

pub(crate) const TOP: Section = Section {
    title: "",
    about: "Keys that stand before the first `[table]`, and the tables themselves.",
    keys: || {
        keys! {
            "listen", TEXTS, "\":80\"; with `[tls.acme]` also \":443 tls\"", "Where clients connect: `:80` for all addresses, `127.0.0.1:80` or `[::1]:80` for one; `:443 tls` for clients that speak TLS, `:80 h2c` for balancers that speak HTTP/2 without TLS; `:80 proxy` or `:443 tls proxy` behind a balancer that sends the PROXY protocol; `unix:/path` for a unix socket, with `mode=660` for its permissions; `fd:name` for sockets that systemd hands over.";
            "http2", BOOLEAN, "true", "Whether clients that speak TLS may speak HTTP/2, which ALPN agrees on. Without TLS, HTTP/2 is spoken where `listen` says `h2c`.";
            "raw_utf8", BOOLEAN, "true", "Whether a URL may have UTF-8 in it that is not escaped, as clients other than browsers send it. It is escaped before anything looks at it; without this it is refused with 400.";
            "health_check", "a path", "none", "A path such as `/health` that is answered 200 when a request's Host names no site: for balancers that ask a server by its address. Sites are not asked.";
            "workers", "a whole number or \"auto\"", "\"auto\"", "Core threads; `auto` is one per core the process may use.";
            "profile", "\"safe\" or \"rfc\"", "\"safe\"", "Defaults of all sites: `safe` keeps what is personal apart and origins alive, `rfc` follows RFC 9111 to the letter.";
            "trusted_proxies", TEXTS, "none", "Addresses or networks of proxies and balancers in front; `unix:` for those that connect over a unix socket. What they say of the client and its scheme is believed (see `client_field`), and only they get through to listeners with `proxy`.";
            "client_field", "the name of a field", "\"X-Forwarded-For\"", "Where trusted proxies say who asked them: `X-Forwarded-For`, `Forwarded` (RFC 7239), or a field with one address such as `X-Real-IP` or `CF-Connecting-IP`. No other is believed.";
            "forwarded", BOOLEAN, "false", "Whether origins are told who asks in `Forwarded` (RFC 7239) too, besides the `X-Forwarded-` fields.";
            "x_cache", BOOLEAN, "false", "Whether responses say `X-Cache: HIT` or `MISS`.";
            "cache_status", "\"on\", \"off\" or \"detail\"", "\"on\"", "The Cache-Status field (RFC 9211) of responses; `detail` also names the rule that decided.";
            "via", "a string", "\"larder\"", "Pseudonym in Via and Cache-Status.";
            "vcl", "an absolute path", "none", "The VCL that decides for every site which names none itself, in the place of all settings but `host`, `tls`, and those that guard it: `rate`, `concurrent`, `basic_auth` and `forward_auth`.";
            "access_log", "\"off\", \"stdout\", \"syslog\", a path, or a table", "\"off\"", "Where requests are logged.";
            "error_log", "\"stderr\", \"syslog\", a path, or a table", "\"stderr\"", "Where the daemon says what happens to it; see `[error_log]`.";
            "log_ring", "\"off\", a size, or a table", "\"32MiB\"", "Memory for records of the last requests, in which `larder log`, `top` and `hist` look; see `[log_ring]`.";
            "memory", TABLE, "none", "See `[memory]`.";
            "disk", TABLE, "none", "A cache on disk below the one in memory: see `[disk]`.";
            "run", TABLE, "none", "See `[run]`.";
            "admin", TABLE, "none", "See `[admin]`.";
            "health", TABLE, "none", "See `[health]`.";
            "metrics", TABLE, "none", "See `[metrics]`.";
            "varnish_cli", TABLE, "none", "See `[varnish_cli]`.";
            "htcp", TABLE, "none", "See `[htcp]`.";
            "cluster", TABLE, "none", "See `[cluster]`.";
            "neighbour", "a list of tables", "none", "Other caches that are told of what is invalidated here, and asked for what is missing: see `[[neighbour]]`.";
            "tracing", TABLE, "none", "See `[tracing]`.";
            "compression", TABLE, "none", "See `[compression]`.";
            "tls", TABLE, "none", "See `[tls]`.";
            "limits", TABLE, "none", "See `[limits]`.";
            "origin", "a list of tables", "none", "See `[[origin]]`.";
            "site", "a list of tables", "none", "See `[[site]]`; at least one.";
        }
    },
    later: &[],
};

pub(crate) const MEMORY: Section = Section {
    title: "[memory]",
    about: "The memory cache.",
    keys: || {
        keys! {
            "size", "a size (\"1GiB\"), a percentage (\"50%\") or \"auto\"", "\"auto\"", "What the daemon may take for its cache. Nine tenths are given to stored responses with everything that belongs to them, the rest to what the allocator loses between them. Percentages are of the machine's memory or of the control group's limit, `auto` is half of that.";
        }
    },
    later: &[],
};

pub(crate) const RUN: Section = Section {
    title: "[run]",
    about: "As whom the daemon runs that root has started. Read when the daemon starts; a reload does not change \
            it.",
    keys: || {
        keys! {
            "user", "a string", "\"larder\" if there is such a user, else \"nobody\"", "The user that the daemon becomes once its ports are open, with the groups it is a member of. Only `root` keeps it root.";
            "group", "a string", "the user's", "Its group.";
        }
    },
    later: &[],
};

pub(crate) const ADMIN: Section = Section {
    title: "[admin]",
    about: "The admin listener: figures, purges, changes. Read when the daemon starts; a reload does not change \
            it.",
    keys: || {
        keys! {
            "listen", "a string", "none", "An address of this machine's own to listen on besides the admin socket, such as `127.0.0.1:6080`. There a token is asked for.";
            "tokens", "an absolute path", "\"/var/lib/larder/admin\", or `admin` in systemd's `StateDirectory=`", "Folder with the tokens of the roles: `read.token`, `purge.token` and `config.token`, each made at the first start, the daemon's user's alone.";
            "hosts", TEXTS, "none", "Names under which it may be asked besides `localhost`, `127.0.0.1`, `[::1]` and its own address, as behind a proxy.";
            "metrics", "\"token\" or \"open\"", "\"token\"", "Whether `/metrics` is for those with a token, or for whoever can connect.";
            "socket_mode", "permissions such as \"660\"", "\"600\"", "Permissions of the admin socket's file. Who may open it may do everything.";
            "audit", "an absolute path", "none", "File to which every change is written as a line of JSON that has the hash of the line before it. It is written to standard error in any case.";
            "history", "a duration such as \"6h\"", "\"1d\"", "How far the dashboard's charts reach back, from \"10m\" to \"7d\". It is kept in memory, 96 bytes a minute (135 KiB for a day), as much for each of the twelve busiest sites, and ends with the daemon.";
        }
    },
    later: &[],
};

pub(crate) const COMPRESSION: Section = Section {
    title: "[compression]",
    about: "Compression of stored responses, for all sites without a VCL: each is stored once, as it \
            came, coded forms are made of what clients ask for in a coding, and every client gets \
            the best that is there and that it takes. A site's `compress` says for which bodies. A \
            VCL has `beresp.do_gzip` and parameters.",
    keys: || {
        keys! {
            "types", TEXTS, "text, JSON, XML, scripts, fonts and the like", "Media types of responses that are coded: `text/css`, `text/*`, `*+json`, or `*` for all.";
            "min_bytes", SIZE, "\"512\"", "Length below which a response is left as it is, where its length is known before its end.";
            "level", COUNT, "6", "Level of gzip: from 1, fast, to 9, small.";
            "gzip_hits", COUNT, "1", "Hits after which a response that came without a coding is coded in gzip, behind the requests, for clients that take it. The first hit is the second request.";
            "ask", "`gzip`, `br`, `zstd`, or a list of them", "[\"gzip\"]", "Codings that origins are asked for where the answer may be stored; of all of them each client gets one that it takes. With an empty list origins are asked for none.";
            "forms", "`gzip`, `br`, `zstd`, or a list of them", "[\"br\", \"zstd\"]", "Further codings in which responses that are asked for often are kept beside the stored one, for clients that take them; the most wanted first. They are made behind requests, within the limit `coding_time`.";
            "warm_hits", COUNT, "8", "Hits after which such a form is made, quickly; and a copy without a coding of what an origin has coded, for clients that take none.";
            "hot_hits", COUNT, "200", "Hits after which it is made as small as it can be.";
            "dictionaries", BOOLEAN, "true", "Whether stored responses with `Use-As-Dictionary` serve as dictionaries (RFC 9842): clients that have one get newer responses as what differs from it, in `dcz` or `dcb`. Sites with a VCL, too.";
        }
    },
    later: &[],
};

pub(crate) const TLS: Section = Section {
    title: "[tls]",
    about: "The certificate of sites that have none of their own, and of clients that name no host \
            or one without certificate. Without it such clients are refused. Files are read again \
            within a second of a change; what does not fit together changes nothing.",
    keys: || {
        let mut keys = pair();
        keys.append(&mut keys! {
            "acme", TABLE, "none", "Certificates from an authority, for hosts that have none in files: see `[tls.acme]`.";
            "ocsp", BOOLEAN, "true", "Whether handshakes show an authority's word that the certificate is good (OCSP stapling), for every certificate, those of sites included, that names a responder and comes with its issuer's.";
        });
        keys
    },
    later: &[],
};

pub(crate) const ACME: Section = Section {
    title: "[tls.acme]",
    about: "Certificates from an authority that speaks ACME (RFC 8555), ordered at start and \
            renewed in time, for every host that no certificate from files is for. Whoever sets \
            this agrees to the authority's terms of service.",
    keys: || {
        keys! {
            "email", "a string", "none", "Where the authority may write to about the account.";
            "directory", "a URL, \"letsencrypt\" or \"staging\"", "\"letsencrypt\"", "The authority: URL of its directory. `staging` is Let's Encrypt's for trials, whose certificates nobody trusts.";
            "ca", "a path", "the system's", "PEM file with the authorities that the directory's own certificate is verified by.";
            "storage", "a path", "\"/var/lib/larder/acme\"", "Folder for the account and the certificates, the daemon's alone.";
            "challenges", "\"http-01\", \"tls-alpn-01\", or a list of both", "what listeners make possible, tls-alpn-01 first", "How hosts are proved, the preferred way first; when one fails the other is tried.";
            "eab", TABLE, "none", "See `[tls.acme.eab]`.";
        }
    },
    later: &[],
};

pub(crate) const EAB: Section = Section {
    title: "[tls.acme.eab]",
    about: "The account elsewhere that the one with the authority is bound to (RFC 8555 7.3.4), where \
            the authority wants that.",
    keys: || {
        keys! {
            "kid", "a string", "required", "The key's identifier.";
            "hmac", "a string", "required", "The key, base64url as the authority hands it out.";
        }
    },
    later: &[],
};

pub(crate) const SITE_TLS: Section = Section {
    title: "[site.tls]",
    about: "A site's certificates, and how its clients are checked.",
    keys: || {
        let mut keys = pair();
        keys.append(&mut keys! {
            "client_ca", "a path", "none", "PEM file with the authorities that sign clients' certificates; with it, clients are checked.";
            "acme", BOOLEAN, "whether it has no certificate", "Whether certificates are ordered as `[tls.acme]` says; `true` orders them even where those of `[tls]` are good for the hosts.";
            "client_fields", "a list of \"x-ssl\" and \"client-cert\"", "[\"x-ssl\"]", "How origins are told of a client's certificate: in X-SSL-Client-Verify (`SUCCESS` or `NONE`), X-SSL-Client-S-DN and X-SSL-Client-Fingerprint, in Client-Cert (RFC 9440), or, `[]`, not at all. Where they are told, answers are kept only if the origin says that they are for all.";
            "client_auth", "\"require\" or \"optional\"", "\"require\"", "Whether a client must have a certificate, or one that it shows need only be good. Requests over plain connections are refused where one is required.";
        });
        keys
    },
    later: &[],
};

pub(crate) const HSTS: Section = Section {
    title: "[site.hsts]",
    about: "Strict-Transport-Security, when more than its duration is to be said. Where the origin \
            sends one, that comes first and counts.",
    keys: || {
        keys! {
            "max_age", DURATION, "\"2y\"", "How long browsers use HTTPS only.";
            "subdomains", BOOLEAN, "false", "Whether that holds for all hosts below this one.";
            "preload", BOOLEAN, "false", "Whether browsers may have it built in.";
        }
    },
    later: &[],
};

/// Its keys are those of [`limits::TABLE`].
pub(crate) const LIMITS: Section = Section {
    title: "[limits]",
    about: "Every bound that holds, and what happens beyond it. How often each was reached is counted \
            in `limit_hits{limit=\"...\"}`.",
    keys: || {
        let key = |spec: &limits::LimitSpec| Key {
            name: spec.name,
            takes: match spec.unit {
                limits::Unit::Ms => DURATION,
                limits::Unit::Bytes => "a size such as \"64KiB\"",
                limits::Unit::BytesPerSecond => "a size per second such as \"1KiB\"",
                limits::Unit::Count => COUNT,
                limits::Unit::Percent => "a whole number of percent",
            },
            default: match spec.unit {
                limits::Unit::Count | limits::Unit::Percent => spec.show(spec.default).into(),
                _ => format!("\"{}\"", spec.show(spec.default)).into(),
            },
            about: spec.about,
        };
        limits::TABLE.iter().map(key).collect()
    },
    later: &[],
};

pub(crate) const ORIGIN: Section = Section {
    title: "[[origin]]",
    about: "A named origin: one or more servers with the same content. Bounds that are not set here are \
            those of `[limits]`.",
    keys: || {
        keys! {
            "name", "a string", "required", "What sites call it.";
            "servers", "a URL, or a list of URLs or { url, weight } tables", "required", "`http://host:port`, `https://host:port`, `unix:/path`, `fastcgi://host:port` or `fastcgi+unix:/path`; `host:port` alone means HTTP; `weight` is a server's share relative to the others'. Of what DNS answers for a host, link-local addresses (169.254.169.254) are not used.";
            "root", "a path", "required for FastCGI", "The document root of a FastCGI origin: where its scripts are, and what they are told as DOCUMENT_ROOT.";
            "try_files", TEXTS, "[\"$uri\", \"$uri/\", \"/index.php\"]", "What a path of a FastCGI origin is tried as, in this order: `$uri` a file, `$uri/` a directory with an index, `/path` this script, `=404` this status.";
            "index", TEXTS, "[\"index.php\", \"index.html\"]", "Names of a directory's own file, the most wanted first.";
            "scripts", TEXTS, "\".php\"", "How names of scripts end; other files are never run.";
            "no_scripts", "a string, a list of strings, or false", "those of its sites' presets", "Directories below which no script is run, such as `/wp-content/uploads`; `*` stands for any one segment, `**` for any number of them. They add to those of presets; with `false` scripts run everywhere.";
            "linked", TEXTS, "none", "Directories outside `root` that links in it may lead into.";
            "files", "a table or false", "none", "How files in `root` that are no scripts are served: see `[origin.files]`; `false` for not at all.";
            "accel", "true, or a table such as { \"/protected/\" = \"/srv/private\" }", "false", "Whether X-Accel-Expires and X-Accel-Charset of its responses count (`X-Accel-Expires: 0` always does: such a response is not stored), and in a table, where X-Accel-Redirect may lead: a path that begins like a key is a file in that key's directory. Without it X-Accel-* is removed from responses.";
            "x_sendfile", PATHS, "none", "Directories of which X-Sendfile of its responses may name files. Without it X-Sendfile is removed.";
            "balance", "\"round-robin\", \"least-requests\" or \"hash\"", "\"round-robin\"", "How requests are spread over the servers.";
            "host", "a string", "the client's", "Host field sent to the servers.";
            "tls", TABLE, "none", "How `https://` servers are connected to: see `[origin.tls]`.";
            "probe", "a table or a path", "none", "See `[origin.probe]`.";
            "eject", "a table", "none", "See `[origin.eject]`.";
            "connect_timeout", DURATION, "as in [limits]", "Connecting to a server.";
            "first_byte_timeout", DURATION, "as in [limits]", "From the request's last byte to the response's head.";
            "between_bytes_timeout", DURATION, "as in [limits]", "A response's body without a new byte.";
            "total_timeout", DURATION, "as in [limits]", "One exchange in all.";
            "connections", COUNT, "as in [limits]", "Connections in use to one server; 0 for no bound.";
            "client_share", "a whole number of percent", "as in [limits]", "What one client gets of the connections to one server; see `origin_share`.";
            "queue", COUNT, "as in [limits]", "Requests waiting for a connection to one server.";
            "queue_timeout", DURATION, "as in [limits]", "How long one of them waits.";
            "idle", COUNT, "as in [limits]", "Idle connections kept per server and core; for FastCGI 0 unless set, as each occupies a worker process there.";
            "idle_timeout", DURATION, "as in [limits]", "How long an idle connection is kept.";
            "store_close_delimited", BOOLEAN, "false", "Whether bodies that end with their connection are stored, as HTTP/1.0, CGI programs and `php -S` end them: a clean end counts (FIN; over TLS close_notify), a reset never does. A server that crashes in the middle may end cleanly, too.";
            "lenient_origin", BOOLEAN, "false", "Whether lines of its responses' heads may end without CR, as old CGI programs have it. Otherwise such a response is a 502.";
            "retries", COUNT, "as in [limits]", "Further tries of one request.";
            "retry_on", "a list of \"connect\", \"drop\", \"timeout\" and statuses such as \"503\"", "[\"connect\", \"drop\", \"timeout\"]", "What of an idempotent request is tried again: there was no connection, it ended before an answer, it took too long, or the answer has this status (400 to 527). For the last two another server is asked.";
            "slow_start", DURATION, "0s", "From a server's recovery to its whole share of the requests, which grows evenly until then.";
            "retry_budget", "a whole number of percent", "as in [limits]", "Retried requests as a share of all.";
        }
    },
    later: &[],
};

pub(crate) const SERVER: Section = Section {
    title: "{ url, weight }",
    about: "One server of an origin.",
    keys: || {
        keys! {
            "url", "a string", "required", "As in `servers`.";
            "weight", COUNT, "1", "Its share of the requests relative to the other servers'.";
        }
    },
    later: &[],
};

pub(crate) const ORIGIN_TLS: Section = Section {
    title: "[origin.tls]",
    about: "TLS to `https://` servers. Their certificates are verified, name included; the handshake is \
            part of `connect_timeout`.",
    keys: || {
        keys! {
            "ca", "a path", "the system's", "PEM file with the authorities trusted.";
            "sni", "a string", "the server's name", "The name that is asked for and that the certificate must be for.";
            "cert", "a path", "none", "PEM file with a certificate shown to servers that ask for one.";
            "key", "a path", "none", "PEM file with its private key.";
            "verify", BOOLEAN, "true", "Whether certificates are verified. Without it anyone on the way can read and change everything.";
        }
    },
    later: &[],
};

pub(crate) const PROBE: Section = Section {
    title: "[origin.probe]",
    about: "Active probing of every server. A string alone is its `path`.",
    keys: || {
        keys! {
            "path", "a path", "\"/\"", "What is asked for.";
            "host", "a string", "as for requests", "Host field of the probe.";
            "interval", DURATION, "\"5s\"", "From one probe to the next.";
            "timeout", DURATION, "\"2s\"", "How long one probe may take.";
            "window", COUNT, "8", "How many of the latest probes are looked at, 1 to 64.";
            "threshold", COUNT, "3", "How many of them must be good.";
            "status", COUNT, "200", "Status of a good answer.";
        }
    },
    later: &[],
};

pub(crate) const EJECT: Section = Section {
    title: "[origin.eject]",
    about: "When a server that fails requests is left alone.",
    keys: || {
        keys! {
            "failures", COUNT, "3", "Consecutive failures that eject it; 0 switches ejection off.";
            "time", DURATION, "\"10s\"", "How long it gets no requests; then one tries it.";
            "statuses", TEXTS, "none", "Answers that count as failures, such as \"503\": 400 to 527.";
        }
    },
    later: &[],
};

/// Keys that a site has and a route may change.
fn settings() -> Vec<Key> {
    keys! {
        "origin", "the name of an [[origin]], or a URL", "required", "Where requests go. Not needed where `files`, `redirect` or `respond` answers.";
        "files", "a path or a table", "none", "Serves the files of this directory, instead of asking an origin: see `[site.files]`.";
        "page_cache", "\"wp-super-cache\", \"wp-rocket\", \"boost\" or false", "false", "A plugin whose pages on the disk, below the `root` of a FastCGI origin, answer where the cache does not, before PHP is asked.";
        "cache", "a table or false", "none", "See `[site.cache]`; `false` sends every request to the origin.";
        "cookies", TABLE, "none", "See `[site.cookies]`.";
        "query", TABLE, "none", "See `[site.query]`.";
        "bypass", "a table or false", "none", "See `[site.bypass]`; `false` in a route forgets what its site says.";
        "request_headers", TABLE, "none", "See `[site.request_headers]`.";
        "response_headers", TABLE, "none", "See `[site.response_headers]`.";
        "redirect", "a URL or a table", "none", "Answers with a redirect: see `[site.redirect]`.";
        "respond", TABLE, "none", "Answers with a fixed response: see `[site.respond]`.";
        "first_byte_timeout", DURATION, "the origin's", "How long the origin may take from the request's last byte to the response's head, instead of its own `first_byte_timeout`. A preset's counts only where the origin names none.";
        "upgrade", TEXTS, "\"websocket\"", "Protocols that a connection may change to (the Upgrade field): it becomes a tunnel to the origin once that has agreed. `[]` for none.";
        "allow", TEXTS, "everyone", "Addresses or networks let in; others get 403.";
        "deny", TEXTS, "no one", "Addresses or networks kept out with 403, even when `allow` lets them in.";
        "rate", "a table, a list of tables, or false", "none", "How often a client may ask: see `[site.rate]`.";
        "basic_auth", "a table or false", "none", "Users with passwords who alone are let in: see `[site.basic_auth]`.";
        "forward_auth", "a table or false", "none", "Another server that is asked who is let in: see `[site.forward_auth]`.";
        "concurrent", "a table, a list of tables, or false", "none", "How many requests of a client may be under way at once: see `[site.concurrent]`.";
    }
}

pub(crate) const SITE: Section = Section {
    title: "[[site]]",
    about: "A site: its hosts and what is done with requests for them.",
    keys: || {
        let mut keys = keys! {
            "host", TEXTS, "required", "Its hosts: `example.com`, `*.example.com` for all below it, `*` for every other.";
            "profile", "\"safe\" or \"rfc\"", "the top's", "Its defaults.";
            "preset", TEXTS, "none", "Rules for a kind of site, `larder preset list` names them. What the site says itself wins, its routes come first; of several presets the later wins, the routes of the earlier come first.";
            "vcl", "an absolute path", "the top's", "Its VCL, which decides in the place of all settings but `host`, `tls`, and those that guard it: `rate`, `concurrent`, `basic_auth` and `forward_auth`.";
            "route", "a list of tables", "none", "See `[[site.route]]`.";
            "tls", TABLE, "none", "See `[site.tls]`.";
            "purge", "a table or false", "none", "Who may purge it, and how: see `[site.purge]`; `false` for no one, whatever its presets say.";
            "server_timing", BOOLEAN, "false", "Whether responses say in Server-Timing how they were served, and how long the origin took: for everybody who may read the page's own fields.";
            "show_tags", BOOLEAN, "false", "Whether clients see the fields with surrogate keys (`Surrogate-Key`, `Cache-Tags`, `xkey` and their like).";
            "includes", TABLE, "none", "Pages that are put together of others: see `[site.includes]`.";
            "compress", "\"off\", \"stored\" or \"all\"", "\"stored\"", "Which bodies are coded, as `[compression]` says: those that are stored, or `all`, those that pass to one client too (see the guide on BREACH first). With `off` no body is changed: each coding that the origin chooses is a variant.";
            "show_surrogate_control", BOOLEAN, "false", "Whether clients see `Surrogate-Control`: for a site whose clients are caches that read it, too.";
            "error_pages", TABLE, "none", "Files (absolute paths) that are the pages of errors made here, by status: `{ 502 = \"/srv/error/502.html\" }`. Read with the configuration, at most `error_page_bytes` long, their type by their ending. What an origin answers stays as it is.";
            "redirect_https", "true, false, 301 or 308", "false", "Whether requests over plain HTTP are redirected to HTTPS; `true` is 308. Those below `/.well-known/acme-challenge/` are not.";
            "guard_spellings", BOOLEAN, "true", "Whether `deny`, `allow`, `respond`, `redirect`, `bypass` and `cache = false` also hold for paths that an origin may take for theirs: with parameters (`/admin;x`, as servlet containers read it), with `%5c` for a slash (as IIS does), and with something behind the name of a script (`/login.php/x`, as Apache does).";
            "hsts", "true, false, a duration or a table", "false", "Strict-Transport-Security (RFC 6797) of responses over HTTPS: `true` is two years; see `[site.hsts]`.";
        };
        keys.append(&mut settings());
        keys
    },
    later: &[],
};

pub(crate) const PURGE: Section = Section {
    title: "[site.purge]",
    about: "Purges over the listeners that readers use: from applications and their plugins. Whoever \
            may not is answered with 403.",
    keys: || {
        keys! {
            "allow", TEXTS, "`[\"127.0.0.0/8\", \"::1\", \"unix:\"]`; with a token from anywhere", "Addresses or networks that may; `unix:` for clients of a unix socket. Whoever has 127.0.0.1 or ::1 here also means this machine under its own public address. With a token as well, both must be right. A request that a proxy passed on which is not among `trusted_proxies` comes from nowhere.";
            "token", "a string", "none", "What a purge must bring along, in `Authorization: Bearer`, `X-Purge-Token`, `X-Purge-Key` or `Fastly-Key`.";
            "dialects", TEXTS, "the presets', or \"purge\"", "How purges are said: `purge`, `nginx-helper`, `magento`, `drupal`, `foshttpcache`, `shopware`, `souin`, `fastly`, `squid`, `api-platform`, `typo3`, `plone`. The guide on purging says which is whose.";
            "group", "a string", "none", "Sites with the same word here belong together: a purge by tag, expression or all of one is for all of them, as far as each takes it.";
        }
    },
    later: &[],
};

pub(crate) const INCLUDES: Section = Section {
    title: "[site.includes]",
    about: "Pages that are put together of others. A fragment is asked for as a client would: it has \
            the routes, the cache and the origins of its site, the page's cookies and header \
            fields, and a lifetime of its own.",
    keys: || {
        keys! {
            "esi", "\"announced\", \"html\" or false", "\"announced\"", "Pages that are read for Edge Side Includes (`<esi:include src=\"/cart\"/>`): those of which the origin says so (`Surrogate-Control: content=\"ESI/1.0\"`), also every page in HTML, or none. Origins are told that they may say so by `Surrogate-Capability`.";
            "ssi", BOOLEAN, "false", "Whether pages in HTML have server-side includes as nginx reads them (`<!--# include virtual=\"/cart\" -->`).";
            "hosts", TEXTS, "none", "Hosts of other sites of this configuration that a page may name. Cookies and credentials are not sent there. A server that is no site's origin is never asked.";
            "cookies", TEXTS, "none", "Names of cookies that variables of a page may tell (`$(HTTP_COOKIE{group})`, SSI's `$cookie_group`), as far as the site's `cookies` leave them. No page can read any other, whoever has written it.";
            "on_error", "\"leave_out\" or \"break\"", "\"leave_out\"", "Where a fragment is missing that has no `alt` and no `onerror`: the page goes on without it, or ends there, its connection with it.";
        }
    },
    later: &[],
};

/// `[purge]` of a preset.
pub(crate) const PRESET_PURGE: Section = Section {
    title: "[purge]",
    about: "",
    keys: || {
        let mut keys = (PURGE.keys)();
        keys.retain(|key| key.name == "dialects");
        keys
    },
    later: &[],
};

/// The keys that say what a route is for.
fn scope() -> Vec<Key> {
    keys! {
        "path", TEXTS, "every path", "`/exact`, `/prefix/*`, `*.suffix`, a glob (`*` and `?` within a segment, `**` across), or `~ regex` (`~*` for any case). Matched against the path without percent-encoding and dot segments.";
        "method", TEXTS, "every method", "Methods, in capitals.";
        "name", "a string", "its path", "What logs and `larder explain` call it.";
    }
}

pub(crate) const ROUTE: Section = Section {
    title: "[[site.route]]",
    about: "Other settings for some requests of a site. The first route that matches counts, in \
            the order of the file. A route has its site's settings and changes what it names: \
            `allow`, `deny` and single values replace, `ttl` and header changes replace by status \
            and name, other lists add.",
    keys: || [scope(), settings()].concat(),
    later: &[("vcl", "a VCL is a whole site's: see `[[site]]`")],
};

/// Where answers come from and what visitors there are, which only a site can know.
const PLACES: [&str; 7] =
    ["origin", "files", "page_cache", "rate", "concurrent", "basic_auth", "forward_auth"];

/// A preset's file: a site without what only a site can know.
pub(crate) const PRESET: Section = Section {
    title: "a preset",
    about: "",
    keys: || {
        let mut keys = keys! {
            "route", "a list of tables", "none", "";
            "purge", TABLE, "none", "";
            "no_scripts", TEXTS, "none", "";
            "includes", TABLE, "none", "";
        };
        keys.extend(settings().into_iter().filter(|key| !PLACES.contains(&key.name)));
        keys
    },
    later: &[],
};

/// A route of a preset's file.
pub(crate) const PRESET_ROUTE: Section = Section {
    title: "[[route]]",
    about: "",
    keys: || {
        let mut keys = [scope(), settings()].concat();
        keys.retain(|key| !PLACES.contains(&key.name));
        keys
    },
    later: &[],
};

/// Keys about the serving of files, wherever the files are.
fn files() -> Vec<Key> {
    keys! {
        "hide", TEXTS, "\"default\"", "Names of files and directories that are never shown: `*` for any bytes, `?` for one, any case. `default` stands for the list in the guide on files. Names that begin with a dot are always hidden, `/.well-known/` apart.";
        "types", "a table such as { css = \"text/css\" }", "built in", "Content types by the end of a name; `\"*\"` for all that are not known, otherwise `application/octet-stream`.";
        "charset", "a string", "none", "Added to the Content-Type of texts, such as `utf-8`.";
        "precompressed", "`br`, `zstd`, `gzip`, or a list of them", "none", "Codings (`br`, `zstd`, `gzip`) of which a file beside the one asked for, `x.css.br`, `x.css.zst` or `x.css.gz`, stands for it where the client takes it; the most wanted first.";
        "cache_control", "a string, or a table such as { \"image/*\" = \"max-age=60\" }", "none", "Cache-Control of the files. In a table by type (`text/css`, `image/*`) or name (`*.css`, `*`); the first that fits counts.";
        "expires", DURATION, "none", "The same as `cache_control = \"max-age=...\"` of so many seconds, for what `cache_control` does not speak of.";
    }
}

pub(crate) const FILES: Section = Section {
    title: "[site.files]",
    about: "Files of a directory, when more than its path is to be said; `[site.route.files]` for one route. \
            A path alone is `alias` in a route for one `/prefix/*`, and `root` everywhere else.",
    keys: || {
        let mut keys = keys! {
            "root", "a path", "none", "The directory; the whole path of a request is looked for in it.";
            "alias", "a path", "none", "The directory; what stands before the `*` of the route's path is taken off first. Instead of `root`.";
            "index", TEXTS, "\"index.html\"", "Names of a directory's own file, the most wanted first. Directories are not listed.";
            "linked", TEXTS, "none", "Directories outside of this one that links in it may lead into.";
        };
        keys.append(&mut files());
        keys
    },
    later: &[],
};

pub(crate) const ORIGIN_FILES: Section = Section {
    title: "[origin.files]",
    about: "How files in the `root` of a FastCGI origin that are no scripts are served.",
    keys: files,
    later: &[],
};

pub(crate) const CACHE: Section = Section {
    title: "[site.cache]",
    about: "How long responses are good for that do not say so; `[site.route.cache]` for one route.",
    keys: || {
        keys! {
            "ttl", "a duration, or a table such as { 200 = \"1s\", 4xx = \"1m\" }", "none", "Lifetime of responses that name none, from 100ms up, by status: `2xx` for a class, `any` for all; `0s` for none. A duration alone is for 200, 301 and 302, as in nginx.";
            "heuristic", DURATION, "\"1d\"", "Longest lifetime guessed from Last-Modified; `0s` for no guess.";
            "heuristic_html", DURATION, "\"10m\"", "The same of pages in HTML, where it is shorter; 1d in the rfc profile. Nothing is guessed beside `Pragma: no-cache`.";
            "stale_while_revalidate", DURATION, "\"10s\"", "How long past its lifetime a response is served while one fetch refreshes it (grace); 0 in the rfc profile.";
            "stale_if_error", DURATION, "\"1d\"", "How long past its lifetime a response stands in for an error of the origin; 0 in the rfc profile.";
            "stale_if_unreachable", DURATION, "\"1d\"", "How long past its lifetime a response is served while the origin is out of reach.";
            "drop_set_cookie", BOOLEAN, "false", "Whether Set-Cookie is removed from responses that the origin marked as shared and gave a lifetime (`public, max-age=60`), so that they are stored; otherwise Set-Cookie keeps a response from being stored.";
            "dictionary", "a pattern of paths such as \"/js/app.*.js\"", "none", "Adds `Use-As-Dictionary` with this pattern to responses that are stored, with 200 and without such a field: clients may have later ones that match it as what differs from them (RFC 9842).";
            "key_headers", TEXTS, "none", "Header fields of requests whose values are part of the cache key.";
            "match_type", BOOLEAN, "false", "Whether only what has the Content-Type that its path's suffix stands for is stored (`.css` as `text/css`), and nothing below a path with `;` or an escaped delimiter: for rules that go by suffix.";
            "match_headers", TEXTS, "none", "Header fields that a response must have with the value that its request has, to be stored: an application that names the key it has made an answer for (Magento's `X-Magento-Cache-Id`). Requests without the field are not concerned.";
            "not_stored", TEXTS, "none", "Statuses of responses that are never stored, whatever the origin says: `404`, `5xx`, `any`.";
            "browsers", "\"as_said\" or \"never\"", "\"as_said\"", "What browsers may do with responses that are not marked `private`: what these say, or `never` store them (`Cache-Control: no-store, no-cache, must-revalidate, max-age=0`), where purges reach this cache and no browser.";
            "store", "\"memory\", \"disk\" or \"both\"", "\"both\" where there is a `[disk]`", "Where responses are kept: `memory` alone; on `disk` as soon as memory has no room for them, whatever `[disk] admission` says; or in `both`, as that says.";
            "request_directives", "\"ignore\" or \"honour\"", "\"ignore\"", "Whether a client's Cache-Control (no-cache, no-store, max-age, min-fresh, max-stale) counts; `honour` in the rfc profile. only-if-cached always does.";
        }
    },
    later: &[],
};

pub(crate) const COOKIES: Section = Section {
    title: "[site.cookies]",
    about: "Cookies of requests. What is left makes a request personal: it gets only what the origin \
            marked as shared (`public`, `s-maxage`).",
    keys: || {
        keys! {
            "strip", TEXTS, "none", "Cookies removed from cacheable requests: a name, `prefix*`, `*suffix` or `*part*`.";
            "strip_tracking", BOOLEAN, "true", "Whether known cookies of scripts (`_ga*`, `_fbp`, `sbjs_*`, ...) are removed, and those of balancers and guards against robots (`SERVERID`, `__cf_bm`, ...) do not count: these go with requests that pass or are personal, and are removed from others. False in the rfc profile.";
            "keep", TEXTS, "all", "The only cookies that count, beside those of `key`: a request with others is not personal for them, and they are removed from requests that are looked up. What passes keeps all its cookies.";
            "key", TEXTS, "none", "Cookies whose values are part of the cache key; they do not make a request personal.";
        }
    },
    later: &[],
};

pub(crate) const QUERY: Section = Section {
    title: "[site.query]",
    about: "Query parameters of cacheable requests. What is removed from the key is removed from the \
            forwarded request too.",
    keys: || {
        keys! {
            "strip", TEXTS, "none", "Parameters removed: a name, or `prefix*`.";
            "strip_tracking", BOOLEAN, "true", "Whether known tracking parameters (`utm_*`, `gclid`, ...) are removed; false in the rfc profile.";
            "sort", BOOLEAN, "false", "Whether parameters are put in order of their names.";
            "ignore", BOOLEAN, "false", "Whether the whole query is removed.";
        }
    },
    later: &[],
};

pub(crate) const BYPASS: Section = Section {
    title: "[site.bypass]",
    about: "Requests that go past the cache, as seen after cookies and parameters were removed.",
    keys: || {
        keys! {
            "path", TEXTS, "none", "Paths, as in `[[site.route]]`.";
            "cookie", TEXTS, "none", "Names of cookies, `prefix*`, `*suffix` or `*part*`.";
            "query", "true, false, a string, a list of strings, or a table of values", "none", "Names of parameters, or `prefix*`; `true` for every request with a query, `false` for none (a route forgets what its site says). In a table, each with the values it must have (whole, `prefix*`, or `~ regex` as in paths), or `true` for any.";
            "header", "a string, a list of strings, or a table of values", "none", "Names of header fields; in a table, each with the value it must have, or `true` for any.";
            "unless", TEXTS, "none", "Header fields: a request with one of them is passed for its path alone, since it says by it what its answer is for. The field belongs into `cache.key_headers`.";
        }
    },
    later: &[],
};

const HEADER_KEYS: fn() -> Vec<Key> = || {
    keys! {
        "set", "a table of names and values", "none", "Fields set, replacing those of the same name.";
        "unset", TEXTS, "none", "Fields removed.";
    }
};

pub(crate) const REQUEST_HEADERS: Section = Section {
    title: "[site.request_headers]",
    about: "Changes to requests on their way to the origin.",
    keys: HEADER_KEYS,
    later: &[],
};

pub(crate) const RESPONSE_HEADERS: Section = Section {
    title: "[site.response_headers]",
    about: "Changes to responses on their way to the client.",
    keys: HEADER_KEYS,
    later: &[],
};

pub(crate) const REDIRECT: Section = Section {
    title: "[site.redirect]",
    about: "A redirect. A string alone is its `to`.",
    keys: || {
        keys! {
            "to", "a URL", "required", "Where to, with `$host`, `$path`, `$query` (question mark included) and `$$` for a dollar sign.";
            "status", COUNT, "302", "301, 302, 303, 307 or 308.";
        }
    },
    later: &[],
};

pub(crate) const RESPOND: Section = Section {
    title: "[site.respond]",
    about: "A fixed response.",
    keys: || {
        keys! {
            "status", COUNT, "200", "Its status.";
            "headers", "a table of names and values", "none", "Its fields; with a body and no Content-Type it is plain text.";
            "body", "a string", "\"\"", "Its body.";
        }
    },
    later: &[],
};

/// Every section, in the order of the reference page.
pub(crate) const SECTIONS: &[&Section] = &[
    &TOP,
    &MEMORY,
    &DISK,
    &DISK_VOLUME,
    &RUN,
    &ADMIN,
    &HEALTH,
    &METRICS,
    &VARNISH_CLI,
    &HTCP,
    &CLUSTER,
    &NEIGHBOUR,
    &TRACING,
    &FIELD_FILE,
    &COMPRESSION,
    &TLS,
    &ACME,
    &EAB,
    &ACCESS_LOG,
    &ERROR_LOG,
    &LOG_RING,
    &ORIGIN,
    &SERVER,
    &ORIGIN_TLS,
    &PROBE,
    &EJECT,
    &ORIGIN_FILES,
    &SITE,
    &SITE_TLS,
    &HSTS,
    &PURGE,
    &INCLUDES,
    &ROUTE,
    &RATE,
    &CONCURRENT,
    &BASIC_AUTH,
    &FORWARD_AUTH,
    &FILES,
    &CACHE,
    &COOKIES,
    &QUERY,
    &BYPASS,
    &REQUEST_HEADERS,
    &RESPONSE_HEADERS,
    &REDIRECT,
    &RESPOND,
    &LIMITS,
];

/// The description of a key of the file's top, or of a key of a table there, such as `memory.size`;
/// empty for an unknown name.
pub fn about(name: &str) -> &'static str {
    let (section, name) = match name.split_once('.') {
        Some((table, name)) => {
            let named = |section: &&&Section| section.title.trim_matches(['[', ']']) == table;
            (SECTIONS.iter().find(named).copied(), name)
        }
        None => (Some(&TOP), name),
    };
    section.and_then(|section| section.key(name)).map_or("", |key| key.about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_described() {
        for section in SECTIONS {
            let keys = (section.keys)();
            for (at, key) in keys.iter().enumerate() {
                assert!(keys[..at].iter().all(|k| k.name != key.name), "{}", key.name);
                assert!(key.about.ends_with('.') && !key.takes.is_empty(), "{}", key.name);
                assert!(section.later.iter().all(|(name, _)| *name != key.name), "{}", key.name);
            }
        }
    }
}
