//! Forecast of the form in which a client gets a stored body, with the reason.

use std::sync::Arc;

use bytes::Bytes;
use cache::Object;
use codec::Coding;
use message::HeaderId;
use policy::{DecisionStep, decision_steps::shown};

use crate::declared;
use crate::dictionary::{self, DictionaryAnswer, FormRequester};
use crate::form::{self, Choice, FormSource};
use crate::sent_form::SentForm;
use crate::state::dictionary::Dictionaries;
use crate::state::request_context::RequestContext;
use crate::stored_heads::stored_head;
use codec::CompressionScope;

/// Reports the form of the client's response.
pub(super) fn about_form(
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    dictionaries: &Dictionaries,
) -> DecisionStep {
    let is_one = !declared::is_negotiated(ctx, object);
    let DictionaryAnswer { used, form } = match is_one {
        true => dictionary::of_one_form(ctx.request).into(),
        false => dictionary::seek(
            FormRequester::Forecast(dictionaries),
            declared::dictionary_context(ctx),
            object,
        ),
    };
    let step = match form {
        Some(form) => {
            let (bytes, sent) = *form;
            with_dictionary(&bytes, &sent)
        }
        None if is_one => DecisionStep::new("form", why_one(ctx, object)),
        None => chosen(ctx, object),
    };
    step.fact("dictionary", used.to_string())
}

/// Reports a form with the client's dictionary.
fn with_dictionary(bytes: &Bytes, sent: &SentForm) -> DecisionStep {
    let coding = sent.coding.token().unwrap_or_default();
    DecisionStep::new("form", format!("in {coding}, {} bytes, which lies beside it", bytes.len()))
        .fact("ETag", sent.tag.as_deref().map(shown).unwrap_or_default())
}

/// Reports the form that Accept-Encoding selects.
fn chosen(ctx: &RequestContext<'_>, object: &Object) -> DecisionStep {
    let Choice { coding, from, wanted, lacks_gzip } =
        form::choose(object, ctx.request, &ctx.live.compression);
    let why = match (from, coding) {
        (FormSource::Stored, Coding::Identity) => "as it is stored, without a coding".to_owned(),
        (FormSource::Stored, coding) => format!("as it is stored, in {}", coding.token()),
        (FormSource::Beside(_), coding) => format!("in {}, which lies beside it", coding.token()),
        (FormSource::Decoded, _) => format!("decoded from {}", object.flags().coding.token()),
    };
    let accept = ctx.request.headers.value(HeaderId::AcceptEncoding).map(shown);
    let rathers = [lacks_gzip.then_some(Coding::Gzip), wanted.filter(|c| *c != Coding::Gzip)];
    let rathers: Vec<String> =
        rathers.into_iter().flatten().map(|coding| rather(ctx, object, coding)).collect();
    DecisionStep::new("form", why)
        .fact("Accept-Encoding", accept.unwrap_or_else(|| "none".to_owned()))
        .fact("ETag", form::tag(object, coding).as_deref().map(shown).unwrap_or_default())
        .fact("rather", rathers.join("; "))
}

/// The time when a preferred form will be made.
fn rather(ctx: &RequestContext<'_>, object: &Object, coding: Coding) -> String {
    let settings = &ctx.live.compression;
    let hits = if coding == Coding::Gzip { settings.gzip_hits } else { settings.warm_hits };
    match object.wants_form(form::number(coding), 1) {
        true => format!("{}, which is made after {hits} hits", coding.token()),
        false => format!("{}, which was tried, and is no shorter or on its way", coding.token()),
    }
}

/// The reason for which a body has a single form.
fn why_one(ctx: &RequestContext<'_>, object: &Object) -> String {
    if ctx.site.compress == CompressionScope::Off {
        return "as it is stored: the site has `compress = \"off\"`".to_owned();
    }
    let Some(head) = stored_head(object) else { return "as it is stored".to_owned() };
    let worth = &ctx.live.compression.worth;
    match worth.judge(head.status, &head.headers, object.length()) {
        Err(why) => format!("as it is stored, not coded here: {why}"),
        Ok(()) => "as it is stored: the settings were others when it came".to_owned(),
    }
}
