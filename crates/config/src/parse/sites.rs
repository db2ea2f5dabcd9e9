//! `[[site]]` and `[[site.route]]`.

use std::collections::BTreeMap;

use policy::acl::Net;
use policy::forwarded::ClientField;
use policy::headers::FieldName;
use policy::rules::{Profile, RouteRules, SiteRules};

use super::origins::Origins;
use super::presets::Presets;
use super::routes::{ROUTE, route};
use super::site_origins::SiteOrigins;
use super::{compression, error_pages, hsts, settings, tls};
use crate::keys::{BOOLEAN, Section, TABLE, TEXTS};
use crate::model::SiteConfig;
use crate::reader::{Item, Reader, Span, Table};
use crate::rows::{self, Row, put, rows};

pub(crate) const SITE: Section = Section {
    title: "[[site]]",
    about: "A site: its hosts and what is done with requests for them.",
    keys: || [rows::keys(SITE_ROWS), settings::setting_keys()].concat(),
    ..Section::EMPTY
};

const SITE_ROWS: &[Row<SiteConfig>] = rows! {
    "host", TEXTS, "required", "Its hosts: `example.com`, `*.example.com` for all below it, `*` for every other.";
    "profile", "\"safe\" or \"rfc\"", "the top's", "Its defaults.";
    "preset", TEXTS, "none", "Rules for a kind of site, `larder preset list` names them. What the site says itself wins, its routes come first; of several presets the later wins, the routes of the earlier come first.";
    "vcl", "an absolute path", "the top's", "Its VCL, which decides in the place of all settings but `host`, `tls`, and those that guard it: `rate`, `concurrent`, `basic_auth` and `forward_auth`.";
    "route", "a list of tables", "none", "See `[[site.route]]`.";
    "tls", TABLE, "none", "See `[site.tls]`.";
    "purge", "a table or false", "none", "Who may purge it, and how: see `[site.purge]`; `false` for no one, whatever its presets say.";
    "server_timing", BOOLEAN, "false", "Whether responses say in Server-Timing how they were served, and how long the origin took: for everybody who may read the page's own fields.",
        |r, item, to| put(&mut to.server_timing, r.boolean(item));
    "show_tags", BOOLEAN, "false", "Whether clients see the fields with surrogate keys (`Surrogate-Key`, `Cache-Tags`, `xkey` and their like).",
        |r, item, to| put(&mut to.shows_tags, r.boolean(item));
    "includes", TABLE, "none", "Pages that are put together of others: see `[site.includes]`.";
    "compress", "\"off\", \"stored\" or \"all\"", "\"stored\"", "Which bodies are coded, as `[compression]` says: those that are stored, or `all`, those that pass to one client too (see the guide on BREACH first). With `off` no body is changed: each coding that the origin chooses is a variant.",
        |r, item, to| put(&mut to.compress, compression::of_site(r, item));
    "show_surrogate_control", BOOLEAN, "false", "Whether clients see `Surrogate-Control`: for a site whose clients are caches that read it, too.",
        |r, item, to| put(&mut to.shows_surrogate_control, r.boolean(item));
    "error_pages", TABLE, "none", "Files (absolute paths) that are the pages of errors made here, by status: `{ 502 = \"/srv/error/502.html\" }`. Read with the configuration, at most `error_page_bytes` long, their type by their ending. What an origin answers stays as it is.",
        |r, item, to| to.error_pages = error_pages::of_site(r, item);
    "redirect_https", "true, false, 301 or 308", "false", "Whether requests over plain HTTP are redirected to HTTPS; `true` is 308. Those below `/.well-known/acme-challenge/` are not.";
    "guard_spellings", BOOLEAN, "true", "Whether `deny`, `allow`, `respond`, `redirect`, `bypass` and `cache = false` also hold for paths that an origin may take for theirs: with parameters (`/admin;x`, as servlet containers read it), with `%5c` for a slash (as IIS does), and with something behind the name of a script (`/login.php/x`, as Apache does).",
        |r, item, to| to.rules.opaque_spellings = r.boolean(item) == Some(false);
    "hsts", "true, false, a duration or a table", "false", "Strict-Transport-Security (RFC 6797) of responses over HTTPS: `true` is two years; see `[site.hsts]`.",
        |r, item, to| to.hsts = hsts::hsts(r, item);
};

