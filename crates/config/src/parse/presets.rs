//! `preset` of a `[[site]]`: reads presets' files into a site's settings and routes.

use std::sync::Arc;

use policy::pattern::NamePattern;
use policy::rules::{Bypass, Profile, RouteRules, Settings, SiteRules};
use policy::{CrawlerRules, Dialects, Includes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::includes::includes;
use super::routes::SCOPE_ROWS;
use super::settings::SETTINGS_ROWS;
use super::syntax::syntax_errors;
use super::{crawlers, purge, routes, scripts, settings};
use crate::diagnostic::SourceText;
use crate::keys::{Key, Mark, Section, TABLE, TEXTS};
use crate::preset::{PRESETS, Preset, find};
use crate::reader::{Reader, SettingValue, TextRange, TomlTable};
use crate::rows::{self, Row, rows};

/// A preset's file: a site without hosts, origins and other facts of a single site.
pub(crate) const PRESET: Section = Section {
    title: "a preset",
    keys: || [rows::keys(PRESET_ROWS), rows::keys(ROUTES_ROWS), settings_keys()].concat(),
    ..Section::EMPTY
};

const PRESET_ROWS: &[Row<Presets>] = rows! {
    "purge", TABLE, "none", "",
        |r, item, to| to.dialects = purge::dialects(r, item, to.dialects);
    "no_scripts", TEXTS, "none", "",
        |r, item, to| to.no_scripts.extend(scripts::barred(r, item));
    "includes", TABLE, "none", "",
        |r, item, to| includes(r, item, &mut to.includes);
    "crawlers", TABLE, "none", "",
        |r, item, to| crawlers::of_site(r, item, &mut to.crawlers);
};

const ROUTES_ROWS: &[Row<Routes>] = rows! {
    "route", "a list of tables", "none", "",
        routes;
};

/// A route of a preset's file.
pub(crate) const PRESET_ROUTE: Section = Section {
    title: "[[route]]",
    keys: || [rows::keys(SCOPE_ROWS), settings_keys()].concat(),
    ..Section::EMPTY
};

/// The settings that a preset may have: not those about origins and visitors of a single site.
fn settings_keys() -> Vec<Key> {
    let mut keys = rows::keys(SETTINGS_ROWS);
    keys.retain(|key| !key.is(Mark::SiteOnly));
    keys
}

/// The presets of one site, in their order.
#[derive(Debug, Default)]
pub(crate) struct Presets {
    chosen: Vec<PresetDocument>,
    /// The purge dialects of their applications.
    pub(crate) dialects: Dialects,
    /// The includes of their applications' pages.
    pub(crate) includes: Includes,
    /// Rules for whole classes of clients.
    pub(crate) crawlers: CrawlerRules,
    /// Directories without scripts of their applications.
    pub(crate) no_scripts: Vec<String>,
}

/// The routes of a preset, which start from the site's settings.
struct Routes {
    preset: &'static str,
    settings: Settings,
    found: Vec<RouteRules>,
}

/// A preset with its parsed document.
#[derive(Debug)]
struct PresetDocument {
    preset: &'static Preset,
    source: Arc<SourceText>,
    document: Spanned<DeTable<'static>>,
    /// The span of its name in the site.
    span: TextRange,
}

impl Presets {
    /// Reads the names of a site's presets.
    pub(super) fn read(r: &mut Reader, item: &SettingValue<'_>, profile: Profile) -> Self {
        let mut presets = Self::default();
        for (name, item) in r.texts(item) {
            if let Some(first) = presets.chosen.iter().find(|c| c.preset.name == name) {
                let related = Some((first.span.clone(), "here for the first time".to_owned()));
                r.error(item.span, format!("preset `{name}` twice")).related = related;
                continue;
            }
            match known(name) {
                Ok(preset) => presets.add(r, preset, item.span),
                Err((message, help)) => r.error(item.span, message).help = Some(help),
            }
        }
        if let (Some(first), Profile::Rfc) = (presets.chosen.first(), profile) {
            let message = format!("preset `{}` counts on the `safe` profile", first.preset.name);
            let related = item.table.item("profile");
            let related = related.map(|p| (p.span, "this is another".to_owned()));
            let error = r.error(first.span.clone(), message);
            error.related = related;
            error.help = Some(
                "in `rfc` no cookie makes a request personal; write `profile = \"safe\"` in [[site]]"
                    .to_owned(),
            );
        }
        presets
    }

    /// The presets called `names`, for a site without a file.
    pub(crate) fn named(r: &mut Reader, names: &[String]) -> Self {
        let mut presets = Self::default();
        for name in names {
            match known(name) {
                Ok(preset) if presets.chosen.iter().any(|c| c.preset == preset) => {}
                Ok(preset) => presets.add(r, preset, 0..0),
                Err((message, help)) => {
                    r.error_nowhere(format!("--preset {name}: {message}")).help = Some(help);
                }
            }
        }
        presets
    }

    fn add(&mut self, r: &mut Reader, preset: &'static Preset, span: TextRange) {
        let Some(chosen) = PresetDocument::read(r, preset, span) else { return };
        chosen.with(r, |r, table| _ = rows::read(r, table, PRESET_ROWS, self));
        self.chosen.push(chosen);
    }

    /// The rules of a site without settings of its own.
    pub(crate) fn rules(&self, r: &mut Reader, profile: Profile) -> SiteRules {
        let settings = self.settings(r);
        let routes = self.routes(r, &settings);
        let crawlers = self.crawlers.clone();
        let mut rules = SiteRules { profile, routes, settings, crawlers, ..SiteRules::default() };
        rules.divide_by_class();
        rules
    }

    /// The names of the presets.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.chosen.iter().map(|chosen| chosen.preset.name).collect()
    }

    /// The settings that a site starts from. The last preset's single values count; lists add up.
    pub(super) fn settings(&self, r: &mut Reader) -> Settings {
        let mut settings = Settings::default();
        for chosen in &self.chosen {
            chosen.with(r, |r, table| settings::read(r, table, &mut settings));
        }
        settings
    }

    /// The presets' routes, which start from the site's `settings`.
    pub(super) fn routes(&self, r: &mut Reader, settings: &Settings) -> Vec<RouteRules> {
        let mut to = Routes { preset: "", settings: settings.clone(), found: Vec::new() };
        for chosen in &self.chosen {
            to.preset = chosen.preset.name;
            chosen.with(r, |r, table| _ = rows::read(r, table, ROUTES_ROWS, &mut to));
        }
        to.found
    }

    /// Adds the presets' routes to those of a site; `has_time` is true if its origin sets its own
    /// timeout for heads.
    pub(super) fn add_routes(&self, r: &mut Reader, rules: &mut SiteRules, has_time: bool) {
        let mut routes = self.routes(r, &rules.settings);
        if !has_time {
            routes.iter_mut().for_each(|route| r.origins.keep_times(&mut route.settings));
        }
        rules.routes.append(&mut routes);
    }

    /// Reports settings of `site` that undo its presets' rules. `settings` are the site's.
    pub(super) fn check_against(
        &self,
        r: &mut Reader,
        site: &TomlTable<'_>,
        settings: &Settings,
        has_origin: bool,
    ) {
        let Some(first) = self.chosen.first() else { return };
        if !has_origin && (site.item("redirect").is_some() || site.item("respond").is_some()) {
            let message = "a preset in a site that has no origin";
            r.error(first.span.clone(), message).help =
                Some("a site that answers everything itself needs no preset".to_owned());
        }
        if let Some(bypass) = site.item("bypass").filter(|b| b.value.as_bool() == Some(false)) {
            let related = Some((first.span.clone(), "the preset".to_owned()));
            let error = r.error(bypass.span, "`bypass = false` takes away what a preset passes");
            error.related = related;
            error.help = Some("write it in a [[site.route]], for the paths it is for".to_owned());
        }
        self.check_cookies(r, site, settings);
        self.check_query(r, site, settings);
    }

    /// Warns of a removed cookie that a bypass rule tests.
    fn check_cookies(&self, r: &mut Reader, site: &TomlTable<'_>, settings: &Settings) {
        let Some(cookies) = site.item("cookies").and_then(|item| item.key("strip")) else { return };
        for item in cookies.each() {
            let strip = item.value.as_str().and_then(|text| NamePattern::cookie(text).ok());
            let Some(strip) = strip else { continue };
            let lost = settings.bypass.iter().find_map(|bypass| match bypass {
                Bypass::Cookie(name) if strip.covers(name) => Some(name.as_str()),
                _ => None,
            });
            if let Some(lost) = lost {
                self.warn_of_lost(r, &item, "cookie", lost);
            }
        }
    }

    /// Warns of a removed parameter that a bypass rule tests.
    fn check_query(&self, r: &mut Reader, site: &TomlTable<'_>, settings: &Settings) {
        let Some(query) = site.item("query") else { return };
        if let Some(item) = query.key("ignore").filter(|i| i.value.as_bool() == Some(true)) {
            let lost = settings.bypass.iter().find_map(|bypass| match bypass {
                Bypass::AnyQuery => Some("query"),
                Bypass::Query(name, _) => Some(name.as_str()),
                _ => None,
            });
            if let Some(lost) = lost {
                self.warn_of_lost(r, &item, "query", lost);
            }
        }
        for item in query.key("strip").map(|item| item.each()).unwrap_or_default() {
            let strip = item.value.as_str().and_then(|text| NamePattern::query(text).ok());
            let Some(strip) = strip else { continue };
            let lost = settings.bypass.iter().find_map(|bypass| match bypass {
                Bypass::Query(name, _) if strip.covers(name) => Some(name.as_str()),
                _ => None,
            });
            if let Some(lost) = lost {
                self.warn_of_lost(r, &item, "query", lost);
            }
        }
    }

    fn warn_of_lost(&self, r: &mut Reader, item: &SettingValue<'_>, what: &str, lost: &str) {
        let rule = self.chosen.iter().find_map(|chosen| chosen.place(what, lost));
        let removed = if lost == what { format!("the {what}") } else { format!("`{lost}`") };
        let message = format!("this removes {removed} before `bypass` looks for it");
        let warning = r.warning(item.span.clone(), message);
        warning.help = Some(match rule {
            Some((preset, line)) => format!(
                "preset `{}`, line {line}, passes such requests; here the cache answers \
                 them",
                preset.name
            ),
            None => "such requests are answered from the cache".to_owned(),
        });
    }
}

