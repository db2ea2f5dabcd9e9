//! Scripts of a FastCGI `[[origin]]`: `root` and related keys.

use std::path::PathBuf;
use std::sync::Arc;

use message::Status;
use origin::{AddedParameter, OriginConfig, Protocol, ScriptRules, ScriptsConfig, TryFilesEntry};

use super::files::{ORIGIN_FILES, beside_scripts, defaults_beside_scripts, directory};
use crate::keys::TEXTS;
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, Row, put, rows};

/// Keys of files that also answer in front of HTTP servers.
const FRONT_KEYS: [&str; 3] = ["root", "linked", "files"];

/// Keys about the scripts of FastCGI servers and the files of both kinds.
pub(super) const SCRIPTS_ROWS: &[Row<ScriptsConfig>] = rows! {
    "root", "a path", "required for FastCGI", "Document root of a FastCGI origin: directory of its scripts, and their DOCUMENT_ROOT. Of an HTTP origin: directory whose files Larder serves instead of asking the origin, as nginx does with `try_files $uri @application`.",
        |r, item, to| put(&mut to.root, directory(r, item));
    "try_files", TEXTS, "[\"$uri\", \"$uri/\", \"/index.php\"]", "What Larder looks for in a FastCGI origin's `root`, in this order. `$uri`: a file. `$uri/`: a directory with an index. `/path`: this script. `=404`: answer with this status.",
        |r, item, to| to.rules.tries = attempts(r, item);
    "index", TEXTS, "[\"index.php\", \"index.html\"]", "Names of index files of a directory, in order of preference.",
        |r, item, to| {
            let good = |name: &str| !name.is_empty() && !name.contains('/');
            to.rules.index = names(r, item, good, "a file name");
        };
    "scripts", TEXTS, "\".php\"", "Endings of script names. Larder never runs other files.",
        |r, item, to| {
            let good = |name: &str| name.len() > 1 && name.starts_with('.') && !name.contains('/');
            to.rules.suffixes = names(r, item, good, "the end of a file name such as `.php`");
            if item.each().is_empty() {
                r.error(item.span.clone(), "`scripts` names no ending: nothing would run");
            }
        };
    "no_scripts", "a string, a list of strings, or false", "those of its sites' presets", "Directories below which no script runs, such as `/wp-content/uploads`. `*` stands for one segment, `**` for any number of segments. Presets add their own. With `false`, scripts run everywhere.",
        |r, item, to| {
            // With `false`, scripts run everywhere, whatever presets contain.
            to.rules.barred = if item.is_off() { Vec::new() } else { barred(r, item) };
        };
    "linked", TEXTS, "none", "Directories outside `root` into which symbolic links may lead.",
        |r, item, to| {
            to.linked = item.each().iter().filter_map(|item| directory(r, item)).collect();
        };
    @table(ORIGIN_FILES) "files", "a table or false", "none", "How Larder serves files in `root` that are not scripts: see `[origin.files]`. With `false`, Larder serves none.",
        |r, item, to| to.files = beside_scripts(r, item, to);
    #Secret "params", "a table of names and values", "none", "Parameters that every script of a FastCGI origin gets besides those of the request, as nginx's `fastcgi_param` adds them: `{ PHP_VALUE = \"memory_limit=256M\" }`. Parameters that the request decides cannot be set.",
        |r, item, to| to.params = params(r, item);
};

/// Reads these keys, for an origin of FastCGI servers.
pub(super) fn scripts(r: &mut Reader, table: &TomlTable<'_>, config: &mut OriginConfig) {
    let servers = &config.servers;
    let fastcgi = servers.iter().filter(|server| server.protocol == Protocol::FastCgi).count();
    if fastcgi < servers.len() {
        if fastcgi > 0 {
            let span = table.item("servers").map_or_else(|| table.span.clone(), |item| item.span);
            r.error(span, "an origin's servers speak either HTTP or FastCGI").help =
                Some("make two origins of it".to_owned());
        }
        return front_files(r, table, config);
    }
    // Without servers the kind is unknown, and that is reported already.
    if table.item("root").is_none() && fastcgi > 0 {
        r.error(table.span.clone(), "a FastCGI origin without `root`").help =
            Some("add `root = \"/var/www/html\"`, where the application's scripts are".into());
    }
    let (root, rules) = (PathBuf::from("/"), ScriptRules::default());
    let mut scripts =
        ScriptsConfig { root, linked: Vec::new(), rules, files: None, params: Arc::default() };
    rows::read(r, table, SCRIPTS_ROWS, &mut scripts);
    if table.item("files").is_none() {
        scripts.files = Some(defaults_beside_scripts(&scripts.root, &scripts.linked));
    }
    config.scripts = Some(scripts);
}

