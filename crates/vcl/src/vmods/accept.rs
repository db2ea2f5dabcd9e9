//! VMOD `accept`: reduces `Accept`, `Accept-Language` or `Accept-Encoding` to one of a site's
//! choices. A result is never the client's own spelling.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::failure::ProgramFailure;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Class, Method, Module, Parameter};
use crate::vmods::args::{Args, required_parameter, this};

/// The module.
pub static MODULE: Module = Module {
    name: "accept",
    about: "Reduces an `Accept`, `Accept-Language` or `Accept-Encoding` field to one of the values \
            that the site serves. A page then has no more variants than there are choices.",
    functions: &[],
    classes: &[CLASS],
    refused: &[],
};

const ONE: &[Parameter] = &[required_parameter("string", Type::String)];

const CLASS: Class = Class {
    name: "rule",
    about: "A list of choices. The argument is the fallback, used if no choice is acceptable.",
    params: ONE,
    construct: |_, _, args| {
        let fallback = Bytes::copy_from_slice(args.bytes(0));
        Ok(Arc::new(Offer { fallback, choices: RwLock::default() }))
    },
    methods: &[
        Method {
            name: "add",
            about: "Adds a choice.",
            returns: Type::Void,
            params: ONE,
            from: Subs::ALL,
            call: |_, object, args| {
                this::<Offer>(object)?.add(args.bytes(0))?;
                Ok(Value::Void)
            },
        },
        Method {
            name: "remove",
            about: "Removes a choice.",
            returns: Type::Void,
            params: ONE,
            from: Subs::ALL,
            call: |_, object, args| {
                this::<Offer>(object)?.remove(args.bytes(0));
                Ok(Value::Void)
            },
        },
        Method {
            name: "filter",
            about: "Returns the choice with the highest quality (`q`) in a header value, or the \
                    first of several. Letter case is ignored, and the result is spelled as it was \
                    added. Returns the fallback if the value is malformed or contains no choice.",
            returns: Type::String,
            params: ONE,
            from: Subs::ALL,
            call: |_, object, args| {
                Ok(Value::String(Some(this::<Offer>(object)?.filter(args.bytes(0)))))
            },
        },
    ],
};

/// Most choices of one object: each is examined for each request.
const CHOICES_MAX: usize = 1000;

#[derive(Debug)]
struct Offer {
    fallback: Bytes,
    choices: RwLock<Vec<Bytes>>,
}

impl Object for Offer {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Offer {
    fn add(&self, choice: &[u8]) -> Result<(), ProgramFailure> {
        let mut choices = self.choices.write();
        if choices.iter().any(|known| known.eq_ignore_ascii_case(choice)) {
            return Ok(());
        }
        if choices.len() >= CHOICES_MAX {
            return Err(ProgramFailure::new(format!(
                "accept: a rule has at most {CHOICES_MAX} choices"
            )));
        }
        choices.push(Bytes::copy_from_slice(choice));
        Ok(())
    }

    fn remove(&self, choice: &[u8]) {
        let mut choices = self.choices.write();
        choices.retain(|known| !known.eq_ignore_ascii_case(choice));
    }

    fn filter(&self, header: &[u8]) -> Bytes {
        let choices = self.choices.read();
        let chosen = chosen(&choices, header);
        chosen.map_or_else(|| self.fallback.clone(), |at| choices[at].clone())
    }
}

/// The choice that `header` prefers; `None` if it has none of them, or is malformed.
fn chosen(choices: &[Bytes], header: &[u8]) -> Option<usize> {
    let mut best = (0, None);
    for element in header.split(|b| *b == b',') {
        let (name, quality) = element_of(element)?;
        let choice = choices.iter().position(|choice| choice.eq_ignore_ascii_case(name));
        if choice.is_some() && quality > best.0 {
            best = (quality, choice);
        }
    }
    best.1
}

/// Name and quality, in thousandths, of an element. As in Varnish's VMOD, only the first parameter
/// can be a quality.
fn element_of(element: &[u8]) -> Option<(&[u8], u32)> {
    let mut parts = element.split(|b| *b == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| is_word(name))?;
    let mut quality = 1000;
    for (number, param) in parts.enumerate() {
        let equals = memchr::memchr(b'=', param)?;
        let (key, value) = (&param[..equals], &param[equals + 1..]);
        if !is_word(key) || !is_word(value) {
            return None;
        }
        if number == 0 && key == b"q" {
            quality = quality_of(value)?;
        }
    }
    Some((name, quality))
}

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_graphic() || *b >= 0x80)
}