fn routes(r: &mut Reader, item: &SettingValue<'_>, to: &mut Routes) {
    for table in r.tables(item, &PRESET_ROUTE) {
        let (mut route, _) = routes::route(r, &table, to.settings.inherit());
        settings::read(r, &table, &mut route.settings);
        route.name = format!("{}: {}", to.preset, route.name);
        to.found.push(route);
    }
}

impl PresetDocument {
    /// Parses the preset's file; `None` after a syntax error.
    fn read(r: &mut Reader, preset: &'static Preset, span: TextRange) -> Option<Self> {
        let source = Arc::new(SourceText { name: preset.file(), text: preset.text.to_owned() });
        let (document, errors) = DeTable::parse_recoverable(preset.text);
        let chosen = Self { preset, source, document, span };
        if errors.is_empty() {
            // Once, rather than each time that a part of it is read.
            chosen.with_reader(r, |r| r.check_keys(&TomlTable::whole(&chosen.document, &PRESET)));
            return Some(chosen);
        }
        chosen.with_reader(r, |r| syntax_errors(r, &errors, &mut Vec::new()));
        None
    }

    /// Reads in the preset's file: faults are located there.
    fn with(&self, r: &mut Reader, read: impl FnOnce(&mut Reader, &TomlTable<'_>)) {
        self.with_reader(r, |r| {
            read(r, &TomlTable::whole(&self.document, &PRESET));
        });
    }

    fn with_reader(&self, r: &mut Reader, read: impl FnOnce(&mut Reader)) {
        let mut own = r.of_preset(Arc::clone(&self.source), self.preset.name);
        read(&mut own);
        r.found.append(&mut own.found);
    }

    /// The line, from 1, in its file on which the rule `[bypass] what` names `lost`.
    fn place(&self, what: &str, lost: &str) -> Option<(&'static Preset, usize)> {
        let bypass = self.document.get_ref().get("bypass")?.get_ref().as_table()?;
        let value = bypass.get(what)?;
        let span = match value.get_ref() {
            DeValue::Array(names) => {
                names.iter().find(|name| name.get_ref().as_str() == Some(lost))?.span()
            }
            DeValue::Table(names) => names.get(lost)?.span(),
            _ => value.span(),
        };
        let before = self.preset.text.get(..span.start)?;
        Some((self.preset, before.matches('\n').count() + 1))
    }
}

/// All diagnostics of a preset's file with this `text`.
#[cfg(test)]
pub(crate) fn preset_diagnostics(name: &'static str, text: &'static str) -> String {
    let source = SourceText { name: String::new(), text: String::new() };
    let mut r = Reader::new(Arc::new(source), &super::TOP);
    let preset: &'static Preset = Box::leak(Box::new(Preset { name, text, plugin: None }));
    let mut presets = Presets::default();
    presets.add(&mut r, preset, 0..0);
    presets.rules(&mut r, Profile::Safe);
    crate::render(&r.found, false)
}

/// The preset called `name`, or the error and a suggestion.
fn known(name: &str) -> Result<&'static Preset, (String, String)> {
    find(name).ok_or_else(|| {
        let names = PRESETS.iter().map(|preset| preset.name);
        let help = match crate::preset::likely_preset(name) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None => format!("presets are {}", names.collect::<Vec<_>>().join(", ")),
        };
        (format!("no preset is called `{name}`"), help)
    })
}
