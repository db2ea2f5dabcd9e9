//! Forecast of the form in which a client gets a stored body, and why.

use cache::Object;
use codec::Coding;
use message::HeaderId;
use policy::{Step, told::shown};

use crate::ask::Ask;
use crate::compression::Compress;
use crate::dictionary;
use crate::form::{self, Choice, Given};
use crate::live::Shared;
use crate::reply::stored_head;

/// Tells which form the client of a request gets.
pub(super) fn about_form(ask: &Ask<'_>, object: &Object, shared: &Shared) -> Step {
    let flags = object.flags();
    if !flags.negotiated {
        return Step::new("form", why_one(ask, object));
    }
    let dictionary = dictionary::told(&shared.dictionaries, ask.live, ask.request, object);
    if let Some((bytes, sent)) =
        dictionary::named(ask.request).and_then(|hash| dictionary::form_with(object, &hash))
    {
        return Step::new("form", format!("in dcz, {} bytes, which lies beside it", bytes.len()))
            .fact("Available-Dictionary", dictionary.unwrap_or_default())
            .fact("ETag", sent.tag.as_deref().map(shown).unwrap_or_default());
    }
    let Choice { coding, from, wanted } = form::choose(object, ask.request, &ask.live.compression);
    let why = match (from, coding) {
        (Given::Stored, coding) => format!("as it is stored, in {}", coding.token()),
        (Given::Beside(_), coding) => format!("in {}, which lies beside it", coding.token()),
        (Given::Decoded, _) => format!("decoded from {}", flags.coding.token()),
    };
    let accept = ask.request.headers.value(HeaderId::AcceptEncoding).map(shown);
    Step::new("form", why)
        .fact("Accept-Encoding", accept.unwrap_or_else(|| "none".to_owned()))
        .fact("ETag", form::tag(object, coding).as_deref().map(shown).unwrap_or_default())
        .fact("Available-Dictionary", dictionary.unwrap_or_default())
        .fact("rather", wanted.map(|coding| rather(ask, object, coding)).unwrap_or_default())
}

/// When the form that the client would rather have will be made.
fn rather(ask: &Ask<'_>, object: &Object, coding: Coding) -> String {
    let warm = ask.live.compression.warm_hits;
    match object.wants_form(form::number(coding), 1) {
        true => format!("{}, which is made after {warm} hits", coding.token()),
        false => format!("{}, which was tried, and is no shorter or on its way", coding.token()),
    }
}

/// Why a body has but one form.
fn why_one(ask: &Ask<'_>, object: &Object) -> String {
    if ask.site.compress == Compress::Off {
        return "as it is stored: the site has `compress = \"off\"`".to_owned();
    }
    let Some(head) = stored_head(object) else { return "as it is stored".to_owned() };
    let worth = &ask.live.compression.worth;
    match worth.judge(head.status, &head.headers, object.length()) {
        Err(why) => format!("as it is stored, not coded here: {why}"),
        Ok(()) => "as it is stored, not coded here: there was no memory for that, or the settings \
                   were others"
            .to_owned(),
    }
}
