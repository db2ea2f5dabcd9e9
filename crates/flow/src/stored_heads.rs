//! Stored heads: heads of stored responses, and the entity tags of their forms.

use cache::Record;
use codec::Coding;
use codec::etag::FormTags;
use message::{HeaderId, Response};

/// Parses the head of a stored response; `None` if it is damaged, which the engine that wrote it
/// never leaves.
pub(crate) fn stored_head(object: &Record) -> Option<Response> {
    let mut head = Response::new(object.status());
    h1::parse_stored_head(object.head(), &mut head).ok()?;
    Some(head)
}

/// The entity tags of the forms of `object`; `None` without a tag.
pub(crate) fn form_tags(object: &Record) -> Option<FormTags<'_>> {
    let flags = object.flags();
    object.etag().map(|tag| FormTags::new(tag, flags.coding, flags.coded_here))
}

/// The entity tags of the forms of a body without a coding whose tag is `plain`.
pub(crate) fn form_tags_of_plain(plain: &[u8]) -> FormTags<'_> {
    FormTags::new(plain, Coding::Identity, false)
}

/// Encodes the head of `response` for storing, and finds its entity tag in the bytes.
pub(crate) fn head_to_store(response: &Response) -> (Box<[u8]>, Option<(u32, u32)>) {
    let mut head = Vec::with_capacity(256);
    h1::encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    let etag = response.headers.value(HeaderId::Etag).and_then(|etag| {
        // Any occurrence of these bytes in the head equals the tag.
        let at = memchr::memmem::find(&head, etag)?;
        Some((at as u32, etag.len() as u32))
    });
    (head.into_boxed_slice(), etag)
}
