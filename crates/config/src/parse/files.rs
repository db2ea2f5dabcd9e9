//! `files` of a site, a route and a FastCGI origin: the directory, and how its files are served.

use std::path::{Path, PathBuf};

use files::{
    APPLICATION, CacheRule, Coding, Config, HiddenNames, PrecompressedFile, SOURCES, Selector,
};
use origin::{AccelConfig, ScriptsConfig};
use policy::pattern::PathPattern;
use policy::rules::Settings;
use toml::de::DeValue;

use crate::keys::{DURATION, Section, TEXTS};
use crate::model::NamedPath;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, Row, put, rows, section};

/// The keyword in `hide` for the built-in list.
const DEFAULT: &str = "default";

section! {
    pub(crate) FILES, FILES_ROWS: Config, MANNER_ROWS; "[site.files]",
    "Files of a directory; `[site.route.files]` for one route. A path instead of a table sets \
     `alias` in a route with one `/prefix/*`, and `root` everywhere else.";
    "root", "a path", "none", "Directory in which Larder looks for the whole path of a request.",
        |r, item, to| put(&mut to.root, directory(r, item));
    "alias", "a path", "none", "Directory in which Larder looks for the rest of the path, without what precedes the `*` of the route's path. Instead of `root`.",
        |r, item, to| put(&mut to.root, directory(r, item));
    "index", TEXTS, "\"index.html\"", "Names of index files of a directory, in order of preference. Larder does not list directories.",
        |r, item, to| to.index = index(r, item);
    "linked", TEXTS, "none", "Directories outside this one into which symbolic links may lead.",
        |r, item, to| {
            to.linked = item.each().iter().filter_map(|item| directory(r, item)).collect();
        };
}

pub(crate) const ORIGIN_FILES: Section = Section {
    title: "[origin.files]",
    about: "How Larder serves files in the `root` of a FastCGI origin that are not scripts.",
    keys: || rows::keys(MANNER_ROWS),
    ..Section::EMPTY
};

/// Keys about serving files, for all kinds of roots.
const MANNER_ROWS: &[Row<Config>] = rows! {
    "hide", TEXTS, "\"default\"", "Names of files and directories that are never served. `*` stands for any characters, `?` for one; case does not matter. `default` stands for the list in the guide on files. Names that begin with a dot are always hidden, except `/.well-known/`.",
        |r, item, to| hide(r, item, &mut to.hide);
    "types", "a table such as { css = \"text/css\" }", "built in", "Content types by the ending of a file's name. `\"*\"` is the type of unknown endings, by default `application/octet-stream`.",
        |r, item, to| {
            for (suffix, _, item) in r.pairs(item) {
                let kind = r.text(&item);
                kind.and_then(|kind| r.check(&item, to.types.set(suffix, kind)));
            }
        };
    "charset", "a string", "none", "Character set, such as `utf-8`, that Larder adds to the Content-Type of texts.",
        |r, item, to| {
            let charset = r.text(item);
            charset.and_then(|charset| r.check(item, to.types.set_charset(charset)));
        };
    "precompressed", "`br`, `zstd`, `gzip`, or a list of them", "none", "Codings of precompressed files, in order of preference. Larder sends `x.css.br`, `x.css.zst` or `x.css.gz` in place of `x.css` to clients that accept the coding.",
        |r, item, to| {
            let words = Coding::ALL.map(|coding| (coding.token(), coding));
            let codings = item.each().into_iter().filter_map(|item| r.word(&item, &words));
            to.precompressed = codings.map(PrecompressedFile::from).collect();
        };
    "cache_control", "a string, or a table such as { \"image/*\" = \"max-age=60\" }", "none", "Cache-Control of the files. In a table, by type (`text/css`, `image/*`) or name (`*.css`, `*`); the first match applies.",
        |r, item, to| cache_control(r, item, &mut to.cache_control);
    "expires", DURATION, "none", "Lifetime of files for which `cache_control` has no value, sent as `Cache-Control: max-age=...`.",
        |r, item, to| {
            let value = r.duration(item).map(|ms| format!("max-age={}", ms / 1_000));
            to.cache_control.extend(value.map(|value| CacheRule { files: all(), value }));
        };
};

