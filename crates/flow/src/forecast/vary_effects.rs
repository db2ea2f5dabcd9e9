//! Effects of Vary: which of its fields tell the stored bodies of a key apart, and how many
//! variants would be left without a field, or with few forms of it.
//!
//! Nothing may be said of a field unless stored bodies show it: it may be the reason for bodies
//! that are not stored.

use std::collections::BTreeMap;

use cache::{BorrowedBody, KeyInspection, Object};
use message::vary::signature_values;
use message::{HeaderId, Request};
use policy::decision_steps::shown;
use policy::vary::{DeviceClasses, MediaPreference, VaryRules};

/// Longest body that is compared with others: it is read for an explanation.
const COMPARED_BYTES: u64 = 1 << 20;

/// The variants of a key whose bodies have been compared.
#[derive(Debug)]
pub(crate) struct VaryEffects<'k> {
    /// The fields that variants are selected by.
    names: Vec<&'k [u8]>,
    variants: Vec<ComparedVariant<'k>>,
    /// The number of variants with each body.
    with_body: Vec<usize>,
}

/// A variant, as far as it is compared.
#[derive(Clone, Debug)]
struct ComparedVariant<'k> {
    /// The request's value of each field; `None` if it had none, or if the variant is not selected
    /// by it.
    values: Vec<Option<&'k [u8]>>,
    /// The number of its body. Equal bodies have one number.
    body: usize,
}

/// A setting that brings a field into few forms.
struct FewForms {
    id: HeaderId,
    setting: &'static str,
    value: &'static str,
    rules: VaryRules,
}

/// The effect of a field of Vary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FieldEffect {
    /// Nothing: without it, this many variants would be left.
    Nothing { left: usize },
    /// With this setting and its value, this many would be left.
    Few { setting: &'static str, value: &'static str, left: usize },
}

impl FieldEffect {
    /// The effect in words.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Nothing { left } => format!("no effect: without it, {left} would be kept"),
            Self::Few { setting, value, left } => {
                format!("`{setting} = {value}` would keep {left}")
            }
        }
    }
}

/// Settings that bring a field into few forms.
fn few_forms() -> [FewForms; 3] {
    let rules = VaryRules::default();
    let devices = |classes| VaryRules { devices: Some(classes), ..VaryRules::default() };
    [
        FewForms {
            id: HeaderId::UserAgent,
            setting: "vary.user_agent",
            value: "\"device\"",
            rules: devices(DeviceClasses::Two),
        },
        FewForms {
            id: HeaderId::UserAgent,
            setting: "vary.user_agent",
            value: "[\"mobile\", \"tablet\", \"desktop\"]",
            rules: devices(DeviceClasses::Three),
        },
        FewForms {
            id: HeaderId::Accept,
            setting: "vary.accept",
            value: "\"images\"",
            rules: VaryRules { media: Some(MediaPreference::Images), ..rules },
        },
    ]
}

impl FewForms {
    /// The form of a value.
    fn of(&self, value: Option<&[u8]>) -> Vec<u8> {
        let mut request = Request::new();
        value.iter().for_each(|value| request.headers.push(self.id, value));
        self.rules.normalise(&mut request, false);
        request.headers.value(self.id).unwrap_or_default().to_vec()
    }
}

