//! Pieces of values, by their authors, and the way they are written.

use message::percent;

/// The author of a piece of a value: the page's own words stand as they are, a client's never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    Page,
    /// The client, in a field.
    Client,
    /// The client, in the query of its request: what is percent-encoded there is so already.
    Query,
    /// The client, in one value of that query.
    QueryValue,
}

/// The place that a value is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The page: a client's words are text there, and no markup.
    Page,
    /// The address of a fragment: a client's words are one part of it.
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

/// A value in its place.
pub(super) fn write_value(words: Vec<ValuePiece>, purpose: Purpose) -> Vec<u8> {
    let mut out = Vec::new();
    for ValuePiece { author, text } in words {
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

/// Tells whether a byte of a client's words stays as it is in an address.
fn is_left(byte: u8, author: Author) -> bool {
    let more: &[u8] = match author {
        // Percent signs begin what is encoded already, and `+` is a space (HTML forms).
        Author::QueryValue => b"%+",
        Author::Query => b"%!$&()*+,/:;=?@",
        Author::Client | Author::Page => b"",
    };
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || more.contains(&byte)
}

/// Adds text as it stands in HTML, also between the quotes of an attribute.
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
