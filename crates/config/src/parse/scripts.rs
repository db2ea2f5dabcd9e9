//! Scripts of a FastCGI `[[origin]]`: `root` and the keys that belong to it.

use message::Status;
use origin::{Protocol, ScriptRules, ScriptsConfig, ServerConfig, Try};
use toml::de::DeValue;

use super::files::directory;
use crate::reader::{Item, Reader, Table};

/// Keys that say nothing to HTTP servers.
const KEYS: [&str; 7] = ["root", "try_files", "index", "scripts", "no_scripts", "linked", "files"];

/// Reads these keys; `None` for an origin of HTTP servers.
pub(super) fn scripts(
    r: &mut Reader,
    table: &Table<'_>,
    servers: &[ServerConfig],
) -> Option<ScriptsConfig> {
    let fastcgi = servers.iter().filter(|server| server.protocol == Protocol::FastCgi).count();
    if fastcgi < servers.len() {
        if fastcgi > 0 {
            let span = table.item("servers").map_or_else(|| table.span.clone(), |item| item.span);
            r.error(span, "an origin's servers speak either HTTP or FastCGI").help =
                Some("make two origins of it".to_owned());
        }
        for item in KEYS.iter().filter_map(|key| table.item(key)) {
            r.error(item.span.clone(), format!("`{}` is for FastCGI servers", item.name)).help =
                Some("their URLs begin with fastcgi:// or fastcgi+unix:".to_owned());
        }
        return None;
    }
    let root = match table.item("root") {
        Some(item) => directory(r, &item),
        // Without any server nothing is known yet, and that is reported already.
        None if servers.is_empty() => None,
        None => {
            r.error(table.span.clone(), "a FastCGI origin without `root`").help =
                Some("add `root = \"/var/www/html\"`, where the application's scripts are".into());
            None
        }
    };
    let rules = rules(r, table);
    let linked = table.item("linked").map(|item| item.each()).unwrap_or_default();
    let linked: Vec<_> = linked.iter().filter_map(|item| directory(r, item)).collect();
    let item = table.item("files");
    let files = super::files::beside_scripts(r, item.as_ref(), root.as_deref(), &linked);
    Some(ScriptsConfig { root: root?, linked, rules, files })
}

fn rules(r: &mut Reader, table: &Table<'_>) -> ScriptRules {
    let mut rules = ScriptRules::default();
    if let Some(item) = table.item("try_files") {
        rules.tries =
            r.texts(&item).iter().filter_map(|(text, item)| attempt(r, text, item)).collect();
        let last = rules.tries.len().saturating_sub(1);
        let ends = |t: &Try| matches!(t, Try::Front(_) | Try::Status(_));
        if rules.tries.iter().take(last).any(ends) {
            r.error(item.span, "nothing is tried after a script or a status");
        }
    }
    if let Some(item) = table.item("index") {
        rules.index =
            names(r, &item, |name| !name.is_empty() && !name.contains('/'), "a file name");
    }
    if let Some(item) = table.item("scripts") {
        let good = |name: &str| name.len() > 1 && name.starts_with('.') && !name.contains('/');
        rules.suffixes = names(r, &item, good, "the end of a file name such as `.php`");
        if item.each().is_empty() {
            r.error(item.span, "`scripts` names no ending: nothing would run");
        }
    }
    if let Some(item) = table.item("no_scripts").filter(|item| !is_off(item)) {
        rules.barred = barred(r, &item);
    }
    rules
}

/// Directories below which no script runs.
pub(super) fn barred(r: &mut Reader, item: &Item<'_>) -> Vec<String> {
    let good = |name: &str| name.starts_with('/') && is_plain(name);
    names(r, item, good, "a directory's path below `root`, from `/` on")
}

/// Returns true for `no_scripts = false`: scripts run everywhere, whatever presets say.
pub(super) fn is_off(item: &Item<'_>) -> bool {
    matches!(item.value, DeValue::Boolean(false))
}

/// One word of `try_files`, as nginx has them.
fn attempt(r: &mut Reader, text: &str, item: &Item<'_>) -> Option<Try> {
    match text {
        "$uri" => return Some(Try::Path),
        "$uri/" => return Some(Try::Directory),
        _ => {}
    }
    if let Some(code) = text.strip_prefix('=') {
        let status = code.parse().ok().filter(|code| (400..=599).contains(code));
        if let Some(status) = status.filter(|_| code.len() == 3).and_then(Status::new) {
            return Some(Try::Status(status));
        }
        r.error(item.span.clone(), format!("`{text}` is not a status from =400 to =599"));
        return None;
    }
    // The query goes along by itself; these are nginx's ways to say so.
    let known = ["?$args", "?$query_string", "$is_args$args", "?"];
    let name = known.iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    if name.starts_with('/') && name.len() > 1 && is_plain(name) && !name.contains(['?', '$']) {
        return Some(Try::Front(name.to_owned()));
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

fn names(r: &mut Reader, item: &Item<'_>, good: impl Fn(&str) -> bool, what: &str) -> Vec<String> {
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
