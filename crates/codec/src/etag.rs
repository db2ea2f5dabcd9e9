//! Entity tags of coded forms (RFC 9110 8.8.3.3), one for each form: the plain tag with the
//! coding's name at its end, `"x"` and `"x-gzip"`, as in Apache and Caddy. A tag keeps its
//! strength, since one encoder at one level always makes equal bytes. An origin's own tag may end
//! in this way too: [`form_of`] decides where the plain tag is known, and only otherwise
//! [`write_plain`] guesses.

use crate::coding::Coding;
use crate::dictionary::{DeltaCoding, DictionaryHash};

/// Bytes between the plain tag and the hash in the tag of a delta-coded form: `-dcz-`.
const DELTA_NAME: usize = 5;
/// Hexadecimal digits of the hash in a tag. They only have to separate dictionaries by chance:
/// beside the tag, a client names its dictionary in full.
const DELTA_DIGITS: usize = 16;

/// Appends the tag of the form in `coding` of a response whose plain tag is `plain`. If `plain` is
/// no entity tag it appends nothing and returns false: the form has no tag.
pub fn write_form(plain: &[u8], coding: Coding, out: &mut Vec<u8>) -> bool {
    if opaque(plain).is_none() {
        return false;
    }
    out.extend_from_slice(&plain[..plain.len() - 1]);
    out.extend_from_slice(suffix(coding).as_bytes());
    out.push(b'"');
    true
}

/// The coding whose form has the tag `tag` if the response's tag is `plain`, by weak comparison
/// (RFC 9110 8.8.3.2); the identity if both are equal. `None` for a tag of another response.
pub fn form_of(tag: &[u8], plain: &[u8]) -> Option<Coding> {
    let rest = opaque(tag)?.strip_prefix(opaque(plain)?)?;
    Coding::ALL.into_iter().find(|coding| suffix(*coding).as_bytes() == rest)
}

/// Appends the plain tag that `tag` would be a form's of, and returns the coding of that form, with
/// or without a dictionary. `None`, with nothing appended, if `tag` ends with no coding's name.
///
/// An origin's tags may end in this way too, so an If-None-Match to the origin lists both tags.
pub fn write_plain(tag: &[u8], out: &mut Vec<u8>) -> Option<Coding> {
    let inside = opaque(tag)?;
    let delta = inside.split_at_checked(inside.len().wrapping_sub(DELTA_NAME + DELTA_DIGITS));
    let delta = delta.and_then(|(_, end)| delta_of(end));
    let (coding, end) = if let Some(delta) = delta {
        let below = match delta {
            DeltaCoding::Dcz => Coding::Zstd,
            DeltaCoding::Dcb => Coding::Brotli,
        };
        (below, DELTA_NAME + DELTA_DIGITS)
    } else {
        let ends = |coding: &Coding| inside.ends_with(suffix(*coding).as_bytes());
        let coding = Coding::CODED.into_iter().find(ends)?;
        (coding, suffix(coding).len())
    };
    out.extend_from_slice(&tag[..tag.len() - 1 - end]);
    out.push(b'"');
    Some(coding)
}

/// The delta coding of the form whose tag ends with `text`, such as `-dcz-0011223344556677`; `None`
/// for another ending.
fn delta_of(text: &[u8]) -> Option<DeltaCoding> {
    let digits = text.get(DELTA_NAME..)?;
    let is_end = digits.len() == DELTA_DIGITS
        && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_named = |coding: &DeltaCoding| {
        text.strip_prefix(b"-")
            .and_then(|rest| rest.strip_prefix(coding.token().as_bytes()))
            .is_some_and(|rest| rest.starts_with(b"-"))
    };
    DeltaCoding::ALL.into_iter().find(is_named).filter(|_| is_end)
}

/// The tags of all forms of one stored response.
#[derive(Clone, Copy, Debug)]
pub struct FormTags<'a> {
    stored: &'a [u8],
    coding: Coding,
    is_coded_here: bool,
}