/// Settings that all sites share: the proxies in front, and the fields that origins get.
#[derive(Debug, Default)]
pub(super) struct Fronts {
    /// Those that are believed.
    pub(super) trusted: Vec<Net>,
    /// Where they name the client.
    pub(super) field: ClientField,
    /// Origins get Forwarded, too.
    pub(super) forwarded: bool,
}

impl Fronts {
    pub(super) fn read(r: &mut Reader, top: &Table<'_>) -> Self {
        let trusted = top.item("trusted_proxies");
        let field = top.item("client_field");
        if let (Some(item), None, false) = (&field, &trusted, r.is_partial) {
            r.warning(item.span.clone(), "`client_field` without `trusted_proxies`").help =
                Some("what nobody trusted says is never believed".to_owned());
        }
        let name = field.and_then(|item| {
            let text = r.text(&item)?;
            r.check(&item, FieldName::parse(text))
        });
        let forwarded = top.item("forwarded").and_then(|item| r.boolean(&item));
        Self {
            trusted: trusted.map(|item| super::lists::nets(r, &item)).unwrap_or_default(),
            field: name.map(ClientField::of).unwrap_or_default(),
            forwarded: forwarded.unwrap_or(false),
        }
    }
}

/// The time that an origin may take for a head.
const HEAD_TIME: &str = "first_byte_timeout";

/// Says that there is no site, unless they come with what all nodes share.
fn without_sites(r: &mut Reader) {
    if r.is_partial {
        return;
    }
    r.error_nowhere("no [[site]]").help = Some(
        "add one: [[site]], then `host = [\"*\"]` and `origin = \"http://127.0.0.1:8080\"`".into(),
    );
}

/// Reads every `[[site]]`.
pub(super) fn sites(
    r: &mut Reader,
    top: &Table<'_>,
    profile: Profile,
    fronts: &Fronts,
    https_port: Option<u16>,
    origins: &mut Origins<'_>,
) -> Vec<SiteConfig> {
    let Some(item) = top.item("site") else {
        without_sites(r);
        return Vec::new();
    };
    let whole = top.item("vcl").is_some();
    let mut taken = BTreeMap::new();
    let tables = r.tables(&item, &SITE);
    if item.each().is_empty() {
        r.error(item.span, "`site` is an empty list");
    }
    tables
        .iter()
        .map(|table| {
            let hosts = hosts(r, table, &mut taken);
            let vcl = tls::path_of(r, table, "vcl");
            let decided = vcl.is_some() || whole;
            if decided {
                only_beside_vcl(r, table);
            }
            let profile =
                table.item("profile").and_then(|item| self::profile(r, &item)).unwrap_or(profile);
            let presets = Presets::read(r, table, profile);
            let mut own_origins = SiteOrigins::new(origins);
            let mut rules = SiteRules {
                trusted_proxies: fronts.trusted.clone(),
                client_field: fronts.field.clone(),
                forwarded: fronts.forwarded,
                redirect_https: tls::redirect(r, table, https_port),
                profile,
                ..rules(r, table, &presets, &mut own_origins, decided)
            };
            rules.scripts = own_origins.script_ends();
            let (indices, files, users) = own_origins.into_parts();
            origins.bar(&indices, &presets.no_scripts(r));
            let tls = tls::site(r, table);
            let (dialects, of_presets) = (presets.dialects(r), presets.includes(r));
            let purge = super::purge::site(r, table, dialects);
            let mut site = SiteConfig {
                vcl,
                hosts,
                origins: indices,
                files,
                presets: presets.names(),
                rules,
                tls,
                by_htcp: super::purge::by_htcp(table, purge.as_ref()),
                purge,
                users,
                includes: super::includes::site(r, table, of_presets),
                ..SiteConfig::default()
            };
            rows::read(r, table, SITE_ROWS, &mut site);
            site
        })
        .collect()
}

/// Says what a VCL leaves no room for.
fn only_beside_vcl(r: &mut Reader, table: &Table<'_>) {
    const LEFT: [&str; 7] =
        ["host", "tls", "vcl", "rate", "concurrent", "basic_auth", "forward_auth"];
    for (name, span) in table.names() {
        if !LEFT.contains(&name) {
            r.error(span, format!("`{name}` beside a VCL, which decides it")).help = Some(
                "a site with a VCL has `host`, `tls`, and what guards it: `rate`, `concurrent`, \
                 `basic_auth` and `forward_auth`"
                    .to_owned(),
            );
        }
    }
}