/// Reads the keys that are for files in front of HTTP servers, too.
fn front_files(r: &mut Reader, table: &TomlTable<'_>, config: &mut OriginConfig) {
    let keys = SCRIPTS_ROWS.iter().filter(|row| !FRONT_KEYS.contains(&row.key.name));
    for item in keys.filter_map(|row| table.item(row.key.name)) {
        r.error(item.span.clone(), format!("`{}` is for FastCGI servers", item.name)).help =
            Some("their URLs begin with fastcgi:// or fastcgi+unix:".to_owned());
    }
    let front: Vec<_> = FRONT_KEYS.iter().filter_map(|name| table.item(name)).collect();
    let Some(first) = front.first() else { return };
    if table.item("root").is_none() {
        let message = format!("`{}` without `root`, the directory of the files", first.name);
        r.error(first.span.clone(), message);
        return;
    }
    let (root, rules) = (PathBuf::from("/"), ScriptRules::default());
    let mut read =
        ScriptsConfig { root, linked: Vec::new(), rules, files: None, params: Arc::default() };
    rows::read(r, table, SCRIPTS_ROWS, &mut read);
    config.files = match table.item("files") {
        Some(_) => read.files,
        None => Some(defaults_beside_scripts(&read.root, &read.linked)),
    };
}

fn params(r: &mut Reader, item: &SettingValue<'_>) -> Arc<[AddedParameter]> {
    let mut found = Vec::new();
    for (name, span, item) in r.pairs(item) {
        let Some(value) = r.text(&item) else { continue };
        match AddedParameter::new(name, value) {
            Ok(parameter) => found.push(parameter),
            Err(error) => _ = r.error(span, format!("`{}`: {error}", name.escape_debug())),
        }
    }
    found.into()
}

fn attempts(r: &mut Reader, item: &SettingValue<'_>) -> Vec<TryFilesEntry> {
    let tries: Vec<_> =
        r.texts(item).iter().filter_map(|(text, item)| attempt(r, text, item)).collect();
    let last = tries.len().saturating_sub(1);
    if tries
        .iter()
        .take(last)
        .any(|one| matches!(one, TryFilesEntry::Front(_) | TryFilesEntry::Status(_)))
    {
        r.error(item.span.clone(), "nothing is tried after a script or a status");
    }
    tries
}

/// Reads directories without scripts.
pub(super) fn barred(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    let good = |name: &str| name.starts_with('/') && is_plain(name);
    names(r, item, good, "a directory's path below `root`, from `/` on")
}

/// Reads one item of `try_files`, in nginx's form.
fn attempt(r: &mut Reader, text: &str, item: &SettingValue<'_>) -> Option<TryFilesEntry> {
    match text {
        "$uri" => return Some(TryFilesEntry::Path),
        "$uri/" => return Some(TryFilesEntry::Directory),
        _ => {}
    }
    if let Some(code) = text.strip_prefix('=') {
        let status = code.parse().ok().filter(|code| (400..=599).contains(code));
        if let Some(status) = status.filter(|_| code.len() == 3).and_then(Status::new) {
            return Some(TryFilesEntry::Status(status));
        }
        r.error(item.span.clone(), format!("`{text}` is not a status from =400 to =599"));
        return None;
    }
    // The query is always passed on; these are nginx's ways to ask for it.
    let known = ["?$args", "?$query_string", "$is_args$args", "?"];
    let name = known.iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    if name.starts_with('/') && name.len() > 1 && is_plain(name) && !name.contains(['?', '$']) {
        return Some(TryFilesEntry::Front(name.to_owned()));
    }
    r.error(item.span.clone(), format!("`{text}` is nothing that can be tried")).help =
        Some("write `$uri`, `$uri/`, a script such as `/index.php`, or `=404`".to_owned());
    None
}

/// Returns true if a path has no empty segments, no dot segments and no control characters.
fn is_plain(path: &str) -> bool {
    let bare = path.strip_suffix('/').unwrap_or(path);
    let mut segments = bare.split('/').skip(1);
    segments.all(|s| !s.is_empty() && s != "." && s != ".." && !s.chars().any(char::is_control))
}

fn names(
    r: &mut Reader,
    item: &SettingValue<'_>,
    good: impl Fn(&str) -> bool,
    what: &str,
) -> Vec<String> {
    let mut names = Vec::new();
    for (text, item) in r.texts(item) {
        if good(text) {
            names.push(text.to_owned());
        } else {
            r.error(item.span, format!("`{text}` is not {what}"));
        }
    }
    names
}