/// The root of a site, or of a route.
pub(super) fn root(r: &mut Reader, item: &SettingValue<'_>) -> Option<Config> {
    let paths = paths_beside(item);
    let prefixes: Vec<&str> = paths.iter().filter_map(strippable).collect();
    if item.value.is_str() {
        let root = directory(r, item)?;
        let strip = match (prefixes.as_slice(), paths.as_slice()) {
            ([prefix], [_]) => (*prefix).to_owned(),
            ([], _) => String::new(),
            _ => {
                r.error(item.span.clone(), "a directory for several paths").help = Some(
                    "write `{ root = \"/srv\" }` to look for whole paths, or a route for each"
                        .to_owned(),
                );
                return None;
            }
        };
        return Some(Config { strip, ..Config::new(root) });
    }
    let table = r.table(item, &FILES)?;
    let mut config = Config::new(PathBuf::new());
    rows::read(r, &table, FILES_ROWS, &mut config);
    rows::read(r, &table, MANNER_ROWS, &mut config);
    match (table.item("root"), table.item("alias"), prefixes.as_slice(), paths.as_slice()) {
        (Some(root), Some(alias), ..) => {
            let related = Some((root.span, "the other directory".to_owned()));
            r.error(alias.span, "`root` and `alias` cannot both be the directory").related =
                related;
        }
        (None, Some(_), [prefix], [_]) => config.strip = (*prefix).to_owned(),
        (None, Some(alias), ..) => {
            r.error(alias.span, "`alias` is for routes of one `/prefix/*`").help =
                Some("write `root`, where the whole path is looked for".to_owned());
        }
        (Some(_), None, ..) => {}
        (None, None, ..) => {
            r.error(item.span.clone(), "`files` without a directory").help =
                Some("add `root = \"/srv/www\"`".to_owned());
        }
    }
    Some(config)
}

/// The paths of the route that `files` stands in.
fn paths_beside(files: &SettingValue<'_>) -> Vec<PathPattern> {
    let paths = files.table.known("path").map(|item| item.each()).unwrap_or_default();
    let texts = paths.iter().filter_map(|item| item.value.as_str());
    texts.filter_map(|text| PathPattern::parse(text).ok()).collect()
}

/// Shows a root, and the stripped part of a path.
pub(super) fn show(page: &mut SettingsPage<'_>, settings: &Settings) {
    let at = settings.files.and_then(|at| usize::try_from(at).ok());
    let Some(files) = at.and_then(|at| page.site.files.get(at)) else { return };
    let root = files.root.display();
    page.line(
        "files",
        match files.strip.as_str() {
            "" => root.to_string(),
            strip => format!("{root}, without the {strip} before it"),
        },
    );
}

/// The strippable part of a prefix pattern: all but the final slash. Without that slash, `/static*`
/// would also match `/static../`, nginx's `alias` trap.
fn strippable(path: &PathPattern) -> Option<&str> {
    path.prefix()?.strip_suffix('/')
}

fn index(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (text, item) in r.texts(item) {
        if text.is_empty() || text.contains('/') || text.starts_with('.') {
            r.error(item.span, format!("`{text}` is not the name of a file"));
        } else {
            names.push(text.to_owned());
        }
    }
    names
}

/// Settings of the files of a FastCGI origin; `None` if they are not served.
pub(super) fn beside_scripts(
    r: &mut Reader,
    item: &SettingValue<'_>,
    scripts: &ScriptsConfig,
) -> Option<Config> {
    let mut config = defaults_beside_scripts(&scripts.root, &scripts.linked);
    if item.is_off() {
        return None;
    }
    rows::read_table(r, item, &ORIGIN_FILES, MANNER_ROWS, &mut config);
    Some(config)
}

