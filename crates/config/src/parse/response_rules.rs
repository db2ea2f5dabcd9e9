//! `[[site.response]]`: rules for responses of origins.

use policy::response_rules::{MediaPattern, ResponseRule};

use super::cache::{STATUSES, lifetime, statuses};
use super::conditions::{NAMED, refuse_empty, response_fields};
use super::headers::{self, HEADER_ROWS, RESPONSE_HEADERS};
use crate::keys::{TABLE, TEXTS};
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

section! {
    pub(crate) RESPONSE, RESPONSE_ROWS: ResponseRule; "[[site.response]]",
    "A rule for responses of origins; `[[site.route.response]]` for those of one route. All \
     conditions must hold, a list has alternatives. All rules that match apply in the order of the \
     file, those of a route after those of its site, and the later wins. Larder looks at responses \
     as origins send them.";
    "status", STATUSES, "every status", "Statuses: `404`, `\"5xx\"`.",
        |r, item, to| {
            to.scope.status = statuses(r, item);
            refuse_empty(r, item);
        };
    "type", TEXTS, "every type", "Types of content: `text/html`, `image/*`. Responses without Content-Type have none.",
        |r, item, to| {
            to.scope.kinds = kinds(r, item);
            refuse_empty(r, item);
        };
    "header", NAMED, "none", "Response fields, with values as in `[site.route.when]`.",
        |r, item, to| to.scope.fields = response_fields(r, item);
    "min_bytes", size scope.min_bytes, "none", "Least Content-Length. Responses without Content-Length do not match.";
    "max_bytes", size scope.max_bytes, "none", "Largest Content-Length. Responses without Content-Length do not match.";
    "store", boolean store, "as without the rule", "Whether Larder may store the responses. `true` lifts the `false` of an earlier rule, and nothing else: what the origin forbids is not stored.";
    "ttl", crate::keys::DURATION, "`[site.cache] ttl`", "Lifetime of the responses if they state none, at least 100ms. `0s`: no lifetime.",
        |r, item, to| to.ttl_ms = lifetime(r, item);
    @table(RESPONSE_HEADERS) "headers", TABLE, "none", "Changes to the responses for the client, after those of `response_headers`: see `[site.response_headers]`. What is stored stays as the origin sent it.",
        |r, item, to| {
            rows::read_table(r, item, &RESPONSE_HEADERS, HEADER_ROWS, &mut to.headers);
        };
}

/// Adds the rules of `item` behind those of the site, whose locations are kept with the settings.
pub(super) fn add(r: &mut Reader, item: &SettingValue<'_>, to: &mut Vec<ResponseRule>) {
    for table in r.tables(item, &RESPONSE) {
        let mut rule = ResponseRule::default();
        if !rows::read(r, &table, RESPONSE_ROWS, &mut rule) {
            continue;
        }
        if rule.scope.is_everything() {
            r.error(table.span.clone(), "a rule for responses without conditions").help = Some(
                "write what is for every response into [site.cache] and [site.response_headers]"
                    .to_owned(),
            );
        }
        if !rule.is_about_storing() && rule.headers.is_empty() {
            r.error(table.span.clone(), "a rule for responses that does nothing").help =
                Some("add `store`, `ttl` or `headers`".to_owned());
        }
        if let (Some(least), Some(most)) = (rule.scope.min_bytes, rule.scope.max_bytes)
            && least > most
        {
            r.error(
                table.span.clone(),
                "no response is at least `min_bytes` and at most `max_bytes`",
            );
        }
        rule.told = rule.scope.told().into();
        to.push(rule);
    }
}

/// Reads types of content.
fn kinds(r: &mut Reader, item: &SettingValue<'_>) -> Vec<MediaPattern> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, MediaPattern::parse(text))).collect()
}

/// Shows rules for responses.
pub(super) fn show(page: &mut SettingsPage<'_>, rules: &[ResponseRule]) {
    for rule in rules {
        let words = rule.words();
        if !words.is_empty() {
            page.line("responses", words);
        }
        headers::show(page, &format!("to the client, {}", rule.told), &rule.headers);
    }
}