/// A qvalue (RFC 9110 12.4.2) in thousandths.
fn quality_of(text: &[u8]) -> Option<u32> {
    let (whole, rest) = text.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut quality = u32::from(whole.checked_sub(b'0')?);
    for at in 0..3 {
        let digit = digits.get(at).map_or(Some(0), |b| char::from(*b).to_digit(10))?;
        quality = quality * 10 + digit;
    }
    (quality <= 1000).then_some(quality)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(fallback: &str, choices: &[&str]) -> Offer {
        let rule = Offer {
            fallback: Bytes::copy_from_slice(fallback.as_bytes()),
            choices: RwLock::default(),
        };
        choices.iter().for_each(|choice| rule.add(choice.as_bytes()).expect("there is room"));
        rule
    }

    // Results of the VMOD for Varnish 7.1.
    #[test]
    fn the_best_quality_is_chosen() {
        let rule = rule("en", &["de", "fr", "de-DE"]);
        for (header, choice) in [
            ("de-DE,de;q=0.9,fr;q=0.95", "de-DE"),
            ("fr, de;q=0.1", "fr"),
            ("de;q=0.1, fr;q=0.2", "fr"),
            ("de-AT", "en"),
            ("de;q=0, fr;q=0", "en"),
            ("en, de;q=0.1", "de"),
            ("de;level=1;q=0.1, fr;q=0.2", "de"),
            ("de ;q=0.1,fr ; q=0.2", "fr"),
            ("en;q=0.9, fr;q=0.1", "fr"),
            ("fr ,de", "fr"),
            ("FR", "fr"),
            ("fr;q=0.1;q=0.9,de;q=0.5", "de"),
            ("de;Q=0.1,fr;q=0.2", "de"),
            ("fr;q=0.001,de;q=0.002", "de"),
            ("fr;q=0.1 ,de;q=0.5;x=y, fr", "fr"),
            ("fr/1,de", "de"),
            ("de;level=1;q=0", "de"),
            ("de;q=0.1,f(r,de;q=0.3,fr;q=0.2", "de"),
        ] {
            assert_eq!(rule.filter(header.as_bytes()), choice, "{header}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_the_fallback() {
        let rule = rule("en", &["de", "fr"]);
        for header in [
            "",
            ",de",
            "xx,,de",
            "xx yy,de",
            "de;q=abc, fr;q=0",
            "fr;q=2,de;q=1.000",
            "fr;q=.5,de;q=0.2",
            "fr;q=0.1,de;q=0.5x,fr",
            "fr;,de",
            "de;q =0.1,fr;q= 0.2",
        ] {
            assert_eq!(rule.filter(header.as_bytes()), "en", "{header}");
        }
    }

    #[test]
    fn choices_come_and_go() {
        let rule = rule("", &["x", "br", "x"]);
        rule.remove(b"X");
        rule.remove(b"zz");
        assert_eq!(rule.filter(b"x, br"), "br");
        assert_eq!(rule.filter(b"x"), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(header in prop::collection::vec(any::<u8>(), 0..60)) {
            let rule = rule("no", &["a", "b"]);
            let chosen = rule.filter(&header);
            prop_assert!(["no", "a", "b"].iter().any(|c| chosen == c.as_bytes()));
        }

        #[test]
        fn a_lone_choice_is_found_at_any_quality(thousandths in 1_u32..=1000) {
            let header = if thousandths == 1000 {
                "a;q=1.000".to_string()
            } else {
                format!("a;q=0.{thousandths:03}")
            };
            prop_assert_eq!(rule("no", &["a"]).filter(header.as_bytes()), "a");
        }
    }
}
