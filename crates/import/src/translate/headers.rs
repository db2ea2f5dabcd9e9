//! Fields of responses: `add_header`, `expires` and the module that sets more.

use super::conditions::field_name;
use super::state::{Handler, Scope};
use super::units;
use crate::document::{quote, quote_key};
use crate::syntax::Directive;

/// Seconds of `expires max`.
const MAX_SECONDS: u64 = 315_360_000;

/// The value of Cache-Control that `expires` and `add_header` say together, and from what.
pub(crate) struct Lifetime {
    pub(crate) value: String,
    pub(crate) from: Vec<usize>,
}

/// Sets fields of responses.
pub(crate) fn response_fields(scope: &mut Scope<'_, '_>) {
    let own = scope.chain.own().iter().any(|directive| directive.name == "add_header");
    for directive in scope.chain.all(&["add_header"]) {
        add_header(scope, directive, own);
    }
    for directive in scope.chain.front_fields().to_vec() {
        let key = format!("response_headers.set.{}", quote_key(directive.arg(0)));
        // A lifetime is one of files alone.
        if !scope.out.has(&key) && !directive.arg(0).eq_ignore_ascii_case("cache-control") {
            add_header(scope, directive, true);
        }
    }
    for directive in scope.chain.all(&["more_set_headers"]) {
        for line in directive.args.iter().filter(|arg| !arg.starts_with('-')) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            set(scope, directive, name.trim(), value.trim());
        }
    }
    for directive in scope.chain.all(&["more_clear_headers"]) {
        let names = directive.args.iter().filter(|arg| !arg.starts_with('-'));
        scope.out.add("response_headers.unset", names.map(String::as_str), &[directive.id]);
    }
    if let Some(lifetime) = lifetime(scope)
        && scope.has_application()
    {
        scope.out.put("response_headers.set.Cache-Control", quote(&lifetime.value), &lifetime.from);
    }
}

fn add_header(scope: &mut Scope<'_, '_>, directive: &Directive, is_own: bool) {
    let (name, value) = (directive.arg(0), directive.arg(1));
    let lower = name.to_ascii_lowercase();
    let is_lifetime = lower == "cache-control" && scope.handler != Handler::Answer;
    if value.contains("upstream_cache_status") {
        return cache_status(scope, directive, &lower);
    }
    if is_lifetime && !value.contains('$') {
        // Said together with `expires`.
        return;
    }
    match lower.as_str() {
        "strict-transport-security" if scope.is_site => return hsts(scope, directive),
        "pragma" if value.eq_ignore_ascii_case("public") => {
            return scope.not_needed(directive, "no client reads this value");
        }
        "alt-svc" => {
            return scope.left(directive, "HTTP/3 is not there", "leave it out");
        }
        _ => {}
    }
    let remark = if is_own { "fields of the whole site are sent, too" } else { "" };
    set(scope, directive, name, value);
    if !value.is_empty() && with_variables(value).is_some() {
        scope.carried(directive, if scope.is_site { "" } else { remark });
    }
}

fn set(scope: &mut Scope<'_, '_>, directive: &Directive, name: &str, value: &str) {
    if value.is_empty() {
        return scope.default(directive, "a field without a value is not sent");
    }
    let Some(value) = with_variables(value) else {
        let instead = "`$host`, `$path`, `$args`, `$scheme`, `$client`, `${http.X-Name}` are there";
        return scope.left(directive, "it has a variable that fields do not know", instead);
    };
    let key = format!("response_headers.set.{}", quote_key(name));
    scope.out.put(&key, quote(&value), &[directive.id]);
}

/// The value of a field, with the variables that fields have here; `None` if it has another one.
pub(crate) fn with_variables(value: &str) -> Option<String> {
    let mut parts = value.split('$');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len()))
            }
        };
        match name {
            "host" | "http_host" => made.push_str("${host}"),
            "scheme" => made.push_str("${scheme}"),
            "uri" | "document_uri" => made.push_str("${path}"),
            "request_uri" => made.push_str("${path}${query}"),
            "args" | "query_string" => made.push_str("${args}"),
            "remote_addr" => made.push_str("${client}"),
            _ => match name.strip_prefix("http_").filter(|field| !field.is_empty()) {
                Some(field) => {
                    made.push_str("${http.");
                    made.push_str(&field_name(field));
                    made.push('}');
                }
                None => return None,
            },
        }
        made.push_str(rest);
    }
    Some(made)
}

fn cache_status(scope: &mut Scope<'_, '_>, directive: &Directive, name: &str) {
    if name == "x-cache" {
        scope.state.document.top.put("x_cache", "true", &[directive.id]);
    } else {
        scope.default(directive, "`Cache-Status` says so on every response (RFC 9211)");
    }
}

