//! `[[site]]` and `[[site.route]]`.

use std::collections::BTreeMap;

use policy::headers::FieldName;
use policy::rules::{Profile, RouteRules, SiteRules};
use policy::vary::DEVICE_FIELD;

use super::answers::answers_all;
use super::includes::{INCLUDES, includes};
use super::presets::Presets;
use super::routes::{ROUTE, route};
use super::settings::SETTINGS_ROWS;
use super::{
    authentication, compression, crawlers, error_pages, hsts, ignored_fields, origins, purge,
    rewrites, setting_locations, settings, sticky, tls, warm,
};
use crate::keys::{BOOLEAN, Mark, TABLE, TEXTS};
use crate::model::{Config, SiteConfig};
use crate::reader::{Reader, SettingValue, TextRange, TomlTable};
use crate::rows::{self, Row, put, rows, section};

section! {
    pub(crate) SITE, SITE_ROWS: Draft, SETTINGS_ROWS, ROUTES_ROWS; "[[site]]",
    "A site: its hosts, and the rules for their requests.";
    #BesideVcl @needed("a site without hosts", "add `host = [\"example.com\"]`, or `host = \"*\"` for every host")
    "host", TEXTS, "required", "Hosts of the site: `example.com`, `*.example.com` for all hosts below it, `*` for all hosts of no other site.",
        |r, item, to| to.site.hosts = hosts(r, item);
    "profile", "\"safe\" or \"rfc\"", "the top's", "Defaults of the site.",
        |r, item, to| put(&mut to.site.rules.profile, r.word(item, &PROFILES));
    "preset", TEXTS, "none", "Predefined rules for a kind of site; `larder preset list` lists them. The site's own settings take precedence, and its routes come first. Of several presets, the settings of the later take precedence, but the routes of the earlier come first.",
        |r, item, to| {
            to.presets = Presets::read(r, item, to.site.rules.profile);
            to.site.presets = to.presets.names();
            to.site.includes = to.presets.includes.clone();
            to.site.rules.crawlers = to.presets.crawlers.clone();
            to.site.purge = purge::of_presets(to.presets.dialects);
        };
    #BesideVcl "vcl", path site.vcl, "the top's", "VCL file of the site. Beside an `origin`, a preset, routes or other settings its subroutines run before and after the steps of these. Beside `host`, `tls`, `warm`, `rate`, `concurrent`, `basic_auth`, `forward_auth` and `access_log` alone it decides about every request, and declares its backends.";
    #BesideVcl @table(tls::SITE_TLS) "tls", TABLE, "none", "Certificates of the site, and client certificates: see `[site.tls]`.",
        |r, item, to| to.site.tls = tls::site(r, item);
    @table(purge::PURGE) "purge", "a table or false", "none", "Who may purge the site, and how: see `[site.purge]`. With `false`, no client may, whatever its presets contain.",
        |r, item, to| {
            to.site.purge = purge::site(r, item, to.presets.dialects);
            to.site.by_htcp = purge::by_htcp(item, to.site.purge.as_ref());
        };
    "mode", "\"cache\" or \"observe\"", "\"cache\"", "Whether the cache serves requests. `observe`: every request goes to the origin as it came, and Larder only counts what the cache would have done with it, for a live site before its cache is switched on.",
        |r, item, to| put(&mut to.site.observes, r.word(item, &MODES));
    "server_timing", boolean site.server_timing, "false", "Whether responses have the field Server-Timing: how Larder answered, and how long the origin took. Everybody who can read the page's fields can read this one.";
    "show_tags", boolean site.shows_tags, "false", "Whether clients get the fields with surrogate keys (`Surrogate-Key`, `Cache-Tags`, `xkey` and similar).";
    @table(INCLUDES) "includes", TABLE, "none", "Pages assembled from fragments (ESI, SSI): see `[site.includes]`.",
        |r, item, to| includes(r, item, &mut to.site.includes);
    @table(crawlers::SITE_CRAWLERS) "crawlers", TABLE, "none", "Settings for whole classes of clients, such as search engines and crawlers of language models: see `[site.crawlers]`.",
        |r, item, to| crawlers::of_site(r, item, &mut to.site.rules.crawlers);
    #BesideVcl @table(warm::WARM) "warm", TABLE, "none", "Responses that are fetched before a visitor asks for them: see `[site.warm]`.",
        |r, item, to| warm::of_site(r, item, &mut to.site.warm);
    "compress", "\"off\", \"stored\" or \"all\"", "\"stored\"", "Which bodies Larder compresses, according to `[compression]`. `stored`: bodies that it stores. `all`: also bodies that pass to one client; see the guide on BREACH first. `off`: none, and each coding that the origin chooses is a variant.",
        |r, item, to| put(&mut to.site.compress, compression::of_site(r, item));
    "show_surrogate_control", boolean site.shows_surrogate_control, "false", "Whether clients get `Surrogate-Control`: for sites whose clients are caches that read it.";
    "error_pages", TABLE, "none", "Files (absolute paths) for errors that Larder itself answers, by status: `{ 502 = \"/srv/error/502.html\" }`. Their maximum size is the limit `error_page_bytes`; the file's ending gives the type. Larder reads the files with the configuration. `intercept_errors` has them replace errors of origins, too.",
        |r, item, to| to.site.error_pages = error_pages::of_site(r, item);
    "redirect_https", "true, false, 301 or 308", "false", "Whether Larder redirects requests over plain HTTP to HTTPS. `true` means status 308. Requests below `/.well-known/acme-challenge/` are not redirected.",
        |r, item, to| to.site.rules.redirect_https = tls::redirect(r, item, to.https_port);
    "guard_spellings", BOOLEAN, "true", "Whether `deny`, `allow`, `respond`, `redirect`, `bypass` and `cache = false` also apply to paths that an origin may read as theirs. These are: parameters (`/admin;x`, servlet containers), `%5c` for a slash (IIS), and a suffix to a script (`/login.php/x`, Apache).",
        |r, item, to| to.site.rules.opaque_spellings = r.boolean(item) == Some(false);
    @table(hsts::HSTS) "hsts", "true, false, a duration or a table", "false", "Whether responses over HTTPS have Strict-Transport-Security (RFC 6797). `true` means two years; see `[site.hsts]`.",
        |r, item, to| to.site.hsts = hsts::hsts(r, item);
}

