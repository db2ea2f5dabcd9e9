//! Tests of forms: each choice against examples and a plain model, and what holds for all of them.

use proptest::prelude::*;

use super::device::DeviceClass;
use super::*;

const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 \
                     (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

fn languages(tags: &[&str]) -> Languages {
    Languages::new(tags).expect("tags")
}

fn language(tags: &[&str], field: &str) -> String {
    let languages = languages(tags);
    String::from_utf8_lossy(languages.choose([field.as_bytes()].into_iter())).into_owned()
}

fn accept(media: &MediaPreference, field: &str) -> String {
    String::from_utf8_lossy(media.choose([field.as_bytes()].into_iter())).into_owned()
}

fn types(names: &[&str]) -> MediaPreference {
    MediaPreference::types(names).expect("media types")
}

fn all_rules() -> VaryRules {
    let currency = CookieValues {
        name: "currency".to_owned(),
        values: Some(vec!["EUR".to_owned(), "USD".to_owned()]),
    };
    VaryRules {
        languages: Some(languages(&["en", "de", "pt-BR"])),
        media: Some(MediaPreference::markdown()),
        devices: Some(DeviceClasses::Three),
        cookies: vec![currency, CookieValues { name: "view".to_owned(), values: None }],
    }
}

fn block(fields: &[(&str, &str)]) -> HeaderBlock {
    let mut block = HeaderBlock::new();
    for (name, value) in fields {
        block.push_named(name.as_bytes(), value.as_bytes());
    }
    block
}

fn normalised(rules: &VaryRules, fields: &[(&str, &str)], personal: bool) -> Request {
    let mut request = Request { headers: block(fields), ..Request::new() };
    rules.normalise(&mut request, personal);
    request
}

fn normal(rules: &VaryRules, fields: &[(&str, &str)], personal: bool) -> Vec<(String, String)> {
    let headers = normalised(rules, fields, personal).headers;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut all: Vec<_> =
        headers.iter().map(|field| (text(field.name), text(field.value))).collect();
    all.sort();
    all
}

#[test]
fn languages_are_looked_up_by_weight_and_from_the_end() {
    let tags = ["en", "de", "pt-BR"];
    for (field, expected) in [
        ("", "en"),
        ("de", "de"),
        ("DE-at", "de"),
        ("de-Latn-AT-1996,de;q=0.9,en;q=0.8", "de"),
        ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "en"),
        ("fr, de;q=0.7, en;q=0.2", "de"),
        ("en;q=0.5,de;q=0.5", "en"),
        ("de;q=0.5,en;q=0.5", "de"),
        ("pt-br;q=0.9", "pt-BR"),
        // Lookup does not widen a range.
        ("pt", "en"),
        ("de;q=0,fr", "en"),
        ("de-AT,de;q=0,pt-BR;q=0.1", "pt-BR"),
        ("en;q=0", "en"),
        ("*", "en"),
        ("en;q=0.5, *", "de"),
        ("en;q=0, *;q=0.1", "de"),
        ("fr, *;q=0.1", "en"),
        ("en,de,pt-BR,*", "en"),
        ("de;q=junk, pt-BR;q=0.1", "pt-BR"),
        ("-,--,de-", "de"),
    ] {
        assert_eq!(language(&tags, field), expected, "{field}");
    }
}

#[test]
fn lists_of_languages_are_checked() {
    for wrong in [
        &["en"][..],
        &[],
        &["en", "EN"],
        &["en", "d"],
        &["en", "de_AT"],
        &["en", "*"],
        &["en", "de-"],
        &["en", "x-mine"],
        &["en", ""],
    ] {
        assert!(Languages::new(wrong).is_err(), "{wrong:?}");
    }
    assert!(Languages::new(&["en"; LANGUAGES_MAX + 1]).is_err());
}

#[test]
fn image_formats_are_those_that_a_client_names() {
    let of = |field| accept(&MediaPreference::Images, field);
    let all = "image/avif,image/webp,*/*;q=0.8";
    // Chrome, Firefox and Safari, for images.
    for field in [
        "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,\
         image/svg+xml,image/*;q=0.8,*/*;q=0.5",
    ] {
        assert_eq!(of(field), all, "{field}");
    }
    assert_eq!(of("image/webp,*/*"), "image/webp,*/*;q=0.8");
    assert_eq!(of("image/png,image/*;q=0.8,*/*;q=0.5"), "*/*");
    assert_eq!(of("image/avif;q=0, image/webp;q=0.1"), "image/webp,*/*;q=0.8");
    assert_eq!(of(""), "*/*");
    let page = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,\
                image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";
    assert_eq!(of(page), "text/html,image/avif,image/webp,*/*;q=0.8");
}