impl<'a> FormTags<'a> {
    /// Tags of a response whose body is stored in `coding` with the tag `stored`. `coded_here` is
    /// true for a tag made by [`write_form`], false for the origin's own.
    pub const fn new(stored: &'a [u8], coding: Coding, coded_here: bool) -> Self {
        Self { stored, coding, is_coded_here: coded_here }
    }

    /// Appends the tag of the form in `coding`.
    ///
    /// * The stored form has the stored tag.
    /// * The identity has the tag that the stored one is a form's of. An origin's tag that is not
    ///   spelled like one is made weak, as Varnish does, and nginx when it codes: the origin's form
    ///   and ours are not the same bytes.
    /// * gzip of a body that came without a coding is as strong as the stored tag: it is made at
    ///   one level, of the whole body, which gives the same bytes each time.
    /// * Other forms have weak tags. They may be made again with other bytes, and ranges of the two
    ///   must not be put together (RFC 9110 13.1.5).
    pub fn write(&self, coding: Coding, out: &mut Vec<u8>) {
        if coding == self.coding {
            out.extend_from_slice(self.stored);
            return;
        }
        let end = self.stored.len() - self.suffix_len();
        let is_own = self.coding != Coding::Identity && end == self.stored.len();
        let is_fixed = self.coding == Coding::Identity && coding == Coding::Gzip;
        let is_weak = is_own || coding != Coding::Identity && !is_fixed;
        if is_weak && !self.stored.starts_with(b"W/") {
            out.extend_from_slice(b"W/");
        }
        if opaque(self.stored).is_none() {
            // `stored` is no entity tag and is sent unchanged.
            out.extend_from_slice(self.stored);
            return;
        }
        out.extend_from_slice(&self.stored[..end - 1]);
        out.extend_from_slice(suffix(coding).as_bytes());
        out.push(b'"');
    }

    /// Length of the stored coding's name at the end of the stored tag.
    fn suffix_len(&self) -> usize {
        let suffix = suffix(self.coding);
        let inside = opaque(self.stored).unwrap_or_default();
        if inside.ends_with(suffix.as_bytes()) { suffix.len() } else { 0 }
    }

    /// Appends the weak tag of the form in `coding` with the dictionary of this hash; it holds the
    /// hash's beginning.
    pub fn write_delta(&self, coding: DeltaCoding, hash: &DictionaryHash, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_delta_start(out);
        // The stored tag is no entity tag, so the form has none.
        if out.len() == start {
            out.extend_from_slice(self.stored);
            return;
        }
        for part in [b"-", coding.token().as_bytes(), b"-"] {
            out.extend_from_slice(part);
        }
        for byte in &hash[..DELTA_DIGITS / 2] {
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.push(b'"');
    }

    /// The delta coding of the form with the tag `tag`, whatever its dictionary; `None` if no form
    /// has that tag.
    pub fn delta_of(&self, tag: &[u8]) -> Option<DeltaCoding> {
        let mut start = Vec::new();
        self.write_delta_start(&mut start);
        let rest = tag.strip_prefix(&start[..]).filter(|_| !start.is_empty())?;
        delta_of(rest.strip_suffix(b"\"")?)
    }

    /// Appends the common beginning of such tags: the weak plain tag without its last quote.
    fn write_delta_start(&self, out: &mut Vec<u8>) {
        if opaque(self.stored).is_some() {
            if !self.stored.starts_with(b"W/") {
                out.extend_from_slice(b"W/");
            }
            out.extend_from_slice(&self.stored[..self.stored.len() - self.suffix_len() - 1]);
        }
    }

    /// Appends the tag by which the origin knows the response.
    pub fn write_origin(&self, out: &mut Vec<u8>) {
        if !self.is_coded_here || write_plain(self.stored, out).is_none() {
            out.extend_from_slice(self.stored);
        }
    }
}

const fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Identity => "",
        Coding::Gzip => "-gzip",
        Coding::Brotli => "-br",
        Coding::Zstd => "-zstd",
    }
}

