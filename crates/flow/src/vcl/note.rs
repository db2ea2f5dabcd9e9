//! What is kept with a stored response beside its head: the number of the fetch that brought it,
//! the storage a program has chosen for it, and what it was asked for, which a program's key need
//! not tell.

use base::KeyBuf;
use message::Request;

use crate::key::begin_key;

/// The first byte of such a note; that of [`surrogate`](crate::surrogate) is another.
const MARK: u8 = b'p';
/// Bytes of the number.
const XID_BYTES: usize = 8;
/// Bytes before what was asked for.
const FIXED_BYTES: usize = XID_BYTES + 1;

/// What `request` asks for.
pub(crate) fn asked_of(request: &Request) -> Box<[u8]> {
    let mut asked = KeyBuf::new();
    begin_key(request, &mut asked);
    asked.bytes().into()
}

/// The note of what fetch `xid` brought for what [`asked_of`] tells, and the storage's number in
/// [`Live::storages`](crate::live::Live::storages).
pub(crate) fn of(xid: u64, storage: u8, asked: &[u8]) -> Box<[u8]> {
    [&[MARK][..], &xid.to_le_bytes(), &[storage], asked].concat().into()
}

/// The number of the fetch.
pub(crate) fn xid(note: &[u8]) -> u64 {
    own(note).first_chunk().map_or(0, |xid| u64::from_le_bytes(*xid))
}

/// The storage's number.
pub(crate) fn storage(note: &[u8]) -> Option<usize> {
    own(note).get(XID_BYTES).map(|number| usize::from(*number))
}

/// What was asked for, in the fields that [`begin_key`] writes; none where there is no note.
pub(crate) fn asked(note: &[u8]) -> Option<&[u8]> {
    own(note).get(FIXED_BYTES..)
}

/// What stands behind the mark; nothing where a note is another's.
fn own(note: &[u8]) -> &[u8] {
    note.strip_prefix(&[MARK]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_tells_the_number_and_what_was_asked_for() {
        let mut request = Request::new();
        request.host.extend_from_slice(b"example.com");
        request.target.extend_from_slice(b"/a?b");
        let note = of(77, 3, &asked_of(&request));
        assert_eq!((xid(&note), storage(&note)), (77, Some(3)));
        let fields: Vec<_> = base::key_fields(asked(&note).expect("a note")).collect();
        assert_eq!(fields, [&b""[..], b"example.com", b"", b"/a?b"]);
        assert_eq!((xid(b""), storage(b""), asked(b"")), (0, None, None));
    }
}