#[test]
fn a_type_is_chosen_by_weight_then_by_its_name() {
    let markdown = MediaPreference::markdown();
    let (html, md) = ("text/html,*/*;q=0.8", "text/markdown,*/*;q=0.8");
    for (field, expected) in [
        ("", html),
        ("*/*", html),
        ("text/*", html),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", html),
        ("text/markdown", md),
        ("text/markdown, text/html, */*", md),
        ("text/html, text/markdown", html),
        ("text/html, text/markdown;q=0.9", html),
        ("text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7", md),
        ("Text/Markdown; charset=utf-8, */*;q=0.1", md),
        ("*/*, text/markdown", md),
        ("text/html;q=0, */*", md),
        ("text/html;q=0, text/markdown;q=0", html),
        ("text/*;q=0.5, text/markdown;q=0.1", html),
        ("application/json", html),
    ] {
        assert_eq!(accept(&markdown, field), expected, "{field}");
    }
    for media in [&markdown, &MediaPreference::Images] {
        assert_eq!(accept(media, "Text/event-stream"), "text/event-stream");
    }
    let api = types(&["text/html", "application/json"]);
    let json = "application/json,*/*;q=0.8";
    assert_eq!(accept(&api, "application/json, text/plain, */*"), json);
    assert_eq!(accept(&api, "application/*"), json);
    assert_eq!(accept(&api, "*/*"), html);
}

