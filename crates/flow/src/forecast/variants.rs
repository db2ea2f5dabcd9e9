//! Variants of a key: its stored responses one by one, in the same words under both policies.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cache::{KeyInspection, Object, VariantInspection};
use codec::Coding;
use message::HeaderId;
use message::vary::signature_values;
use policy::{DecisionStep, decision_steps::shown};

use crate::forecast::disk_candidates::on_disk;
use crate::forecast::vary_effects::{FieldEffect, VaryEffects};
use crate::forecast::words::duration;
use crate::form;
use crate::key::select_by;
use crate::state::request_context::RequestContext;

/// Variants that are reported one by one.
const VARIANTS_TOLD: usize = 20;

/// Lists the stored responses of a key, one for each variant.
pub(crate) fn variants(ctx: &RequestContext<'_>, peek: &KeyInspection) -> Vec<DecisionStep> {
    let mut steps = Vec::new();
    let now_ms = ctx.now.mono_ms;
    if let Some(until_ms) = peek.marked_until_ms.filter(|until_ms| now_ms < *until_ms) {
        let left = duration(until_ms - now_ms);
        let why = format!(
            "hit-for-miss for another {left}: a former answer could not be stored, so requests \
             for this key do not wait for each other"
        );
        let step = DecisionStep::new("mark", why);
        let longest = duration(ctx.live.limits.hit_for_miss_ttl);
        steps.push(step.fact("limit hit_for_miss_ttl", longest));
    }
    let on_disk = on_disk(peek);
    if peek.variants.len() > 1 {
        let fields = varying_fields(peek);
        let all: Vec<_> =
            fields.iter().map(|(name, values)| format!("`{name}` ({values} values)")).collect();
        if !all.is_empty() {
            let why = format!("{} are kept, by {}", peek.variants.len(), all.join(", "));
            let most = ctx.live.limits.variants.to_string();
            let effects = VaryEffects::of(peek);
            let step = DecisionStep::new("variants", why)
                .fact("limit variants", most)
                .fact("equal bodies", effects.equal_in_words())
                .fact("different bodies", effects.different_in_words())
                .fact("effect of Vary", effects.in_words());
            steps.push(step);
        }
    }
    if peek.variants.is_empty() {
        let why = match on_disk {
            Some(_) => "nothing is in memory under this key",
            None => "nothing is stored under this key",
        };
        steps.push(DecisionStep::new("stored", why));
    }
    let all = peek.variants.len();
    for (at, seen) in peek.variants.iter().enumerate().take(VARIANTS_TOLD) {
        let found = peek.found == Some(at);
        steps.push(about_variant(ctx, seen, at + 1, all, found));
    }
    if all > VARIANTS_TOLD {
        let why = format!("and {} more variants", all - VARIANTS_TOLD);
        steps.push(DecisionStep::new("stored", why));
    }
    steps.extend(on_disk);
    steps
}

/// Values of a field that count as many.
const MANY_VALUES: usize = 4;

/// Request fields that differ from client to client.
const OF_CLIENTS: [HeaderId; 4] =
    [HeaderId::UserAgent, HeaderId::Cookie, HeaderId::Referer, HeaderId::AcceptLanguage];

/// Advice if no stored response of a key fits a request because they vary by a field with many
/// values.
pub(crate) fn advice(ctx: &RequestContext<'_>, peek: &KeyInspection) -> Option<String> {
    let fields = varying_fields(peek);
    let (first, values) = fields.first().filter(|_| peek.found.is_none())?;
    let id = HeaderId::of(first.as_bytes());
    let setting = match id {
        HeaderId::Accept => "vary.accept",
        HeaderId::AcceptLanguage => "vary.accept_language",
        HeaderId::UserAgent => "vary.user_agent",
        _ => "",
    };
    let has_few = ctx.site.policy.place(&ctx.notes, setting).is_some();
    if has_few || *values < MANY_VALUES && !OF_CLIENTS.contains(&id) {
        return None;
    }
    let effects = VaryEffects::of(peek);
    let what = match effects.of_field(first.as_bytes()) {
        Some(FieldEffect::Nothing { left }) => {
            let setting = setting.strip_prefix("vary.").map_or_else(String::new, |key| {
                format!(", or bring it into few forms here: `[site.vary] {key}`")
            });
            format!(
                "leave it out of `Vary`: no stored body differs by it, and {left} would be kept{setting}"
            )
        }
        Some(few) => {
            format!("leave it out of `Vary`, or bring it into few forms here: {}", few.told())
        }
        None => usual_advice(id).to_owned(),
    };
    let equal = effects.equal_in_words();
    let equal = if equal.is_empty() { equal } else { format!(" Bodies: {equal}.") };
    let (kept, most) = (peek.variants.len(), ctx.live.limits.variants);
    let forms = if kept == 1 { "form" } else { "forms" };
    Some(format!(
        "The page is kept once for each `{first}` ({kept} {forms} so far, at most {most}: limit \
         `variants`), so hardly a request finds its own.{equal} Have the application {what}."
    ))
}

