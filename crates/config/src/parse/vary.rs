//! `[site.vary]`: request fields in which clients say the same in many ways.

use message::header::is_token;
use policy::rules::Settings;
use policy::vary::{CookieValues, DeviceClasses, Languages, MediaPreference, VaryRules};
use toml::de::DeValue;

use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

section! {
    pub(crate) VARY, pub(super) VARY_ROWS: VaryRules; "[site.vary]",
    "Request fields that Larder brings into one of few forms before it looks a request up, so that \
     a response with `Vary` has few variants. The origin gets the form. Requests that pass the \
     cache keep their fields. A key with `false` leaves the field as it is.";
    "accept_language", "a list of language tags, or false", "the client's field", "Languages of the site, the default first. `Accept-Language` becomes the one that the client likes best (RFC 4647 lookup, with weights): `de-AT` finds `de`.",
        accept_language
        => |page, vary| if let Some(languages) = &vary.languages {
            let tags = languages.iter().map(|tag| tag.escape_ascii());
            page.line("Accept-Language", one_of(tags));
        };
    "accept", "\"images\", \"markdown\", a list of media types, or false", "the client's field", "`images`: `Accept` keeps only whether the client names AVIF, WebP and HTML. `markdown`: it becomes `text/html` or `text/markdown`, whichever the client prefers. A list: the type that the client likes best, the default first. `*/*;q=0.8` follows, so that the origin may send another type.",
        accept
        => |page, vary| {
            page.list("Accept", vary.media.as_ref().map(|media| format!("for {media}")));
        };
    "user_agent", "\"device\", a list, or false", "the client's field", "`device`, or `[\"mobile\", \"desktop\"]`: the origin gets the class of the client's device in `X-Device`, and the User-Agent of a usual browser of this class, without client hints. `[\"mobile\", \"tablet\", \"desktop\"]` has three classes. Personal requests keep their User-Agent.",
        user_agent
        => |page, vary| if let Some(devices) = vary.devices {
            page.line("X-Device", one_of(devices.names()));
        };
    "cookie", "a list of names, or a table of lists of values", "none", "Cookies that change pages, such as a currency. Their values are part of the cache key, as with `[site.cookies] key`. With values (`{ currency = [\"EUR\", \"USD\"] }`), Larder removes a cookie that has another.",
        cookie
        => |page, vary| page.list("key: cookies", vary.cookies.iter().map(|own| {
            match &own.values {
                Some(values) => format!("{} ({})", own.name, values.join(", ")),
                None => own.name.clone(),
            }
        }));
}

fn one_of(values: impl IntoIterator<Item = impl ToString>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    format!("one of {}", values.join(", "))
}

/// Applies `vary` to `settings`.
pub(super) fn vary(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
    match item.is_off() {
        true => settings.vary = VaryRules::default(),
        false => _ = rows::read_table(r, item, &VARY, VARY_ROWS, &mut settings.vary),
    }
}

fn accept_language(r: &mut Reader, item: &SettingValue<'_>, vary: &mut VaryRules) {
    vary.languages = list(r, item).and_then(|tags| r.check(item, Languages::new(&tags)));
}

fn accept(r: &mut Reader, item: &SettingValue<'_>, vary: &mut VaryRules) {
    vary.media = match item.value.as_str() {
        Some(_) => {
            let words =
                [("images", MediaPreference::Images), ("markdown", MediaPreference::markdown())];
            let words = words.each_ref().map(|(word, media)| (*word, media));
            r.word(item, &words).cloned()
        }
        None => list(r, item).and_then(|types| r.check(item, MediaPreference::types(&types))),
    };
}

fn user_agent(r: &mut Reader, item: &SettingValue<'_>, vary: &mut VaryRules) {
    if item.value.as_str().is_some() {
        vary.devices = r.word(item, &[("device", DeviceClasses::Two)]);
        return;
    }
    let Some(names) = list(r, item) else {
        vary.devices = None;
        return;
    };
    let known = [DeviceClasses::Two, DeviceClasses::Three];
    vary.devices = known.into_iter().find(|classes| {
        let own = classes.names();
        own.len() == names.len() && own.iter().all(|name| names.contains(name))
    });
    if vary.devices.is_none() {
        r.error(item.span.clone(), "`user_agent` names no known classes of devices").help = Some(
            "write \"device\", [\"mobile\", \"desktop\"] or [\"mobile\", \"tablet\", \"desktop\"]"
                .to_owned(),
        );
    }
}

/// The texts of a list; `None` for `false`.
fn list<'a>(r: &mut Reader, item: &SettingValue<'a>) -> Option<Vec<&'a str>> {
    let texts = (!item.is_off()).then(|| r.texts(item))?;
    Some(texts.into_iter().map(|(text, _)| text).collect())
}

fn cookie(r: &mut Reader, item: &SettingValue<'_>, vary: &mut VaryRules) {
    vary.cookies.clear();
    if item.is_off() {
        return;
    }
    if !matches!(item.value, DeValue::Table(_)) {
        for (name, item) in r.texts(item) {
            let known = vary.cookies.iter().any(|own| own.name == name);
            if is_cookie_name(r, name, &item) && !known {
                vary.cookies.push(CookieValues { name: name.to_owned(), values: None });
            }
        }
        return;
    }
    for (name, _, item) in r.pairs(item) {
        let values: Vec<_> =
            r.texts(&item).into_iter().map(|(value, _)| value.to_owned()).collect();
        if item.each().is_empty() {
            r.error(item.span.clone(), format!("the cookie `{name}` may have no value")).help =
                Some("list the values that change the page".to_owned());
        } else if let Some(odd) = values.iter().find(|value| !is_cookie_value(value)) {
            let odd = odd.escape_debug();
            r.error(item.span.clone(), format!("\"{odd}\" is not the value of a cookie"));
        } else if is_cookie_name(r, name, &item) {
            vary.cookies.push(CookieValues { name: name.to_owned(), values: Some(values) });
        }
    }
}

fn is_cookie_name(r: &mut Reader, name: &str, item: &SettingValue<'_>) -> bool {
    let is_name = is_token(name.as_bytes()) && !name.contains('*');
    if !is_name {
        let name = name.escape_debug();
        r.error(item.span.clone(), format!("`{name}` is not the name of a cookie")).help =
            Some("names in `cookie` are whole names".to_owned());
    }
    is_name
}

/// Returns true for what a cookie's value may be (RFC 6265 4.1.1), as it stands in the field.
fn is_cookie_value(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'\\'))
}