#[test]
fn lists_of_media_types_are_checked() {
    for wrong in [
        &["text/html"][..],
        &["text/html", "text/html"],
        &["text/html", "html"],
        &["text/html", "text/*"],
        &["text/html", "Text/Plain"],
        &["text/html", "text/plain;q=1"],
        &["text/html", "image/webp"],
    ] {
        assert!(MediaPreference::types(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn devices_are_told_by_what_their_browsers_say() {
    use DeviceClass::{Desktop, Mobile, Tablet};
    for (agent, expected) in [
        (PHONE, Mobile),
        ("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile", Mobile),
        ("Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0", Mobile),
        (
            "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) Chrome/1 Mobile (compatible; Googlebot/2.1)",
            Mobile,
        ),
        ("Opera/9.80 (J2ME/MIDP; Opera Mini/7.1) Presto/2.8", Mobile),
        ("Mozilla/5.0 (Linux; Android 13; SM-X200) AppleWebKit/537.36 Chrome/142.0.0.0", Tablet),
        ("Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) Version/12.1 Mobile/15E148", Tablet),
        ("Mozilla/5.0 (Android 15; Tablet; rv:143.0) Gecko/143.0 Firefox/143.0", Tablet),
        (
            "Mozilla/5.0 (Linux; Android 11; KFTRWI) AppleWebKit/537.36 Silk/120.1 like Chrome",
            Tablet,
        ),
        ("Mozilla/5.0 (Windows NT 6.1; Tablet PC 2.0; rv:11.0) like Gecko", Desktop),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.5 Safari/605.1.15", Desktop),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0", Desktop),
        ("curl/8.5.0", Desktop),
        ("", Desktop),
    ] {
        assert_eq!(DeviceClasses::Three.class_of(agent.as_bytes()), expected, "{agent}");
        let of_two = if expected == Tablet { Desktop } else { expected };
        assert_eq!(DeviceClasses::Two.class_of(agent.as_bytes()), of_two, "{agent}");
    }
}

#[test]
fn the_origin_sees_the_class_and_nothing_else_of_the_device() {
    let rules = VaryRules { devices: Some(DeviceClasses::Two), ..VaryRules::default() };
    let asked = [
        ("User-Agent", PHONE),
        ("Sec-CH-UA", "\"Chromium\";v=\"142\""),
        ("Sec_CH_UA_Mobile", "?0"),
        ("sec-ch-ua-platform", "\"iOS\""),
        ("X-Device", "desktop"),
        ("x_device", "desktop"),
        ("Sec-Fetch-Mode", "navigate"),
    ];
    let sent = normal(&rules, &asked, false);
    let names: Vec<_> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Sec-Fetch-Mode", "User-Agent", "X-Device"]);
    assert!(sent[1].1.contains("Mobile") && !sent[1].1.contains("iPhone"), "{sent:?}");
    assert_eq!(sent[2].1, "mobile");
    let personal = normal(&rules, &asked, true);
    assert_eq!((personal[1].1.as_str(), personal[2].1.as_str()), (PHONE, "mobile"));
}

#[test]
fn cookies_have_permitted_values_and_one_order() {
    let rules = VaryRules { cookies: all_rules().cookies, ..VaryRules::default() };
    let cookies = |fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|value| ("Cookie", *value)).collect();
        normal(&rules, &fields, false).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    for (sent, expected) in [
        (&["currency=EUR"][..], &["currency=EUR"][..]),
        (&["currency=eur"], &[]),
        (&["currency=EUR; currency=GBP"], &["currency=EUR"]),
        (&["currency=EUR; currency=USD; currency=EUR"], &["currency=EUR"]),
        (&["a=1; currency=USD; b=2; currency=EUR"], &["a=1; currency=USD; b=2"]),
        (&["view=list; currency=USD"], &["currency=USD; view=list"]),
        (&["view=list", "currency=USD"], &["currency=USD; view=list"]),
        (&["currency=; view="], &["view="]),
        // Cookies of others keep their places.
        (&["view=list; a=1; currency=USD"], &["view=list; a=1; currency=USD"]),
        (&["view=list; a=1; currency=U; b"], &["view=list; a=1; b"]),
        (&[], &[]),
    ] {
        assert_eq!(cookies(sent), expected, "{sent:?}");
    }
}

#[test]
fn what_was_sent_is_kept_for_logs() {
    let rules = all_rules();
    let asked = [
        ("User-Agent", PHONE),
        ("Accept-Language", "de"),
        ("Accept-Language", "en"),
        ("Sec-CH-UA", "a"),
        ("X-Device", "tv"),
        ("X-Id", "1"),
    ];
    let mut request = normalised(&rules, &asked, false);
    // It is read a second time, as in a fragment's request.
    rules.normalise(&mut request, false);
    let sent: Vec<_> = request.sent_fields().map(|field| (field.name, field.value)).collect();
    let expected: [(&[u8], &[u8]); 6] = [
        (b"X-Id", b"1"),
        (b"X-Device", b"mobile"),
        (b"Accept-Language", b"de"),
        (b"Accept-Language", b"en"),
        (b"User-Agent", PHONE.as_bytes()),
        (b"Sec-CH-UA", b"a"),
    ];
    assert_eq!(sent, expected);
    request.clear();
    assert!(request.sent_fields().next().is_none());
}

/// Texts in which the grammar of Accept and Accept-Language is likely.
fn preferences(ranges: &'static [&'static str]) -> impl Strategy<Value = String> {
    let weight =
        prop::sample::select(vec!["", ";q=1", ";q=0", ";q=0.5", ";q=0.8", ";q=.3", ";q=x"]);
    let member =
        (prop::sample::select(ranges), weight).prop_map(|(range, q)| format!("{range}{q}"));
    prop::collection::vec(member, 0..6).prop_map(|members| members.join(", "))
}

const LANGUAGE_RANGES: &[&str] =
    &["en", "EN-gb", "de", "de-AT", "de-Latn-AT", "pt", "pt-BR", "pt-br-x", "fr", "*", "", "-"];
const MEDIA_RANGES: &[&str] = &[
    "text/html",
    "TEXT/markdown",
    "text/*",
    "*/*",
    "application/json",
    "image/avif",
    "image/webp",
    "application/*",
    "*",
    "text/html;level=1",
    "",
];

/// The weight of a range, as RFC 9110 12.4.2 and `.3` have it.
fn model_weight(member: &str) -> Option<(String, f64)> {
    let mut parts = member.split(';');
    let range = parts.next()?.trim().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.trim().strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |text| format!("0{text}").parse().ok())?;
    (!range.is_empty()).then_some((range, weight))
}

/// Lookup as RFC 4647 3.4 tells it: sorted ranges, one after the other.
fn model_language(tags: &[&str], field: &str) -> String {
    let mut ranges: Vec<_> = field.split(',').filter_map(|one| model_weight(one.trim())).collect();
    let names = |tag: &str, of: &[(String, f64)]| {
        of.iter().any(|(range, _)| *range == tag.to_ascii_lowercase())
    };
    let refused: Vec<_> = ranges.iter().filter(|(_, weight)| *weight == 0.0).cloned().collect();
    let named = ranges.clone();
    ranges.retain(|(_, weight)| *weight > 0.0);
    ranges.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (range, _) in ranges {
        if range == "*" {
            match tags.iter().find(|tag| !names(tag, &named)) {
                Some(tag) => return (*tag).to_owned(),
                None => continue,
            }
        }
        let subtags: Vec<_> = range.split('-').collect();
        for length in (1..=subtags.len()).rev() {
            let cut = subtags[..length].join("-");
            let found = tags.iter().find(|tag| tag.eq_ignore_ascii_case(&cut));
            if let Some(tag) = found.filter(|tag| !names(tag, &refused)) {
                return (*tag).to_owned();
            }
        }
    }
    tags[0].to_owned()
}