fn hsts(scope: &mut Scope<'_, '_>, directive: &Directive) {
    let (mut age, mut subdomains, mut preload, mut is_known) = (None, false, false, true);
    for part in directive.arg(1).split(';').map(str::trim).filter(|part| !part.is_empty()) {
        match part.to_ascii_lowercase().as_str() {
            "includesubdomains" => subdomains = true,
            "preload" => preload = true,
            other => match other.strip_prefix("max-age=").map(|age| age.trim_matches('"')) {
                Some(seconds) => age = seconds.parse::<u64>().ok(),
                None => is_known = false,
            },
        }
    }
    let Some(seconds) = age.filter(|_| is_known) else {
        return set(scope, directive, directive.arg(0), directive.arg(1));
    };
    let mut parts = vec![format!("max_age = {}", units::duration(seconds * 1_000))];
    parts.extend(subdomains.then(|| "subdomains = true".to_owned()));
    parts.extend(preload.then(|| "preload = true".to_owned()));
    scope.out.put("hsts", format!("{{ {} }}", parts.join(", ")), &[directive.id]);
    scope.carried(directive, "");
}

/// The Cache-Control that the scope's responses get; `None` if nothing is said.
pub(crate) fn lifetime(scope: &mut Scope<'_, '_>) -> Option<Lifetime> {
    let is_own = |directive: &&Directive| {
        directive.arg(0).eq_ignore_ascii_case("cache-control") && !directive.arg(1).contains('$')
    };
    let (mut words, mut from) = (Vec::new(), Vec::new());
    if scope.handler != Handler::Answer {
        for directive in scope.chain.all(&["add_header"]).into_iter().filter(is_own) {
            words.push(directive.arg(1).to_owned());
            from.push(directive.id);
        }
    }
    if let Some(directive) = scope.chain.one("expires") {
        match expires(directive) {
            Some(Some(word)) => {
                from.push(directive.id);
                if word == "no-cache" || !words.iter().any(|own| own.contains("max-age")) {
                    // nginx sends it first.
                    words.insert(0, word);
                }
            }
            Some(None) => scope.default(directive, "no lifetime is added"),
            None if by_type(scope, directive).is_some() => {}
            None => {
                let instead = "`cache_control` of `files` has a table by type and name";
                scope.left(directive, "this lifetime depends on more than the path", instead);
            }
        }
    }
    (!words.is_empty()).then(|| Lifetime { value: words.join(", "), from })
}

/// The table of lifetimes by type, where `expires` has a variable of a map of types.
pub(crate) fn by_type(scope: &Scope<'_, '_>, directive: &Directive) -> Option<Lifetime> {
    let name = directive.arg(0).strip_prefix('$')?;
    let map = scope.state.world.maps.get(name)?;
    if map.name != "map" || map.arg(0) != "$sent_http_content_type" {
        return None;
    }
    let (mut pairs, mut otherwise) = (Vec::new(), None);
    let mut from = vec![directive.id, map.id];
    for own in map.children() {
        from.push(own.id);
        let Some(word) = lifetime_of(own.arg(0))? else { continue };
        let key = match own.name.as_str() {
            "default" => {
                otherwise = Some(word);
                continue;
            }
            "" => continue,
            key if !key.starts_with('~') => key.to_owned(),
            key => {
                let plain = key.trim_start_matches(['~', '*', '^']).replace('\\', "");
                let is_type = |b: u8| b.is_ascii_alphanumeric() || b"/-+.".contains(&b);
                match plain.strip_suffix('/') {
                    Some(group) => format!("{group}/*"),
                    None if plain.contains('/') && plain.bytes().all(is_type) => plain,
                    None => return None,
                }
            }
        };
        if key.contains(';') {
            // The type alone is compared here.
            continue;
        }
        pairs.push(format!("{} = {}", quote(&key), quote(&word)));
    }
    pairs.extend(otherwise.map(|word| format!("\"*\" = {}", quote(&word))));
    let value = format!("{{ {} }}", pairs.join(", "));
    (!pairs.is_empty()).then_some(Lifetime { value, from })
}

/// The word of Cache-Control that `expires` means: none for `off`, and nothing at all if it is not
/// understood.
fn expires(directive: &Directive) -> Option<Option<String>> {
    lifetime_of(directive.arg(0))
}

fn lifetime_of(text: &str) -> Option<Option<String>> {
    match text {
        "off" => Some(None),
        "max" => Some(Some(format!("max-age={MAX_SECONDS}"))),
        "epoch" => Some(Some("no-cache".to_owned())),
        time if time.starts_with('-') => Some(Some("no-cache".to_owned())),
        time => {
            let ms = units::time_ms(time.trim_start_matches('+'))?;
            Some(Some(format!("max-age={}", ms / 1_000)))
        }
    }
}
