//! Surrogate-Control of origins' responses: addressed to this cache, and removed here (W3C Edge
//! Architecture). A stored response keeps the field in its note, beside the head for clients.

use cache::Record;
use message::{HeaderBlock, HeaderId, Response};

use crate::state::site::Site;
use crate::stored_heads::stored_head;

/// The first byte of such a note; notes of [`vcl::note`](crate::state::vcl::note) have another.
const MARK: u8 = b's';
/// Separates values, and occurs in none.
const BETWEEN: u8 = b'\n';

/// Removes the field, unless the site shows it.
pub(crate) fn hide(headers: &mut HeaderBlock, site: &Site) {
    if !site.shown.surrogate_control {
        headers.remove(HeaderId::SurrogateControl);
    }
}

/// Removes the field from a head that is to be stored, unless the site shows it. Returns the note
/// that keeps it.
pub(crate) fn set_aside(headers: &mut HeaderBlock, site: &Site) -> Box<[u8]> {
    if site.shown.surrogate_control { Box::default() } else { take(headers) }
}

fn take(headers: &mut HeaderBlock) -> Box<[u8]> {
    if !headers.contains(HeaderId::SurrogateControl) {
        return Box::default();
    }
    let mut note = vec![MARK];
    for (at, value) in headers.values(HeaderId::SurrogateControl).enumerate() {
        if at > 0 {
            note.push(BETWEEN);
        }
        note.extend_from_slice(value);
    }
    headers.remove(HeaderId::SurrogateControl);
    note.into()
}

/// The head of a stored response as its origin sent it. A damaged one has no fields; the engine
/// that wrote it leaves none.
pub(crate) fn whole_head(object: &Record) -> Response {
    let mut head = stored_head(object).unwrap_or_else(|| Response::new(object.status()));
    put_back(&mut head.headers, object.note());
    head
}

/// Adds the fields in `note` to the head of its object.
pub(crate) fn put_back(headers: &mut HeaderBlock, note: &[u8]) {
    let Some((&MARK, values)) = note.split_first() else { return };
    for value in values.split(|b| *b == BETWEEN) {
        headers.push(HeaderId::SurrogateControl, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::vcl::note;

    #[test]
    fn what_is_set_aside_comes_back_line_by_line() {
        for values in [&[][..], &["max-age=60"], &["max-age=1, x=\"a", "no-store", ""]] {
            let mut headers = HeaderBlock::new();
            headers.push(HeaderId::ContentType, b"text/html");
            for value in values {
                headers.push(HeaderId::SurrogateControl, value.as_bytes());
            }
            let note = take(&mut headers);
            assert_eq!((note.is_empty(), headers.len()), (values.is_empty(), 1));
            put_back(&mut headers, &note);
            let back: Vec<_> = headers.values(HeaderId::SurrogateControl).collect();
            assert_eq!(back, values.iter().map(|v| v.as_bytes()).collect::<Vec<_>>());
            assert_eq!((note::asked(&note), note::xid(&note)), (None, 0), "no program's note");
        }
    }

    #[test]
    fn a_programs_note_holds_no_field() {
        let mut headers = HeaderBlock::new();
        put_back(&mut headers, &note::of(u64::from(MARK), "s0", b"asked"));
        assert_eq!(headers.len(), 0);
    }
}