/// The type with the greatest weight, precision and so on, by sorting all candidates.
fn model_type(names: &[&str], field: &str) -> String {
    let members = || field.split(',').filter_map(|one| model_weight(one.trim())).enumerate();
    let precision = |range: &str, name: &str| {
        let main = name.split('/').next().unwrap_or_default();
        match range {
            _ if range == name => Some(2),
            "*/*" => Some(0),
            _ => (range == format!("{main}/*")).then_some(1),
        }
    };
    let mut candidates = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let meant = members().filter_map(|(position, (range, weight))| {
            Some((precision(&range, name)?, position, weight))
        });
        // The first of the most precise.
        let best = meant.min_by_key(|(precision, position, _)| (-*precision, *position));
        if let Some((precision, position, weight)) = best.filter(|(_, _, weight)| *weight > 0.0) {
            candidates.push((weight, precision, position, at));
        }
    }
    candidates.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3))
    });
    let at = candidates.first().map_or(0, |(_, _, _, at)| *at);
    format!("{},*/*;q=0.8", names[at])
}

proptest! {
    #[test]
    fn languages_are_chosen_as_the_rfc_tells(field in preferences(LANGUAGE_RANGES)) {
        let tags = ["en", "de", "pt-BR", "de-AT"];
        prop_assert_eq!(language(&tags, &field), model_language(&tags, &field));
    }

    #[test]
    fn types_are_chosen_as_the_model_does(field in preferences(MEDIA_RANGES)) {
        let names = ["text/html", "text/markdown", "application/json"];
        prop_assert_eq!(accept(&types(&names), &field), model_type(&names, &field));
    }

    #[test]
    fn forms_are_a_closed_set_and_their_own_forms(
        language in prop_oneof![preferences(LANGUAGE_RANGES), ".*"],
        media in prop_oneof![preferences(MEDIA_RANGES), ".*"],
        agent in prop_oneof![Just(PHONE.to_owned()), ".*(Mobi|Android|iPad|Tablet)?.*"],
        cookie in prop_oneof![Just("currency=EUR"), Just("currency=a"), Just("x=1; currency=USD")],
        images in any::<bool>(),
        personal in any::<bool>(),
    ) {
        let own = if images { MediaPreference::Images } else { MediaPreference::markdown() };
        let rules = VaryRules { media: Some(own.clone()), ..all_rules() };
        let fields = [
            ("Accept-Language", language.as_str()),
            ("Accept", &media),
            ("User-Agent", &agent),
            ("Cookie", cookie),
        ];
        let once = normal(&rules, &fields, personal);
        let again: Vec<_> =
            once.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        prop_assert_eq!(&normal(&rules, &again, personal), &once);
        let of = |name: &str| {
            let mut found = once.iter().filter(|(own, _)| own == name);
            let mut next = || found.next().map(|(_, value)| value.as_str());
            (next(), next())
        };
        let (tag, more) = of("Accept-Language");
        prop_assert!(["en", "de", "pt-BR"].contains(&tag.unwrap_or_default()) && more.is_none());
        let (form, more) = of("Accept");
        let form = form.unwrap_or_default();
        let is_known = match &own {
            MediaPreference::Images => form.ends_with("*/*;q=0.8") || form == "*/*",
            MediaPreference::Types(_) => {
                ["text/html,*/*;q=0.8", "text/markdown,*/*;q=0.8"].contains(&form)
            }
        };
        prop_assert!(is_known && form.len() <= 42 && more.is_none(), "{}", form);
        let (class, more) = of("X-Device");
        prop_assert!(["mobile", "tablet", "desktop"].contains(&class.unwrap_or_default()));
        prop_assert!(more.is_none());
        let (told, _) = of("User-Agent");
        let told = told.unwrap_or_default();
        prop_assert_eq!(told == agent || !personal && told.starts_with("Mozilla/5.0 ("), true);
        prop_assert!(!of("Cookie").0.unwrap_or_default().contains("currency=a"));
    }
}