/// The text between an entity tag's quotes; `None` if `tag` is no entity tag.
fn opaque(tag: &[u8]) -> Option<&[u8]> {
    let strong = tag.strip_prefix(b"W/").unwrap_or(tag);
    let inside = strong.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    inside.iter().all(|b| *b == 0x21 || (0x23..=0x7e).contains(b) || *b >= 0x80).then_some(inside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(plain: &str, coding: Coding) -> Option<String> {
        let mut out = Vec::new();
        let is_tag = write_form(plain.as_bytes(), coding, &mut out);
        is_tag.then(|| String::from_utf8(out).expect("made of strings"))
    }

    fn plain(tag: &str) -> Option<(String, Coding)> {
        let mut out = Vec::new();
        let coding = write_plain(tag.as_bytes(), &mut out)?;
        Some((String::from_utf8(out).expect("made of strings"), coding))
    }

    #[test]
    fn every_form_has_a_tag_of_its_own() {
        let forms = Coding::ALL.map(|coding| form("\"x\"", coding).expect("a tag"));
        assert_eq!(forms, ["\"x\"", "\"x-gzip\"", "\"x-br\"", "\"x-zstd\""]);
        assert_eq!(form("W/\"x\"", Coding::Gzip).as_deref(), Some("W/\"x-gzip\""));
        assert_eq!(form("\"\"", Coding::Brotli).as_deref(), Some("\"-br\""));
    }

    #[test]
    fn no_form_of_what_is_no_tag_has_one() {
        for text in ["x", "\"", "\"x", "x\"", "w/\"x\"", "W/x", "\"a b\"", "\"a\"b\"", ""] {
            assert_eq!(form(text, Coding::Gzip), None, "{text}");
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn an_origins_tag_with_a_coding_suffix_is_no_form() {
        let own = "\"x-gzip\"";
        let of = |tag: &str, plain: &str| form_of(tag.as_bytes(), plain.as_bytes());
        assert_eq!(form(own, Coding::Gzip).as_deref(), Some("\"x-gzip-gzip\""));
        assert_eq!(of(own, own), Some(Coding::Identity));
        assert_eq!(of("\"x-gzip-gzip\"", own), Some(Coding::Gzip));
        assert_eq!(of("\"x-gzip-br\"", own), Some(Coding::Brotli));
        assert_eq!(of("\"x\"", own), None);
        assert_eq!(of(own, "\"x\""), Some(Coding::Gzip));
        assert_eq!(of("W/\"x-br\"", "\"x\""), Some(Coding::Brotli), "weakly");
        assert_eq!(of("\"x-deflate\"", "\"x\""), None);
        assert_eq!(of("*", "\"x\""), None);
    }

    #[test]
    fn a_guess_takes_off_one_name() {
        let guess = |tag: &str| plain(tag).map(|(plain, _)| plain);
        assert_eq!(guess("\"x-gzip-gzip\"").as_deref(), Some("\"x-gzip\""));
        assert_eq!(guess("W/\"x-zstd\"").as_deref(), Some("W/\"x\""));
        assert_eq!(guess("\"x\""), None);
        assert_eq!(guess("\"x-gzip \""), None);
    }

    #[test]
    fn the_form_of_each_dictionary_has_a_tag_of_its_own() {
        let hash = std::array::from_fn(|at| (at as u8).wrapping_mul(0x11));
        let of = |stored: &str, coding, here, delta| {
            let tags = FormTags::new(stored.as_bytes(), coding, here);
            let mut out = Vec::new();
            tags.write_delta(delta, &hash, &mut out);
            assert_eq!(tags.delta_of(&out), opaque(&out).map(|_| delta));
            String::from_utf8(out).expect("made of strings")
        };
        for (delta, below) in [(DeltaCoding::Dcz, Coding::Zstd), (DeltaCoding::Dcb, Coding::Brotli)]
        {
            let tag = format!("W/\"x-{}-0011223344556677\"", delta.token());
            assert_eq!(of("\"x-gzip\"", Coding::Gzip, true, delta), tag);
            assert_eq!(of("\"x\"", Coding::Identity, false, delta), tag);
            assert_eq!(of("W/\"x\"", Coding::Brotli, false, delta), tag);
            assert_eq!(plain(&tag), Some(("W/\"x\"".to_owned(), below)));
            assert_eq!(of("x", Coding::Gzip, false, delta), "x", "no tag, and none is made of it");
        }
        let tags = FormTags::new(b"\"x\"", Coding::Identity, false);
        for other in [
            "\"x\"",
            "W/\"x-dcz-\"",
            "W/\"y-dcz-0011223344556677\"",
            "W/\"x-dcz-001122334455667g\"",
            "W/\"x-dcx-0011223344556677\"",
            "W/\"x-dcz0011223344556677-\"",
        ] {
            assert_eq!(tags.delta_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_stored_response_knows_the_tags_of_its_forms() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        let tags = |stored: &'static str, coding, here| {
            let tags = FormTags::new(stored.as_bytes(), coding, here);
            let tag = |coding| {
                let mut out = b"ETag: ".to_vec();
                tags.write(coding, &mut out);
                String::from_utf8(out).expect("made of strings").split_off(6)
            };
            let mut origin = Vec::new();
            tags.write_origin(&mut origin);
            (Coding::ALL.map(tag), String::from_utf8(origin).expect("made of strings"))
        };
        let own = |tags: [&str; 4], origin: &str| (tags.map(str::to_owned), origin.to_owned());
        let ours = own(["\"x\"", "\"x-gzip\"", "W/\"x-br\"", "W/\"x-zstd\""], "\"x\"");
        assert_eq!(tags("\"x-gzip\"", Gzip, true), ours);
        let apache = own(["\"x\"", "\"x-gzip\"", "W/\"x-br\"", "W/\"x-zstd\""], "\"x-gzip\"");
        assert_eq!(tags("\"x-gzip\"", Gzip, false), apache);
        let other = own(["W/\"x\"", "W/\"x-gzip\"", "\"x\"", "W/\"x-zstd\""], "\"x\"");
        assert_eq!(tags("\"x\"", Brotli, false), other);
        assert_eq!(tags("\"x\"", Identity, false), ours);
        let weak = own(["W/\"x\"", "W/\"x-gzip\"", "W/\"x-br\"", "W/\"x\""], "W/\"x\"");
        assert_eq!(tags("W/\"x\"", Zstd, false), weak);
        assert_eq!(tags("x", Identity, false).0[1], "x", "no tag, and none is made of it");
    }

    proptest! {
        #[test]
        fn a_form_leads_back_to_its_plain_tag(
            weak in "(W/)?", inside in "[!#-~]{0,8}(-gzip|-br|-zstd){0,2}", at in 0..4usize,
        ) {
            let (own, coding) = (format!("{weak}\"{inside}\""), Coding::ALL[at]);
            let tag = form(&own, coding).expect("a tag");
            prop_assert_eq!(form_of(tag.as_bytes(), own.as_bytes()), Some(coding));
            if coding != Coding::Identity {
                prop_assert_eq!(plain(&tag), Some((own, coding)));
            }
        }

        #[test]
        fn any_bytes_are_judged(tag in any::<Vec<u8>>(), own in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            if write_plain(&tag, &mut out).is_some() {
                prop_assert!(form_of(&tag, &out).is_some());
            }
            prop_assert!(form_of(&tag, &own).is_none() || tag.len() >= own.len().min(2));
        }
    }
}