/// Read last, as routes start from their site's settings.
const ROUTES_ROWS: &[Row<Draft>] = rows! {
    @table(ROUTE) "route", "a list of tables", "none", "Settings for some requests of the site: see `[[site.route]]`.",
        routes;
};

/// A site while it is read.
struct Draft {
    site: SiteConfig,
    presets: Presets,
    https_port: Option<u16>,
    /// A program decides on its fetches.
    decided: bool,
    /// The countries of clients are known.
    has_countries: bool,
}

/// The keywords of `mode`, and if the site only observes.
const MODES: [(&str, bool); 2] = [("cache", false), ("observe", true)];

/// The timeout for an origin's head.
const HEAD_TIME: &str = "first_byte_timeout";

/// Reads every `[[site]]`.
pub(super) fn sites(r: &mut Reader, item: &SettingValue<'_>, config: &mut Config) {
    let tables = r.tables(item, &SITE);
    if item.each().is_empty() {
        r.error(item.span.clone(), "`site` is an empty list");
    }
    check_hosts(r, &tables);
    let whole = item.table.item("vcl").is_some();
    config.sites = tables.iter().map(|table| site(r, table, config, whole)).collect();
}

/// Reads one site; with `whole`, a program decides for sites without one.
fn site(r: &mut Reader, table: &TomlTable<'_>, config: &Config, whole: bool) -> SiteConfig {
    let rules = SiteRules {
        profile: config.profile,
        trusted_proxies: config.trusted_proxies.clone(),
        client_field: config.client_field.clone(),
        forwarded: config.forwarded,
        ..SiteRules::default()
    };
    let is_beside = table.item("vcl").is_some() && has_settings(table);
    let mut draft = Draft {
        site: SiteConfig { rules, is_beside, by_htcp: true, ..SiteConfig::default() },
        presets: Presets::default(),
        https_port: tls::https_port(&config.listen),
        decided: !is_beside && (whole || table.item("vcl").is_some()),
        has_countries: config.geoip.is_some(),
    };
    if draft.decided {
        only_beside_vcl(r, table);
    }
    rows::read(r, table, SITE_ROWS, &mut draft);
    let mut settings = draft.presets.settings(r);
    setting_locations::note_places(r, table, SITE_ROWS, &mut settings);
    settings::read(r, table, &mut settings);
    draft.site.rules.settings = settings;
    check(r, table, &mut draft);
    rows::read(r, table, ROUTES_ROWS, &mut draft);
    draft.presets.add_routes(r, &mut draft.site.rules, table.item(HEAD_TIME).is_some());
    if let Some(item) = table.item("crawlers") {
        crawlers::check(r, &item, &draft.site.rules);
    }
    if is_beside {
        not_compared(r, table, &draft.site);
        if let Some(item) = table.item("warm") {
            r.error(item.span, "`warm` is not for a site with a VCL beside settings").help =
                Some("its subroutines run for clients only".to_owned());
        }
    }
    draft.site.rules.divide_by_class();
    let Draft { mut site, presets, .. } = draft;
    site.rules.scripts = r.origins.script_ends();
    sticky::apply(&r.origins, &mut site.rules);
    origins::drop_own_mirrors(&r.origins, &mut site.rules);
    r.origins.exclude_script_directories(&presets.no_scripts);
    let named = std::mem::take(&mut r.origins.site);
    (site.origins, site.files, site.users) = (named.indices, named.roots, named.users);
    site.redirect_maps = named.redirect_maps;
    site
}

