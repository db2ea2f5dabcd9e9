//! `files` of a site, a route and a FastCGI origin: which directory, and how its files are served.

use std::path::{Path, PathBuf};

use files::{APPLICATION, CacheRule, Coding, Config, Hidden, Neighbour, SOURCES, Selector};
use origin::AccelConfig;
use policy::pattern::PathPattern;
use toml::de::DeValue;

use crate::keys::{DURATION, Key, Section, TEXTS, keys};
use crate::model::NamedPath;
use crate::reader::{Item, Reader, Table};

/// The word in `hide` that stands for the built-in list.
const DEFAULT: &str = "default";

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
        keys.append(&mut manner_keys());
        keys
    },
    ..Section::EMPTY
};

pub(crate) const ORIGIN_FILES: Section = Section {
    title: "[origin.files]",
    about: "How files in the `root` of a FastCGI origin that are no scripts are served.",
    keys: manner_keys,
    ..Section::EMPTY
};

/// Keys about the serving of files, wherever the files are.
fn manner_keys() -> Vec<Key> {
    keys! {
        "hide", TEXTS, "\"default\"", "Names of files and directories that are never shown: `*` for any bytes, `?` for one, any case. `default` stands for the list in the guide on files. Names that begin with a dot are always hidden, `/.well-known/` apart.";
        "types", "a table such as { css = \"text/css\" }", "built in", "Content types by the end of a name; `\"*\"` for all that are not known, otherwise `application/octet-stream`.";
        "charset", "a string", "none", "Added to the Content-Type of texts, such as `utf-8`.";
        "precompressed", "`br`, `zstd`, `gzip`, or a list of them", "none", "Codings (`br`, `zstd`, `gzip`) of which a file beside the one asked for, `x.css.br`, `x.css.zst` or `x.css.gz`, stands for it where the client takes it; the most wanted first.";
        "cache_control", "a string, or a table such as { \"image/*\" = \"max-age=60\" }", "none", "Cache-Control of the files. In a table by type (`text/css`, `image/*`) or name (`*.css`, `*`); the first that fits counts.";
        "expires", DURATION, "none", "The same as `cache_control = \"max-age=...\"` of so many seconds, for what `cache_control` does not speak of.";
    }
}