/// Advice on a field whose effect no stored bodies show.
fn usual_advice(id: HeaderId) -> &'static str {
    match id {
        HeaderId::Accept => {
            "leave it out of `Vary`, or name the forms of the page: `[site.vary] accept = \
             \"images\"`, or a list of media types"
        }
        HeaderId::AcceptLanguage => {
            "leave it out of `Vary`, or name its languages: `[site.vary] accept_language = [\"en\", \
             \"de\"]`"
        }
        HeaderId::Cookie => {
            "leave it out of `Vary`, and name the cookies that change the page in `[site.cookies] \
             key`"
        }
        HeaderId::UserAgent => {
            "leave it out of `Vary`: hardly two browsers say the same, and hardly a page differs by \
             it. If phones get another page: `[site.vary] user_agent = \"device\"`"
        }
        _ => "leave it out of `Vary`, or vary by a field that has few values",
    }
}

/// The fields that the stored responses of a key vary by, with the number of values; fields with
/// many values first.
fn varying_fields(peek: &KeyInspection) -> Vec<(String, usize)> {
    let mut fields: Vec<(String, BTreeSet<Option<&[u8]>>)> = Vec::new();
    for seen in peek.variants.iter().filter(|seen| !seen.is_banned) {
        let Some(vary) = seen.object.vary() else { continue };
        for (name, value) in signature_values(vary.spec, vary.signature) {
            let name = match HeaderId::of(name) {
                HeaderId::Other => shown(name),
                id => id.name().to_owned(),
            };
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => _ = values.insert(value),
                None => fields.push((name, BTreeSet::from([value]))),
            }
        }
    }
    let mut counted: Vec<_> =
        fields.into_iter().map(|(name, values)| (name, values.len())).collect();
    counted.sort_by_key(|(_, values)| Reverse(*values));
    counted
}

fn about_variant(
    ctx: &RequestContext<'_>,
    seen: &VariantInspection,
    number: usize,
    all: usize,
    found: bool,
) -> DecisionStep {
    let object = &seen.object;
    let values: Vec<String> = object.vary().map_or_else(Vec::new, |vary| {
        let values = signature_values(vary.spec, vary.signature);
        values.into_iter().map(|(name, value)| asked_with(name, value)).collect()
    });
    let stored = match values.is_empty() {
        true => "for every request of this key".to_owned(),
        false => format!("for requests with {}", values.join(", ")),
    };
    let use_of = if seen.is_banned {
        "it has been purged by a ban, and leaves when it is next looked at"
    } else if found {
        "it is for this request"
    } else if object.matches(&mut select_by(&ctx.request.headers)) {
        "it is for this request too, but a newer one is there"
    } else {
        "it is not for this request"
    };
    let status = object.status();
    let why = format!("{number} of {all}, status {status}, {stored}: {use_of}");
    let whole = object.whole().map(|whole| format!("{} bytes", whole.len()));
    let elsewhere = object.elsewhere().and_then(|body| body.told());
    let tags = object.tags().len();
    let mut step = DecisionStep::new("stored", why)
        .fact("body", whole.or(elsewhere).unwrap_or_else(|| "still coming".to_owned()))
        .fact("coding", coding_of(object))
        .fact("forms", forms_of(object))
        .fact("hits", object.hits().to_string())
        .fact("ETag", object.etag().map(shown).unwrap_or_default())
        .fact("tags", if tags > 0 { tags.to_string() } else { String::new() });
    for ban in &seen.bans {
        let kind = if ban.is_soft() { "soft ban" } else { "ban" };
        step = step.fact(kind, format!("number {}: {}", ban.number(), ban.text()));
    }
    step
}

/// The coding of the stored body, and the side that coded it.
fn coding_of(object: &Object) -> String {
    let flags = object.flags();
    let by = if flags.coded_here { "here" } else { "by the origin" };
    match flags.coding {
        Coding::Identity => String::new(),
        coding => format!("{}, coded {by}", coding.token()),
    }
}

/// Further forms beside the body.
fn forms_of(object: &Object) -> String {
    let forms = Coding::CODED.into_iter().filter_map(|coding| {
        let form = object.form(form::number(coding))?;
        Some(format!("{}: {} bytes", coding.token(), form.len()))
    });
    forms.collect::<Vec<_>>().join(", ")
}

/// Describes the request's value of a field that selected a variant. Values that identify people
/// are hidden.
fn asked_with(name: &[u8], value: Option<&[u8]>) -> String {
    let (text, id) = (shown(name), HeaderId::of(name));
    match value {
        None => format!("no {text}"),
        Some(_) if matches!(id, HeaderId::Cookie | HeaderId::Authorization) => {
            format!("a certain {text}")
        }
        Some(value) => format!("{text}: {}", shown(value)),
    }
}