/// Reports that the hits of a site with a VCL beside its settings are not compared: the requests of
/// a comparison run no subroutines.
fn not_compared(r: &mut Reader, table: &TomlTable<'_>, site: &SiteConfig) {
    let routes = site.rules.routes.iter().map(|route| &route.settings);
    let mut all = routes.chain([&site.rules.settings]);
    let is_compared = all.any(|own| own.verify_one_in.is_some_and(|one_in| one_in > 0));
    if !site.observes && !is_compared {
        return;
    }
    let name = if site.observes { "mode" } else { "cache.verify" };
    let item = table.item("mode").filter(|_| site.observes).or_else(|| table.item("vcl"));
    if let Some(item) = item {
        r.error(item.span, format!("`{name}` is not for a site with a VCL")).help =
            Some("comparisons with the origin run none of its subroutines".to_owned());
    }
}

/// The settings of a site that a VCL would replace, if it decided alone.
fn settings_of(table: &TomlTable<'_>) -> Vec<(String, TextRange)> {
    let keys = (SITE.keys)();
    let is_setting =
        |name: &str| keys.iter().any(|key| key.name == name && !key.is(Mark::BesideVcl));
    let named = table.names().into_iter().filter(|(name, _)| is_setting(name));
    named.map(|(name, span)| (name.to_owned(), span)).collect()
}

/// Returns true if the site has settings that decide, beside which a VCL does not decide alone.
fn has_settings(table: &TomlTable<'_>) -> bool {
    !settings_of(table).is_empty()
}

/// Reports settings that the top's VCL replaces.
fn only_beside_vcl(r: &mut Reader, table: &TomlTable<'_>) {
    for (name, span) in settings_of(table) {
        r.error(span, format!("`{name}` beside the top's VCL, which decides it")).help = Some(
            "name a VCL in the site itself, whose subroutines run before and after the steps of \
             its settings"
                .to_owned(),
        );
    }
}

fn hosts(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    if item.each().is_empty() {
        r.error(item.span.clone(), "`host` names no host").help =
            Some("write \"*\" for every host".to_owned());
    }
    let mut hosts = Vec::new();
    for (text, item) in r.texts(item) {
        match policy::hosts::canonical(text) {
            Some(host) => hosts.push(host),
            None => {
                let help = host_help(text);
                r.error(item.span, format!("`{text}` is not a host name")).help = Some(help);
            }
        }
    }
    hosts
}