/// The root of a site, or of a route for `paths`.
pub(super) fn root(r: &mut Reader, item: &Item<'_>, paths: &[PathPattern]) -> Option<Config> {
    let prefixes: Vec<&str> = paths.iter().filter_map(strippable).collect();
    if item.value.is_str() {
        let root = directory(r, item)?;
        let strip = match (prefixes.as_slice(), paths) {
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
    let place = place(r, item, &table, &prefixes, paths);
    let mut config = Config::new(PathBuf::new());
    if let Some(item) = table.item("index") {
        config.index.clear();
        for (text, item) in r.texts(&item) {
            if text.is_empty() || text.contains('/') || text.starts_with('.') {
                r.error(item.span, format!("`{text}` is not the name of a file"));
            } else {
                config.index.push(text.to_owned());
            }
        }
    }
    let linked = table.item("linked").map(|item| item.each()).unwrap_or_default();
    config.linked = linked.iter().filter_map(|item| directory(r, item)).collect();
    manner(r, &table, &mut config, &[SOURCES]);
    let (root, strip) = place?;
    Some(Config { root, strip, ..config })
}

/// The part of a prefix pattern that can be taken off: all but the slash at its end. Without that
/// slash, `/static*` would also stand for `/static../`, nginx's `alias` trap.
fn strippable(path: &PathPattern) -> Option<&str> {
    path.prefix()?.strip_suffix('/')
}

/// The directory, and what is taken off the front of paths.
fn place(
    r: &mut Reader,
    item: &Item<'_>,
    table: &Table<'_>,
    prefixes: &[&str],
    paths: &[PathPattern],
) -> Option<(PathBuf, String)> {
    match (table.item("root"), table.item("alias")) {
        (Some(root), None) => Some((directory(r, &root)?, String::new())),
        (None, Some(alias)) => {
            let root = directory(r, &alias)?;
            let ([prefix], [_]) = (prefixes, paths) else {
                r.error(alias.span, "`alias` is for routes of one `/prefix/*`").help =
                    Some("write `root`, where the whole path is looked for".to_owned());
                return None;
            };
            Some((root, (*prefix).to_owned()))
        }
        (Some(root), Some(alias)) => {
            let related = Some((root.span, "the other directory".to_owned()));
            r.error(alias.span, "`root` and `alias` cannot both be the directory").related =
                related;
            None
        }
        (None, None) => {
            r.error(item.span.clone(), "`files` without a directory").help =
                Some("add `root = \"/srv/www\"`".to_owned());
            None
        }
    }
}

/// Settings of the files of a FastCGI origin; `None` if they are not served.
pub(super) fn beside_scripts(
    r: &mut Reader,
    item: Option<&Item<'_>>,
    root: Option<&Path>,
    linked: &[PathBuf],
) -> Option<Config> {
    let mut config = defaults_beside_scripts(root.unwrap_or_else(|| Path::new("/")), linked);
    match item {
        None => {}
        Some(item) if matches!(item.value, DeValue::Boolean(false)) => return None,
        Some(item) => {
            let table = r.table(item, &ORIGIN_FILES)?;
            manner(r, &table, &mut config, &[SOURCES, APPLICATION]);
        }
    }
    Some(config)
}

/// Regular files only: what a directory means is said by `try_files` and `index`.
pub(crate) fn defaults_beside_scripts(root: &Path, linked: &[PathBuf]) -> Config {
    Config {
        directories: false,
        index: Vec::new(),
        linked: linked.to_vec(),
        hide: Hidden::of(&[SOURCES, APPLICATION]),
        ..Config::new(root.to_path_buf())
    }
}

/// Reads the settings by which files are served into `config`. In `hide`, `default` stands for
/// `hidden`.
fn manner(r: &mut Reader, table: &Table<'_>, config: &mut Config, hidden: &[&[&str]]) {
    if let Some(item) = table.item("hide") {
        let texts = r.texts(&item);
        let default = texts.iter().any(|(text, _)| *text == DEFAULT);
        config.hide = if default { Hidden::of(hidden) } else { Hidden::default() };
        for (text, item) in texts.iter().filter(|(text, _)| *text != DEFAULT) {
            r.check(item, config.hide.add(text));
        }
    }
    if let Some(item) = table.item("types") {
        match item.pairs() {
            Some(pairs) => {
                for (suffix, _, item) in pairs {
                    let kind = r.text(&item);
                    kind.and_then(|kind| r.check(&item, config.types.set(suffix, kind)));
                }
            }
            None => _ = r.wrong_type(&item),
        }
    }
    if let Some(item) = table.item("charset") {
        let charset = r.text(&item);
        charset.and_then(|charset| r.check(&item, config.types.set_charset(charset)));
    }
    if let Some(item) = table.item("precompressed") {
        let words = Coding::ALL.map(|coding| (coding.token(), coding));
        let codings = item.each().into_iter().filter_map(|item| r.word(&item, &words));
        config.precompressed = codings.map(Neighbour::from).collect();
    }
    cache_control(r, table, config);
}

fn cache_control(r: &mut Reader, table: &Table<'_>, config: &mut Config) {
    let all = || Selector::parse("*").expect("a star is a pattern of names");
    if let Some(item) = table.item("cache_control") {
        match item.pairs() {
            Some(pairs) => {
                for (text, span, item) in pairs {
                    let value = value(r, &item);
                    match Selector::parse(text) {
                        Ok(files) => {
                            let rule = value.map(|value| CacheRule { files, value });
                            config.cache_control.extend(rule);
                        }
                        Err(why) => {
                            r.error(span, format!("`{}`: {why}", text.escape_debug()));
                        }
                    }
                }
            }
            None => {
                let rule = value(r, &item).map(|value| CacheRule { files: all(), value });
                config.cache_control.extend(rule);
            }
        }
    }
    if let Some(ms) = table.item("expires").and_then(|item| r.duration(&item)) {
        let value = format!("max-age={}", ms / 1_000);
        config.cache_control.push(CacheRule { files: all(), value });
    }
}

/// The value of a field.
fn value(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let value = policy::headers::FieldValue::parse(text);
    r.check(item, value).map(|_| text.to_owned())
}

/// Orders by X-Accel fields and X-Sendfile that an origin's responses may give; `None` if they may
/// give none.
pub(super) fn accel(r: &mut Reader, table: &Table<'_>) -> Option<AccelConfig> {
    let mut accel = AccelConfig::default();
    if let Some(item) = table.item("accel") {
        match (item.value, item.pairs()) {
            (DeValue::Boolean(on), _) => accel.expires = *on,
            (_, Some(pairs)) => {
                accel.expires = true;
                for (prefix, span, item) in pairs {
                    let root = directory(r, &item);
                    let strip = prefix.strip_suffix('/').filter(|strip| is_prefix(strip));
                    if strip.is_none() {
                        r.error(span, format!("`{}` is not a prefix", prefix.escape_debug()))
                            .help = Some("write it with both slashes: `/protected/`".to_owned());
                    }
                    accel.redirects.extend(root.zip(strip).map(|(root, strip)| named(root, strip)));
                }
            }
            _ => _ = r.wrong_type(&item),
        }
    }
    for item in table.item("x_sendfile").map(|item| item.each()).unwrap_or_default() {
        let Some(root) = directory(r, &item) else { continue };
        let Some(strip) = root.to_str().map(|text| text.trim_end_matches('/').to_owned()) else {
            continue;
        };
        accel.sendfile.push(named(root, &strip));
    }
    (accel != AccelConfig::default()).then_some(accel)
}

fn is_prefix(strip: &str) -> bool {
    let odd = |name: &str| matches!(name, "" | "." | "..") || name.contains(char::is_control);
    strip.strip_prefix('/').is_some_and(|rest| !rest.split('/').any(odd))
}

/// A directory whose files an origin names: nothing of it is hidden from who may name it, but names
/// that begin with a dot.
fn named(root: PathBuf, strip: &str) -> Config {
    Config {
        strip: strip.to_owned(),
        directories: false,
        index: Vec::new(),
        hide: Hidden::default(),
        ..Config::new(root)
    }
}

/// An absolute path.
pub(super) fn directory(r: &mut Reader, item: &Item<'_>) -> Option<PathBuf> {
    let text = r.text(item)?;
    if text.starts_with('/') && !text.chars().any(char::is_control) {
        let (path, setting) = (PathBuf::from(text), item.name.to_owned());
        let place = r.lasting(&item.span);
        r.folders.push(NamedPath { setting, path: path.clone(), place });
        return Some(path);
    }
    r.error(item.span.clone(), format!("`{}` is an absolute path", item.name));
    None
}
