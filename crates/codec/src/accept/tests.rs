//! Tests of negotiation, by table and against a model.

use proptest::prelude::*;

use super::*;

const ORDER: [Coding; 4] = [Coding::Brotli, Coding::Zstd, Coding::Gzip, Coding::Identity];

fn accept(lines: &[&str]) -> Accept {
    Accept::of(lines.iter().map(|line| line.as_bytes()))
}

#[test]
fn the_weight_decides_and_then_the_server() {
    use Coding::{Brotli, Gzip, Identity, Zstd};
    for (value, expected) in [
        ("gzip, deflate, br, zstd", Some(Brotli)),
        ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
        ("GZIP", Some(Gzip)),
        ("x-gzip;q=0.001", Some(Gzip)),
        ("*", Some(Brotli)),
        ("*;q=0.1, br;q=0", Some(Zstd)),
        ("identity, gzip;q=0.5", Some(Identity)),
        ("identity;q=0.5, gzip", Some(Gzip)),
        ("identity, gzip", Some(Gzip)),
        ("gzip;q=0.3, *;q=0.5", Some(Brotli)),
        ("identity", Some(Identity)),
        ("gzip;q=0", Some(Identity)),
        ("gzip ;\tQ=0.000", Some(Identity)),
        ("deflate", Some(Identity)),
        ("", Some(Identity)),
        ("*;q=0", None),
        ("identity;q=0", None),
        ("deflate, *;q=0", None),
        ("gzip, *;q=0", Some(Gzip)),
        ("gzip;q=0, gzip", Some(Gzip)),
        ("gzip, x-gzip;q=0", Some(Identity)),
    ] {
        assert_eq!(accept(&[value]).best(ORDER), expected, "{value}");
    }
}

#[test]
fn members_that_are_not_well_formed_are_as_if_not_there() {
    for value in [
        "gzip;q=2",
        "gzip;q=1.001",
        "gzip;q=",
        "gzip;q",
        "gzip;",
        "gzip;q=0.1234",
        "gzip;q=.5",
        "gzip;q=0,5",
        "gzip;level=1",
        "gzip;q=0.5;x=1",
        "gzip;q =1",
        "gzip;q=\"1\"",
        "\"gzip\"",
        "gzip br",
    ] {
        assert_eq!(accept(&[value]).codings(), accept(&[""]).codings(), "{value}");
    }
    assert!(accept(&["gzip;q=x, *"]).takes(Coding::Gzip));
}

#[test]
fn a_request_without_the_field_takes_everything_and_the_identity_first() {
    let absent = accept(&[]);
    assert_eq!(absent.codings().iter().count(), 4);
    assert_eq!(absent.best(ORDER), Some(Coding::Identity));
    assert_eq!(absent.best([Coding::Zstd, Coding::Gzip]), Some(Coding::Zstd));
}

#[test]
fn lines_make_up_one_list() {
    assert_eq!(accept(&["gzip;q=0.5", "", "br;q=0.7"]), accept(&["gzip;q=0.5, br;q=0.7"]));
}

#[test]
fn spellings_fall_into_few_classes() {
    let class = |value| accept(&[value]).codings().bits();
    assert_eq!(class("gzip, br"), class("br;q=0.3,deflate , x-gzip"));
    assert_eq!(class("identity"), class(""));
    let stored = Codings::NONE.with(Coding::Identity).with(Coding::Gzip);
    let class = |value| accept(&[value]).codings().both(stored);
    assert_eq!(class("gzip, br"), class("gzip, zstd"));
}

/// Model: members stay text, and a search from the end finds the one that counts.
struct Model {
    members: Option<Vec<(String, f64)>>,
}

impl Model {
    fn of(lines: &[String]) -> Self {
        let text = lines.join(",");
        let weight = |text: &str| {
            let (name, digits) = text.split_at_checked(2)?;
            let plain = digits.len() <= 5
                && digits.chars().nth(1).is_none_or(|c| c == '.')
                && digits.chars().filter(|c| *c != '.').count() + usize::from(digits.len() > 1)
                    == digits.len()
                && digits.chars().all(|c| c == '.' || c.is_ascii_digit());
            let weight = digits.trim_end_matches('.').parse::<f64>().ok()?;
            (name.eq_ignore_ascii_case("q=") && plain && weight <= 1.0).then_some(weight)
        };
        let member = |text: &str| {
            let mut halves = text.splitn(2, ';');
            let name = halves.next()?.trim().to_lowercase();
            let weight = halves.next().map_or(Some(1.0), |text| weight(text.trim()))?;
            Some((if name == "x-gzip" { "gzip".to_owned() } else { name }, weight))
        };
        Self { members: (!lines.is_empty()).then(|| text.split(',').filter_map(member).collect()) }
    }

    /// Weight of a coding; below 0 if it is not acceptable.
    fn weight(&self, name: &str) -> f64 {
        let Some(members) = &self.members else {
            return if name == "identity" { 1.0 } else { 0.5 };
        };
        let said = |wanted: &str| members.iter().rev().find(|(name, _)| name == wanted);
        match said(name).or_else(|| said("*")) {
            Some((_, weight)) if *weight == 0.0 => -1.0,
            Some((_, weight)) => *weight,
            None if name == "identity" => 0.0,
            None => -1.0,
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    let name = "gzip|x-gzip|BR|br|zstd|identity|deflate|\\*|Z";
    let weight = "|;q=[01]|; Q=[01]\\.[0-9]{0,4}|;q=0\\.[05]{1,3}|;q=|;x=1";
    let member = (name, weight).prop_map(|(name, weight)| name + &weight);
    prop::collection::vec(member, 0..6).prop_map(|members| members.join(" , "))
}

proptest! {
    #[test]
    fn the_same_form_is_chosen_as_by_the_model(
        lines in prop::collection::vec(line(), 0..3),
        offered in Just(ORDER.to_vec()).prop_shuffle(),
        count in 0..=4usize,
    ) {
        let accept = Accept::of(lines.iter().map(|line| line.as_bytes()));
        let model = Model::of(&lines);
        for coding in Coding::ALL {
            prop_assert_eq!(accept.takes(coding), model.weight(coding.token()) >= 0.0);
        }
        let offered = &offered[..count];
        let most = offered.iter().map(|c| model.weight(c.token())).fold(-1.0, f64::max);
        let expected = offered.iter().find(|c| most >= 0.0 && model.weight(c.token()) == most);
        prop_assert_eq!(accept.best(offered.iter().copied()), expected.copied());
    }

    #[test]
    fn any_bytes_are_read(lines in prop::collection::vec(any::<Vec<u8>>(), 0..4)) {
        let accept = Accept::of(lines.iter().map(Vec::as_slice));
        let best = accept.best(ORDER);
        prop_assert_eq!(best.is_none(), accept.codings().is_empty());
        prop_assert!(best.is_none_or(|coding| accept.takes(coding)));
    }
}

#[test]
fn common_spellings_mean_what_they_say() {
    for (spelling, common) in COMMON {
        assert_eq!(common, Accept::read([spelling].into_iter()), "{spelling:?}");
        assert_eq!(Accept::of([spelling]), common);
        assert_ne!(Accept::of([spelling, b"*"]), common, "another line counts, too");
    }
}