/// The defaults: regular files only, since `try_files` and `index` decide on directories.
pub(crate) fn defaults_beside_scripts(root: &Path, linked: &[PathBuf]) -> Config {
    Config {
        directories: false,
        index: Vec::new(),
        linked: linked.to_vec(),
        hide: HiddenNames::of(&[SOURCES, APPLICATION]),
        ..Config::new(root.to_path_buf())
    }
}

/// Reads names that are never served. The keyword `default` stands for the content of `hidden`.
fn hide(r: &mut Reader, item: &SettingValue<'_>, hidden: &mut HiddenNames) {
    let texts = r.texts(item);
    if !texts.iter().any(|(text, _)| *text == DEFAULT) {
        *hidden = HiddenNames::default();
    }
    for (text, item) in texts.iter().filter(|(text, _)| *text != DEFAULT) {
        r.check(item, hidden.add(text));
    }
}

fn all() -> Selector {
    Selector::parse("*").expect("a star is a pattern of names")
}

fn cache_control(r: &mut Reader, item: &SettingValue<'_>, rules: &mut Vec<CacheRule>) {
    let Some(pairs) = item.pairs() else {
        rules.extend(value(r, item).map(|value| CacheRule { files: all(), value }));
        return;
    };
    for (text, span, item) in pairs {
        let value = value(r, &item);
        match Selector::parse(text) {
            Ok(files) => rules.extend(value.map(|value| CacheRule { files, value })),
            Err(why) => _ = r.error(span, format!("`{}`: {why}", text.escape_debug())),
        }
    }
}

/// Reads the value of a field.
fn value(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let value = policy::headers::FieldValue::parse(text);
    r.check(item, value).map(|_| text.to_owned())
}

/// Reads which X-Accel fields of an origin's responses are followed.
pub(super) fn accel(r: &mut Reader, item: &SettingValue<'_>, to: &mut Option<AccelConfig>) {
    let mut accel = AccelConfig { expires: !item.is_off(), ..AccelConfig::default() };
    let pairs = match item.value {
        DeValue::Boolean(_) => Vec::new(),
        _ => r.pairs(item),
    };
    for (prefix, span, item) in pairs {
        let root = directory(r, &item);
        let strip = prefix.strip_suffix('/').filter(|strip| is_prefix(strip));
        if strip.is_none() {
            r.error(span, format!("`{}` is not a prefix", prefix.escape_debug())).help =
                Some("write it with both slashes: `/protected/`".to_owned());
        }
        accel.redirects.extend(root.zip(strip).map(|(root, strip)| named(root, strip)));
    }
    *to = accel.expires.then_some(accel);
}

/// Reads which files X-Sendfile of an origin's responses may name.
pub(super) fn sendfile(r: &mut Reader, item: &SettingValue<'_>, to: &mut Option<AccelConfig>) {
    for item in item.each() {
        let Some(root) = directory(r, &item) else { continue };
        let Some(strip) = root.to_str().map(|text| text.trim_end_matches('/').to_owned()) else {
            continue;
        };
        to.get_or_insert_default().sendfile.push(named(root, &strip));
    }
}

fn is_prefix(strip: &str) -> bool {
    let odd = |name: &str| matches!(name, "" | "." | "..") || name.contains(char::is_control);
    strip.strip_prefix('/').is_some_and(|rest| !rest.split('/').any(odd))
}

/// A directory whose files an origin names: only names with a leading dot are hidden.
fn named(root: PathBuf, strip: &str) -> Config {
    Config {
        strip: strip.to_owned(),
        directories: false,
        index: Vec::new(),
        hide: HiddenNames::default(),
        ..Config::new(root)
    }
}

/// Reads an absolute path.
pub(super) fn directory(r: &mut Reader, item: &SettingValue<'_>) -> Option<PathBuf> {
    let text = r.text(item)?;
    if text.starts_with('/') && !text.chars().any(char::is_control) {
        let (path, setting) = (PathBuf::from(text), item.name.to_owned());
        let place = r.location(&item.span);
        r.folders.push(NamedPath { setting, path: path.clone(), place });
        return Some(path);
    }
    r.error(item.span.clone(), format!("`{}` is an absolute path", item.name));
    None
}
