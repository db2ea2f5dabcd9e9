//! The table of parts of pages that a test cannot simply run: samples, with the command that prints
//! them, and commands that need another machine, each with its reason. An entry that no page needs
//! is a failure.

/// The test of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sample {
    /// The command prints it, with any status; `{}` in it is the sample itself.
    Printed(&'static str),
    /// The command reads it, and succeeds.
    Taken(&'static str),
    /// Untested, for this reason.
    Listed(&'static str),
}

use Sample::{Listed, Printed, Taken};

/// Blocks that are neither settings nor commands: the page, the block's start, its test.
pub(crate) const SAMPLES: &[(&str, &str, Sample)] = &[
    (
        "advise.md",
        "100 requests over",
        Listed("tests/operations/advise.rs has findings in this form"),
    ),
    ("admin.md", "scrape_configs:", Listed("lab/watchers/run.sh has Prometheus read both ways")),
    ("admin.md", "larder: admin: uid", Printed("larder purge --all >/dev/null; cat \"$SAID\"")),
    (
        "behind-a-balancer.md",
        "livenessProbe:",
        Listed("tests/origins/health.rs asks as a kubelet, from another network namespace"),
    ),
    (
        "behind-a-balancer.md",
        "backend larder",
        Listed("lab/watchers/run.sh has HAProxy take a daemon out and back"),
    ),
    (
        "behind-a-balancer.md",
        "larder: not ready",
        Listed("tests/origins/health.rs takes origins away and brings them back"),
    ),
    ("compression.md", "Use-As-Dictionary:", Printed("curl -sI https://example.com/js/app.v1.js")),
    (
        "crawlers.md",
        "# class name pattern",
        Taken(
            "printf '%s\\n' '{}' > own.list; \
             printf '[crawlers]\\nfile = \"%s/own.list\"\\n' \"$PWD\" > own.toml; \
             printf '[[site]]\\nhost = \"*\"\\n' >> own.toml; \
             printf 'origin = \"http://127.0.0.1:9\"\\ncrawlers.robots = true\\n' >> own.toml; \
             larder check own.toml",
        ),
    ),
    (
        "why-not-cached.md",
        "variants         38",
        Listed("tests/cache/vary.rs has `explain` say it of pages with variants"),
    ),
    (
        "verify.md",
        "observe   example.com",
        Listed("tests/cache/verify.rs has a daemon say both lines"),
    ),
    (
        "verify.md",
        "{\"event\": \"page-differs\"",
        Listed("tests/cache/webhook.rs receives the message"),
    ),
    ("esi.md", "<html><body>", Printed("curl -s $ORIGIN/fragments")),
    ("esi.md", "Surrogate-Control:", Printed("curl -sI $ORIGIN/fragments")),
    (
        "esi.md",
        "  page       a page with",
        Printed(
            "curl -s https://example.com/news https://example.com/fragments >/dev/null; \
                 larder explain https://example.com/fragments",
        ),
    ),
    (
        "from-nginx.md",
        "/\n/blog/",
        Listed("tests/operations/import.rs compares two daemons by such a list"),
    ),
    ("getting-started.md", "larder: listening on", Printed("cat \"$SERVED\"")),
    (
        "operating.md",
        "larder: origin app, server",
        Listed("tests/origins/origins.rs takes a server away and brings it back"),
    ),
    (
        "operating.md",
        "error: `$hos`",
        Printed(
            "printf '[access_log]\\nformat = %s\\n[[site]]\\nhost = \"*\"\\norigin = \"http://a\"\\n' \
             \"'\\$hos \\\"\\$request\\\"'\" > named.toml; \
             larder check named.toml 2>&1 | sed s,named.toml,/etc/larder/larder.toml,",
        ),
    ),
    (
        "operating.md",
        "[28/Nov/2026:07:40:54 +0000] [notice]",
        Listed("tests/operations/logs.rs reads such lines from a file"),
    ),
    ("php-fpm.md", "unix:/run/php", Listed("tests/origins/php.rs has a PHP-FPM that warns")),
    ("purging.md", "req.http.host ==", Taken("larder purge --ban '{}'")),
    (
        "seeing-into-the-cache.md",
        "* 1000000000007  22/Nov/2026:09:46:40 +0000  MISS 200\n-   request    GET \
         http://example.com/basket\n-   client",
        Printed("curl -s http://example.com/basket >/dev/null; logged 'req.url == \"/basket\"'"),
    ),
    (
        "seeing-into-the-cache.md",
        "* 1000000000007  22/Nov/2026:09:46:40 +0000  MISS 200\n-   request    GET \
         http://example.com/basket\n...",
        Listed("--headers is from now on: tests/operations/observe_tools.rs follows it"),
    ),
    (
        "seeing-into-the-cache.md",
        "larder: this filter",
        Printed("larder log -q 'resp.staus >= 500' 2>&1"),
    ),
    (
        "seeing-into-the-cache.md",
        "* 100000000000c",
        Listed("a background fetch that fails: tests/operations/observe.rs has one"),
    ),
    (
        "seeing-into-the-cache.md",
        "* 100000000000b",
        Printed(
            "curl -s http://shop.example/cart http://shop.example/cart >/dev/null; \
                 logged 'req.host == shop.example and req.url == \"/cart\"'",
        ),
    ),
    ("seeing-into-the-cache.md", "(hit + stale)", Listed("a formula")),
    ("seeing-into-the-cache.md", "rule_files:", Listed("lab/watchers/alerts.sh tests the rules")),
    ("tracing.md", "Server-Timing:", Printed("curl -sI https://example.com/timed")),
    ("vcl.md", "error: two strings", Printed("cd faulty && larder check default.vcl 2>&1")),
    (
        "presets-with-vcl.md",
        "error: `beresp.do_esi`",
        Printed("cd faulty && larder check extra.vcl 2>&1"),
    ),
    ("why-not-cached.md", "add_action(", Listed("WordPress's own PHP; lab/wordpress runs one")),
    (
        "why-not-cached.md",
        "{\"url\"",
        Taken(
            "curl --fail --unix-socket /run/larder/admin.sock \
               http://localhost/api/v1/explain \
               -H 'Content-Type: application/json' -d '{}'",
        ),
    ),
    (
        "rules.md",
        "# old ",
        Taken(
            "cat > moved.txt <<'EOF'\n{}\nEOF\n\
             printf '[[site]]\\nhost = \"*\"\\norigin = \"http://a\"\\n\
             redirect = { map = \"%s\" }\\n' \
             \"$PWD/moved.txt\" > moved.toml; larder check moved.toml",
        ),
    ),
    (
        "warming.md",
        "########",
        Listed("the progress of a large site: crates/tools/src/warm.rs tests its words"),
    ),
];

/// Commands that are not run: their start, and the reason.
pub(crate) const LISTED: &[(&str, &str)] = &[
    ("make ", "builds, tests or packs this tree; CI runs it"),
    ("ls target/package", "what `make package` leaves"),
    ("cargo install", "builds this tree once more"),
    ("larder advise ", "tests/operations/advise.rs runs it over logs and rings of its own"),
    ("larder warm --sitemap", "tests/cache/warming.rs has a site with sitemaps"),
    ("larder warm example.com", "tests/cache/warming.rs has a site with sitemaps"),
    ("larder cluster roll-out", "tests/cluster/cluster_configuration.rs rolls out over five nodes"),
    ("larder cluster configuration", "tests/cluster/cluster_configuration.rs has such nodes"),
    ("larder upgrade", "tests/operations/upgrades.rs replaces daemons"),
    ("larder import --compare", "tests/operations/import.rs compares two daemons"),
    ("sleep 15", "gives a balancer time"),
    ("until curl", "waits for the installed package"),
    ("apt-get install", "changes the machine; xtask's tests look into the package"),
    ("apt install", "changes the machine; xtask's tests look into the package"),
    ("curl http://localhost:8780/", "speaks to the installed package"),
    ("systemctl", "changes the machine's services"),
    ("sudo systemctl", "changes the machine's services"),
    ("systemd-sysusers", "changes the machine's users"),
    ("sudo usermod", "changes the machine's users; lab/package runs it"),
    ("tar xf", "installs below /usr"),
    ("install -", "installs below /usr"),
    ("cp -r share", "installs below /usr"),
    ("sudo install -d -m 700 -o larder", "needs a user that the package makes"),
    ("man ", "shows an installed page; crates/manual tests its text"),
    ("htpasswd ", "asks for a password; tests/guarding/gates.rs has files that it has made"),
    ("ssh ", "needs another machine"),
    ("docker", "needs a container engine and an image"),
    ("skopeo", "needs an image"),
    ("kill -TERM", "ends the daemon; tests/operations/operations.rs does"),
    ("larder serve -a :80 -a :443,https", "tests/vcl/vcl_serve.rs has its certificates"),
    (
        "larder serve --config larder.toml --share-port",
        "tests/operations/second_daemon.rs runs two",
    ),
];

/// Commands that would order a certificate from the real authority: their flags are only parsed.
pub(crate) const ORDERS: &str = "--acme ";

/// Commands that never end: they succeed once they have printed something.
pub(crate) const STREAMS: &[&str] = &["curl -N"];

/// Commands whose output is not compared: the page, the command's start, the reason.
pub(crate) const UNSEEN: &[(&str, &str, &str)] = &[(
    "tls.md",
    "larder cluster status",
    "certificates need an authority: tests/cluster/cluster_secrets.rs has one",
)];

/// Commands with measurements in their output: only the first words of lines are compared.
pub(crate) const HEADS: &[(&str, &str, &str)] = &[
    ("bench.md", "taskset -c 1 larder bench -t", "nginx was measured, which says nothing of hits"),
    ("bench.md", "larder bench quick", "remarks depend on the machine"),
    ("bench.md", "taskset -c 1 larder bench compare", "differences depend on the machine"),
];

/// Settings of programs that `setup.sh basic` does not install.
pub(crate) const FOREIGN: &[(&str, &str)] = &[
    ("caddyfile", "Caddy is not installed by setup.sh"),
    ("logrotate", "logrotate is not installed by setup.sh"),
    ("sysusers", "systemd's; xtask's tests look at the package's own"),
    ("systemd", "systemd's; tests/operations/service_manager.rs hands sockets over"),
];

/// Metrics of nodes that share a configuration, tested by tests/cluster/cluster_configuration.rs,
/// and of a disk, tested by tests/cache/disk_faults.rs.
pub(crate) const ELSEWHERE: &str = "cluster_configuration_info disk_volume_up";