impl<'k> VaryEffects<'k> {
    /// Compares the variants of a key.
    pub(crate) fn of(peek: &'k KeyInspection) -> Self {
        let live = || peek.variants.iter().filter(|seen| !seen.is_banned);
        let selected = |object: &'k Object| {
            object.vary().map_or_else(Vec::new, |vary| signature_values(vary.spec, vary.signature))
        };
        let all = live().flat_map(|seen| selected(&seen.object));
        let mut names: Vec<_> = all.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        let (mut bodies, mut with_body, mut variants) = (Vec::new(), Vec::new(), Vec::new());
        for seen in live() {
            let whole = seen.object.whole();
            let fits = |body: &BorrowedBody<'_>| (1..=COMPARED_BYTES).contains(&body.len());
            let Some(own) = whole.filter(fits) else { continue };
            let known = bodies.iter().position(|known| own.has_bytes_of(*known));
            let body = known.unwrap_or(bodies.len());
            if known.is_none() {
                bodies.push(own);
                with_body.push(0);
            }
            with_body[body] += 1;
            let own = selected(&seen.object);
            let value = |name: &&[u8]| own.iter().find(|(of, _)| of == name).and_then(|(_, v)| *v);
            variants.push(ComparedVariant { values: names.iter().map(value).collect(), body });
        }
        Self { names, variants, with_body }
    }

    /// The number of variants whose bodies are equal to that of another, in words; empty if all
    /// differ.
    pub(crate) fn equal_in_words(&self) -> String {
        match self.with_body.iter().filter(|of| **of > 1).sum::<usize>() {
            0 => String::new(),
            equal => format!("{equal} of {} are equal to another", self.variants.len()),
        }
    }

    /// The number of different bodies, in words; empty if all differ.
    pub(crate) fn different_in_words(&self) -> String {
        match self.with_body.len() {
            different if different == self.variants.len() => String::new(),
            different => different.to_string(),
        }
    }

    /// The effects of all fields, in words.
    pub(crate) fn in_words(&self) -> String {
        let each = self.names.iter().filter_map(|name| {
            let effect = self.of_field(name)?;
            let id = HeaderId::of(name);
            let name = if id == HeaderId::Other { shown(name) } else { id.name().to_owned() };
            Some(format!("`{name}`: {}", effect.told()))
        });
        each.collect::<Vec<_>>().join("; ")
    }

    /// The effect of a field; `None` if it tells bodies apart, or if nothing shows what it does.
    pub(crate) fn of_field(&self, name: &[u8]) -> Option<FieldEffect> {
        let at = self.names.iter().position(|own| own.eq_ignore_ascii_case(name))?;
        let all = self.variants.len();
        let first = self.variants.first()?.values[at];
        if self.variants.iter().all(|variant| variant.values[at] == first) {
            return None;
        }
        // If bodies differ, two variants must show that it is not by this field.
        let is_shown = |left: &usize| *left < all || self.with_body.len() == 1;
        if let Some(left) = self.left(at, |_| Vec::new()).filter(is_shown) {
            return Some(FieldEffect::Nothing { left });
        }
        let id = HeaderId::of(name);
        few_forms().into_iter().filter(|forms| forms.id == id).find_map(|forms| {
            let left = self.left(at, |value| forms.of(value)).filter(|left| *left < all)?;
            Some(FieldEffect::Few { setting: forms.setting, value: forms.value, left })
        })
    }

    /// The number of variants that would be left if a field had a form in place of its values.
    /// `None` if bodies that differ would not be told apart.
    fn left(&self, at: usize, form: impl Fn(Option<&[u8]>) -> Vec<u8>) -> Option<usize> {
        let mut left = BTreeMap::new();
        for ComparedVariant { values, body } in &self.variants {
            let mut others = values.clone();
            let form = form(others.remove(at));
            if left.insert((others, form), *body).is_some_and(|other| other != *body) {
                return None;
            }
        }
        Some(left.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PHONE: &str = "Mozilla/5.0 (Linux; Android 10; K) Chrome/1.0 Mobile Safari/5";
    const OTHER_PHONE: &str = "Mozilla/5.0 (iPhone) Mobile/15E148 Safari/604.1";
    const DESKTOP: &str = "Mozilla/5.0 (Windows NT 10.0) Firefox/1";
    const TABLET: &str = "Mozilla/5.0 (iPad) Safari/604.1";

    /// The effects of fields on bodies, given as the values of a request and the body's number.
    fn effects<'k>(names: &[&'k str], variants: &[(&[&'k str], usize)]) -> VaryEffects<'k> {
        let mut with_body = vec![0; variants.iter().map(|(_, body)| body + 1).max().unwrap_or(0)];
        variants.iter().for_each(|(_, body)| with_body[*body] += 1);
        let variants = variants.iter().map(|(values, body)| {
            let values = values.iter().map(|value| Some(value.as_bytes())).collect();
            ComparedVariant { values, body: *body }
        });
        let names = names.iter().map(|name| name.as_bytes()).collect();
        VaryEffects { names, variants: variants.collect(), with_body }
    }

    fn few(value: &'static str, left: usize) -> Option<FieldEffect> {
        Some(FieldEffect::Few { setting: "vary.user_agent", value, left })
    }

    #[test]
    fn a_field_that_changes_nothing_is_found() {
        let nothing = |left| Some(FieldEffect::Nothing { left });
        let one = effects(&["user-agent"], &[(&["a"], 0), (&["b"], 0), (&["c"], 0)]);
        assert_eq!(one.of_field(b"User-Agent"), nothing(1));
        assert_eq!(one.equal_in_words(), "3 of 3 are equal to another");
        let names = ["accept-language", "user-agent"];
        let two = effects(&names, &[(&["de", "a"], 0), (&["en", "a"], 1), (&["de", "b"], 0)]);
        assert_eq!(
            (two.of_field(b"user-agent"), two.of_field(b"Accept-Language")),
            (nothing(2), None)
        );
        assert_eq!(two.in_words(), "`User-Agent`: no effect: without it, 2 would be kept");
    }

    #[test]
    fn nothing_is_said_that_no_bodies_show() {
        let names = ["accept-language", "user-agent"];
        // Either field may be the reason.
        let apart = effects(&names, &[(&["de", "a"], 0), (&["en", "b"], 1)]);
        assert_eq!(apart.in_words(), "");
        let single = effects(&["user-agent"], &[(&["a"], 0)]);
        assert_eq!((single.in_words(), single.different_in_words()), Default::default());
    }

    #[test]
    fn the_fewest_classes_of_devices_that_tell_bodies_apart_are_named() {
        let names = ["user-agent"];
        let phones = effects(&names, &[(&[PHONE], 0), (&[DESKTOP], 1), (&[OTHER_PHONE], 0)]);
        assert_eq!(phones.of_field(b"user-agent"), few("\"device\"", 2));
        let tablets = [(&[PHONE][..], 0), (&[DESKTOP], 1), (&[TABLET], 2), (&[OTHER_PHONE], 0)];
        let tablets = effects(&names, &tablets);
        assert_eq!(
            tablets.of_field(b"user-agent"),
            few("[\"mobile\", \"tablet\", \"desktop\"]", 3)
        );
        // Bodies that differ between two phones are told apart by no class.
        let each = effects(&names, &[(&[PHONE], 0), (&[DESKTOP], 1), (&[OTHER_PHONE], 2)]);
        assert_eq!(each.of_field(b"user-agent"), None);
    }

    proptest! {
        #[test]
        fn what_is_left_tells_all_bodies_apart(
            bodies in prop::collection::vec(0..3_usize, 9),
            present in prop::collection::vec(any::<bool>(), 9),
        ) {
            let texts = ["a", "b", "c"];
            let there = (0..9).filter(|at| present[*at]);
            let all = there.map(|at| ([texts[at / 3], texts[at % 3]], bodies[at]));
            let all: Vec<_> = all.collect();
            let variants: Vec<_> = all.iter().map(|(values, body)| (&values[..], *body)).collect();
            let found = effects(&["x", "y"], &variants);
            let without: [fn(&[&'static str; 2]) -> &'static str; 2] = [|v| v[1], |v| v[0]];
            for (name, other) in ["x", "y"].into_iter().zip(without) {
                let is_alone = all.iter().all(|(values, body)| {
                    all.iter().all(|(more, of)| other(values) != other(more) || body == of)
                });
                if let Some(effect) = found.of_field(name.as_bytes()) {
                    prop_assert!(is_alone);
                    let mut left: Vec<_> = all.iter().map(|(values, _)| other(values)).collect();
                    left.sort_unstable();
                    left.dedup();
                    prop_assert_eq!(effect, FieldEffect::Nothing { left: left.len() });
                }
            }
        }
    }
}
