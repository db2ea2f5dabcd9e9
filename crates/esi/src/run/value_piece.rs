//! Piece of a value with its author, and escaping by author and destination. Bytes of a client
//! never reach a page or an address unescaped.

use message::percent;

/// The author of a piece. The page's own text is written as it is, a client's is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    Page,
    /// The client, in a field.
    Client,
    /// The client, in the whole query, where bytes are already percent-encoded.
    Query,
    /// The client, in one value of the query.
    QueryValue,
}

/// The destination of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The page: a client's text is escaped as text of HTML.
    Page,
    /// The address of a fragment: a client's text stays within one component.
    Address,
    /// A comparison.
    Test,
}

/// A piece of a value.
#[derive(Clone, Debug)]
pub(super) struct ValuePiece {
    pub(super) author: Author,
    pub(super) text: Vec<u8>,
}

/// The value written for its destination.
pub(super) fn write_value(pieces: Vec<ValuePiece>, purpose: Purpose) -> Vec<u8> {
    let mut out = Vec::new();
    for ValuePiece { author, text } in pieces {
        match (author, purpose) {
            (Author::Page, _) | (_, Purpose::Test) => out.extend(text),
            (_, Purpose::Page) => escape_in_html(&text, &mut out),
            (author, Purpose::Address) => {
                out.extend(percent::encode(&text, |byte| !is_left(byte, author)));
            }
        }
    }
    out
}

/// Returns true if a byte of a client's text stays unescaped in an address.
fn is_left(byte: u8, author: Author) -> bool {
    let more: &[u8] = match author {
        // A percent sign begins an encoded byte, and `+` is a space (HTML forms).
        Author::QueryValue => b"%+",
        Author::Query => b"%!$&()*+,/:;=?@",
        Author::Client | Author::Page => b"",
    };
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || more.contains(&byte)
}

/// Appends text escaped for HTML, also for use within quoted attributes.
fn escape_in_html(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            _ => out.push(*byte),
        }
    }
}