fn hosts(r: &mut Reader, table: &Table<'_>, taken: &mut BTreeMap<String, Span>) -> Vec<String> {
    let Some(item) = table.item("host") else {
        r.error(table.span.clone(), "a site without hosts").help =
            Some("add `host = [\"example.com\"]`, or `host = \"*\"` for every host".to_owned());
        return Vec::new();
    };
    if item.each().is_empty() {
        r.error(item.span.clone(), "`host` names no host").help =
            Some("write \"*\" for every host".to_owned());
    }
    let mut hosts = Vec::new();
    for (text, item) in r.texts(&item) {
        let Some(host) = policy::hosts::canonical(text) else {
            let help = host_help(text);
            r.error(item.span, format!("`{text}` is not a host name")).help = Some(help);
            continue;
        };
        if let Some(first) = taken.get(&host) {
            let related = Some((first.clone(), "here for the first time".to_owned()));
            r.error(item.span, format!("`{host}` is a site's host already")).related = related;
            continue;
        }
        taken.insert(host.clone(), item.span);
        hosts.push(host);
    }
    hosts
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

/// The rules of a site; a program has `decided` where it fetches, if it has one.
fn rules(
    r: &mut Reader,
    table: &Table<'_>,
    presets: &Presets,
    origins: &mut SiteOrigins<'_, '_>,
    decided: bool,
) -> SiteRules {
    let mut settings = presets.settings(r);
    super::places::note_places(r, table, &["host", "purge", "redirect_https"], &mut settings);
    let has_origin = settings::read(r, table, &[], &mut settings, origins);
    let answers = table.item("redirect").is_some() || table.item("respond").is_some();
    let has_files = table.item("files").is_some();
    let has_time = table.item(HEAD_TIME).is_some();
    if !has_time {
        origins.keep_times(&mut settings);
    }
    // Its VCL says where it fetches.
    let has_origin = has_origin || decided;
    if decided {
        super::entry::check_beside_vcl(r, table, &settings);
    }
    if !has_origin && !answers && !has_files && table.item("origin").is_none() {
        r.error(table.span.clone(), "a site without origin").help = Some(
            "add `origin = \"http://127.0.0.1:8080\"`, or the name of an [[origin]]".to_owned(),
        );
    }
    let is_answered = has_origin || has_files || table.item("origin").is_some();
    presets.check_against(r, table, &settings, is_answered);
    let mut routes: Vec<(RouteRules, Span)> = Vec::new();
    let tables = table.item("route").map(|item| r.tables(&item, &ROUTE)).unwrap_or_default();
    for table in &tables {
        let before = r.found.len();
        let (mut route, span) = route(r, table, settings.inherit());
        let sound = r.found.len() == before;
        let own_origin = settings::read(r, table, &route.paths, &mut route.settings, origins);
        if !has_time && table.item(HEAD_TIME).is_none() {
            origins.keep_times(&mut route.settings);
        }
        let answered = route.settings.answer.is_some() || route.settings.files.is_some();
        if !own_origin && !has_origin && answers && !answered {
            r.error(table.span.clone(), "a route without origin, in a site that has none");
        }
        // Without a pattern that could not be read it would seem to match everything.
        if sound {
            warn_of_shadowed(r, &routes, &route, &span);
            routes.push((route, span));
        }
    }
    let mut routes: Vec<RouteRules> = routes.into_iter().map(|(route, _)| route).collect();
    let mut of_presets = presets.routes(r, &settings);
    if !has_time {
        of_presets.iter_mut().for_each(|route| origins.keep_times(&mut route.settings));
    }
    routes.append(&mut of_presets);
    SiteRules { routes, settings, ..SiteRules::default() }
}

fn warn_of_shadowed(
    r: &mut Reader,
    earlier: &[(RouteRules, Span)],
    route: &RouteRules,
    span: &Span,
) {
    let Some((first, place)) = earlier.iter().find(|(first, _)| first.covers(route)) else {
        return;
    };
    let related = (place.clone(), format!("`{}` matches first", first.name));
    let warning = r.warning(span.clone(), format!("`{}` is never reached", route.name));
    warning.related = Some(related);
    warning.help = Some("the first route that matches counts: put it further up".to_owned());
}

/// `"safe"` or `"rfc"`.
pub(super) fn profile(r: &mut Reader, item: &Item<'_>) -> Option<Profile> {
    r.word(item, &[("safe", Profile::Safe), ("rfc", Profile::Rfc)])
}