/// Reports hosts that occur twice.
fn check_hosts(r: &mut Reader, sites: &[TomlTable<'_>]) {
    let mut taken: BTreeMap<String, TextRange> = BTreeMap::new();
    let items = sites.iter().filter_map(|table| table.item("host"));
    for item in items.flat_map(|item| item.each()) {
        let host = item.value.as_str().and_then(policy::hosts::canonical);
        let Some(host) = host else { continue };
        if let Some(first) = taken.get(&host) {
            let related = Some((first.clone(), "here for the first time".to_owned()));
            r.error(item.span, format!("`{host}` is a site's host already")).related = related;
        } else {
            taken.insert(host, item.span);
        }
    }
}

fn host_help(text: &str) -> String {
    let bare = text.trim_start_matches("http://").trim_start_matches("https://");
    let bare = bare.split(['/', ':']).next().unwrap_or(bare);
    if bare != text && policy::hosts::canonical(bare).is_some() {
        format!("a host has no scheme, port or path: \"{bare}\"")
    } else {
        "write \"example.com\", \"*.example.com\" for all below it, or \"*\" for every host"
            .to_owned()
    }
}

/// Reports settings of a site that contradict each other.
fn check(r: &mut Reader, table: &TomlTable<'_>, draft: &mut Draft) {
    let profile = draft.site.rules.profile;
    let settings = &mut draft.site.rules.settings;
    ignored_fields::check(r, table, settings, profile);
    error_pages::check(r, table, &settings.intercepted, &draft.site.error_pages);
    if table.item(HEAD_TIME).is_none() {
        r.origins.keep_times(settings);
    }
    rewrites::check_site(r, settings, &table.span);
    if draft.decided {
        authentication::check_beside_vcl(r, table, settings);
    }
    let has = |name: &&'static str| table.item(name).is_some();
    let is_answered = draft.decided || ["origin", "files"].iter().any(has);
    if !is_answered && !answers_all(table) {
        let beside = settings_of(table).into_iter().next().filter(|_| has(&"vcl"));
        r.error(table.span.clone(), "a site without origin").help = Some(match beside {
            Some((name, _)) => format!(
                "beside `{name}` the VCL decides nothing alone: add the `origin` that the settings \
                 are for, or remove them"
            ),
            None => {
                "add `origin = \"http://127.0.0.1:8080\"`, or the name of an [[origin]]".to_owned()
            }
        });
    }
    draft.presets.check_against(r, table, settings, is_answered);
}

/// Reads the routes of a site.
fn routes(r: &mut Reader, item: &SettingValue<'_>, draft: &mut Draft) {
    let rules = &mut draft.site.rules;
    let has_origin = draft.decided || item.table.item("origin").is_some();
    let answers = answers_all(&item.table);
    let mut earlier: Vec<(RouteRules, TextRange)> = Vec::new();
    for table in r.tables(item, &ROUTE) {
        let before = r.found.len();
        let (mut route, span) = route(r, &table, rules.settings.inherit());
        let sound = r.found.len() == before;
        settings::read(r, &table, &mut route.settings);
        ignored_fields::check(r, &table, &route.settings, rules.profile);
        error_pages::check(r, &table, &route.settings.intercepted, &draft.site.error_pages);
        if ![&table, &item.table].iter().any(|table| table.item(HEAD_TIME).is_some()) {
            r.origins.keep_times(&mut route.settings);
        }
        let answered = route.settings.answer.is_some() || route.settings.files.is_some();
        if answers && !answered && !has_origin && table.item("origin").is_none() {
            r.error(table.span.clone(), "a route without origin, in a site that has none");
        }
        // A route without its unreadable pattern would match everything.
        if sound {
            warn_of_shadowed(r, &earlier, &route, &span);
            earlier.push((route, span));
        }
    }
    refuse_told_fields(r, rules, &earlier);
    if !draft.has_countries {
        refuse_countries(r, &earlier);
    }
    earlier.iter().for_each(|(route, span)| rewrites::check_route(r, route, span));
    rules.routes = earlier.into_iter().map(|(route, _)| route).collect();
}

/// Reports routes for countries while there is no database of them.
fn refuse_countries(r: &mut Reader, routes: &[(RouteRules, TextRange)]) {
    for (route, span) in routes.iter().filter(|(route, _)| route.scope.when.ask_for_country()) {
        let message = format!("`{}` is for countries, without `geoip`", route.name);
        r.error(span.clone(), message).help = Some(
            "`geoip = \"/var/lib/GeoIP/GeoLite2-Country.mmdb\"` at the top of the file".to_owned(),
        );
    }
}

/// Says which conditions are about fields that Larder itself fills in, once a route is chosen:
/// what a client sends in their place is removed.
fn refuse_told_fields(r: &mut Reader, rules: &SiteRules, routes: &[(RouteRules, TextRange)]) {
    let all = routes.iter().map(|(route, _)| &route.settings).chain([&rules.settings]);
    let told: Vec<&FieldName> = all
        .flat_map(|settings| {
            let user = settings.basic_auth.iter().filter_map(|auth| auth.user_field.as_ref());
            user.chain(settings.forward_auth.iter().flat_map(|auth| &auth.copy))
        })
        .chain(rules.client_field.named())
        .collect();
    let told_devices = routes
        .iter()
        .map(|(route, _)| &route.settings)
        .chain([&rules.settings])
        .any(|settings| settings.vary.devices.is_some());
    let is_device = |own: &FieldName| told_devices && own.is_spelt(DEVICE_FIELD.as_bytes());
    for (route, span) in routes {
        let fields = route.scope.when.fields();
        let is_told =
            |own: &FieldName| is_device(own) || told.iter().any(|t| t.is_spelt(own.as_bytes()));
        let bad = fields.into_iter().find(|own| is_told(own));
        if let Some(field) = bad {
            let message =
                format!("`when` of `{}` looks at `{field}`, which Larder sets", route.name);
            r.error(span.clone(), message).help =
                Some("a client's own field of this name is removed before".to_owned());
        }
    }
}

fn warn_of_shadowed(
    r: &mut Reader,
    earlier: &[(RouteRules, TextRange)],
    route: &RouteRules,
    span: &TextRange,
) {
    let Some((first, place)) = earlier.iter().find(|(first, _)| first.covers(route)) else {
        return;
    };
    let related = (place.clone(), format!("`{}` matches first", first.name));
    let warning = r.warning(span.clone(), format!("`{}` is never reached", route.name));
    warning.related = Some(related);
    warning.help = Some("the first route that matches counts: put it further up".to_owned());
}

/// The keywords of `profile`.
pub(crate) const PROFILES: [(&str, Profile); 2] = [("safe", Profile::Safe), ("rfc", Profile::Rfc)];
