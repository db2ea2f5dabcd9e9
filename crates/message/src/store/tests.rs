//! Tests of the storage plan: is a response stored, for how long, and for which use.

use super::rules::DAY_MS;
use super::*;
use crate::response::Response;

/// Sat, 21 Nov 2026 22:26:40 GMT
const NOW_SECS: u64 = 1_795_300_000;
const EXCHANGE: ExchangeTimes =
    ExchangeTimes { request_ms: NOW_SECS * 1000, response_ms: NOW_SECS * 1000 };
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// The date `offset_secs` from now.
fn date(offset_secs: i64) -> String {
    crate::date::HttpDate::new(NOW_SECS.saturating_add_signed(offset_secs)).to_string()
}

fn status(code: u16) -> Status {
    Status::new(code).expect("three digits")
}

fn response(code: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::new(status(code));
    for (name, value) in fields {
        response.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    response
}

fn plan(
    request: &Request,
    personal: bool,
    response: &Response,
    exchange: ExchangeTimes,
    rules: &StoreRules,
) -> StorePlan {
    super::plan(request, personal, &JudgedHead::of(response, rules), exchange, rules)
}

fn rfc(code: u16, fields: &[(&str, &str)]) -> StorePlan {
    plan(&Request::new(), false, &response(code, fields), EXCHANGE, &StoreRules::rfc())
}

fn safe(code: u16, fields: &[(&str, &str)]) -> StorePlan {
    plan(&Request::new(), false, &response(code, fields), EXCHANGE, &StoreRules::safe())
}

fn asked_with(fields: &[(&str, &str)], personal: bool, cache_control: &str) -> StorePlan {
    let mut request = Request::new();
    for (name, value) in fields {
        request.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    let response = response(200, &[("Cache-Control", cache_control)]);
    plan(&request, personal, &response, EXCHANGE, &StoreRules::rfc())
}

fn is_fresh(plan: &StorePlan) -> bool {
    plan.store.is_ok() && plan.lifetime_ms > plan.age_ms && !plan.must_validate
}

mod lifetime {
    use super::*;

    fn lifetime(fields: &[(&str, &str)]) -> (u64, LifetimeSource) {
        let plan = rfc(200, fields);
        (plan.lifetime_ms, plan.source)
    }

    #[test]
    fn s_maxage_beats_max_age_beats_expires_beats_a_guess() {
        let (expires, modified) = (date(3600), date(-1_000_000));
        let rest = [("Expires", expires.as_str()), ("Last-Modified", modified.as_str())];
        let with = |control| lifetime(&[&[("Cache-Control", control)][..], &rest].concat());
        assert_eq!(with("max-age=5, s-maxage=60"), (MINUTE_MS, LifetimeSource::SMaxAge));
        assert_eq!(with("max-age=0"), (0, LifetimeSource::MaxAge));
        assert_eq!(with("foo"), (HOUR_MS, LifetimeSource::Expires));
        assert_eq!(lifetime(&rest[1..]), (DAY_MS, LifetimeSource::Heuristic));
        assert_eq!(lifetime(&[]), (0, LifetimeSource::None));
    }

    #[test]
    fn expires_is_counted_from_date() {
        let with = |expires: &str, date_field: &str| {
            lifetime(&[("Expires", expires), ("Date", date_field)]).0
        };
        assert_eq!(with(&date(300), &date(400)), 0);
        assert_eq!(with(&date(20), &date(10)), 10_000);
        assert_eq!(with(&date(10), "foo"), 10_000);
        assert_eq!(lifetime(&[("Expires", &date(10))]).0, 10_000);
    }

    #[test]
    fn an_expires_that_cannot_be_read_is_over() {
        let modified = date(-1_000_000);
        for expires in ["0", "-1", "", "Thu, 18 Aug 2050 02:01:18 AEST"] {
            let fields = [("Expires", expires), ("Last-Modified", modified.as_str())];
            assert_eq!(lifetime(&fields), (0, LifetimeSource::Expires), "{expires}");
        }
        let twice = date(3600);
        assert_eq!(lifetime(&[("Expires", &twice), ("Expires", &twice)]).0, 0);
    }

    #[test]
    fn a_guess_is_a_tenth_and_a_day_at_most() {
        let guess = |secs: i64| lifetime(&[("Last-Modified", &date(-secs)), ("Date", &date(0))]).0;
        assert_eq!(guess(600), MINUTE_MS);
        assert_eq!(guess(100_000_000), DAY_MS);
        assert_eq!(guess(-600), 0);
    }

    #[test]
    fn pages_are_guessed_to_be_good_for_ten_minutes_at_most_unless_the_rfc_is_meant() {
        let modified = date(-864_000);
        let guess = |kind: &str, rules: &StoreRules| {
            let fields = [("Last-Modified", modified.as_str()), ("Content-Type", kind)];
            plan(&Request::new(), false, &response(200, &fields), EXCHANGE, rules).lifetime_ms
        };
        let ten = 10 * MINUTE_MS;
        for (kind, safe) in [
            ("text/html", ten),
            ("Text/HTML; charset=utf-8", ten),
            ("application/xhtml+xml", ten),
            ("text/css", DAY_MS),
            ("image/png", DAY_MS),
        ] {
            assert_eq!(guess(kind, &StoreRules::safe()), safe, "{kind}");
            assert_eq!(guess(kind, &StoreRules::rfc()), DAY_MS, "{kind}");
        }
        let rules = StoreRules { heuristic_max_ms: MINUTE_MS, ..StoreRules::safe() };
        assert_eq!(guess("text/html", &rules), MINUTE_MS, "the shorter counts");
    }

    #[test]
    fn nothing_is_guessed_beside_pragma() {
        let modified = date(-864_000);
        for (pragma, guessed) in
            [("no-cache", false), ("x, No-Cache", false), ("cache", true), ("", true)]
        {
            let fields = [("Last-Modified", modified.as_str()), ("Pragma", pragma)];
            let source = rfc(200, &fields).source;
            assert_eq!(source == LifetimeSource::Heuristic, guessed, "{pragma}");
            let named = [fields[0], fields[1], ("Cache-Control", "max-age=60")];
            assert_eq!(rfc(200, &named).source, LifetimeSource::MaxAge, "{pragma}");
        }
    }

    #[test]
    fn only_some_statuses_are_guessed_about() {
        let modified = date(-24 * 3600);
        let fields = [("Last-Modified", modified.as_str())];
        for code in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            assert!(is_fresh(&rfc(code, &fields)), "{code}");
        }
        for code in [201, 202, 302, 403, 500, 502, 503, 504, 599] {
            assert_eq!(rfc(code, &fields).store, Err(NotStored::NoLifetime), "{code}");
        }
        let public = [fields[0], ("Cache-Control", "public")];
        assert!(is_fresh(&rfc(599, &public)));
        assert_eq!(safe(404, &fields).store, Err(NotStored::NoLifetime));
    }

    #[test]
    fn a_setting_counts_where_the_origin_names_no_lifetime() {
        let table =
            vec![(StatusMatch::Exact(status(404)), MINUTE_MS), (StatusMatch::Class(2), HOUR_MS)];
        let rules = StoreRules { default_lifetime_ms: table, ..StoreRules::safe() };
        let with = |code, fields: &[(&str, &str)]| {
            let plan = plan(&Request::new(), false, &response(code, fields), EXCHANGE, &rules);
            (plan.store, plan.lifetime_ms, plan.source)
        };
        assert_eq!(with(404, &[]), (Ok(()), MINUTE_MS, LifetimeSource::Setting));
        let modified = date(-100);
        let setting = (Ok(()), HOUR_MS, LifetimeSource::Setting);
        assert_eq!(with(200, &[("Last-Modified", &modified)]), setting);
        let zero = with(200, &[("Cache-Control", "max-age=0")]);
        assert_eq!(zero, (Err(NotStored::NoValidator), 0, LifetimeSource::MaxAge));
        assert_eq!(with(500, &[]).0, Err(NotStored::NoLifetime));
    }
}

mod age {
    use super::*;

    fn age(fields: &[(&str, &str)]) -> u64 {
        rfc(200, &[&[("Cache-Control", "max-age=3600")], fields].concat()).age_ms
    }

    #[test]
    fn the_older_of_date_and_age_counts() {
        assert_eq!(age(&[]), 0);
        assert_eq!(age(&[("Date", &date(-7200))]), 2 * HOUR_MS);
        assert_eq!(age(&[("Date", &date(-10)), ("Age", "25")]), 25_000);
        assert_eq!(age(&[("Date", &date(10)), ("Age", "15")]), 15_000);
    }

    #[test]
    fn the_answers_delay_is_added_to_age() {
        let exchange = ExchangeTimes { request_ms: EXCHANGE.request_ms - 700, ..EXCHANGE };
        let response = response(200, &[("Age", "2"), ("Date", &date(0))]);
        let plan = plan(&Request::new(), false, &response, exchange, &StoreRules::rfc());
        assert_eq!(plan.age_ms, 2700);
        let backwards = ExchangeTimes { request_ms: EXCHANGE.response_ms + 5000, ..EXCHANGE };
        let plan = super::plan(&Request::new(), false, &response, backwards, &StoreRules::rfc());
        assert_eq!(plan.age_ms, 2000);
    }

    #[test]
    fn the_first_member_of_a_list_counts() {
        assert_eq!(age(&[("Age", "0,7200")]), 0);
        assert_eq!(age(&[("Age", "7200,0")]), 2 * HOUR_MS);
    }

    #[test]
    fn an_age_that_is_no_number_is_ignored() {
        for value in ["abc", "-7200", "7200.0", "7200;foo=bar", "+7200", "", "abc, 7200"] {
            assert_eq!(age(&[("Age", value)]), 0, "{value}");
        }
        assert_eq!(age(&[("Age", "abc"), ("Date", &date(-10))]), 10_000);
        assert_eq!(age(&[("Age", "99999999999")]), 1000 << 31);
    }

    #[test]
    fn the_first_of_several_lines_counts() {
        assert_eq!(age(&[("Age", "0"), ("Age", "7200")]), 0);
        assert_eq!(age(&[("Age", "7200"), ("Age", "0")]), 2 * HOUR_MS);
        assert_eq!(age(&[("Age", "abc"), ("Age", "7200")]), 0);
        assert_eq!(age(&[("Age", "0, 0")]), 0, "two lines combined");
    }
}

mod storing {
    use super::*;

    #[test]
    fn only_final_answers_to_get_are_stored() {
        let mut request = Request::new();
        request.method = Method::Head;
        let fresh = response(200, &[("Cache-Control", "max-age=60")]);
        let plan = plan(&request, false, &fresh, EXCHANGE, &StoreRules::rfc());
        assert_eq!((plan.store, plan.hit_for_miss_ms), (Err(NotStored::Method), 0));
        let fresh = [("Cache-Control", "max-age=60")];
        assert_eq!(rfc(103, &fresh).store, Err(NotStored::NotFinal));
        for code in [206, 304, 416] {
            assert_eq!(rfc(code, &fresh).store, Err(NotStored::Status), "{code}");
        }
    }

    #[test]
    fn any_other_status_is_stored_when_it_names_a_lifetime() {
        let expires = date(1000);
        for code in [200, 203, 204, 299, 302, 303, 307, 400, 404, 410, 499, 500, 502, 503, 599] {
            assert!(is_fresh(&rfc(code, &[("Expires", &expires)])), "{code}");
        }
    }

    #[test]
    fn judgements_of_one_requests_form_are_not_stored_by_safe_rules() {
        for code in [400, 413, 414, 431, 501] {
            let plan = safe(code, &[("Cache-Control", "max-age=60")]);
            assert_eq!(plan.store, Err(NotStored::Status), "{code}");
        }
        assert!(is_fresh(&safe(404, &[("Cache-Control", "max-age=60")])));
    }

    #[test]
    fn no_store_and_private_are_not_stored() {
        let with = |control| rfc(200, &[("Cache-Control", control)]).store;
        assert_eq!(with("max-age=60, No-StOrE"), Err(NotStored::NoStore));
        assert_eq!(with("max-age=60, private"), Err(NotStored::Private));
        assert_eq!(with("max-age=60, private=\"set-cookie\""), Ok(()));
    }

    #[test]
    fn must_understand_overrules_no_store_for_known_statuses() {
        let fields = [("Cache-Control", "max-age=60, no-store, must-understand")];
        assert!(is_fresh(&rfc(200, &fields)));
        assert_eq!(rfc(599, &fields).store, Err(NotStored::NotUnderstood));
    }

    #[test]
    fn a_requests_no_store_counts_where_it_is_honoured() {
        let mut request = Request::new();
        request.headers.push(HeaderId::CacheControl, b"no-store");
        let response = response(200, &[("Cache-Control", "max-age=60")]);
        let with = |rules| plan(&request, false, &response, EXCHANGE, &rules);
        let strict = with(StoreRules::rfc());
        assert_eq!(strict.store, Err(NotStored::RequestNoStore));
        assert_eq!(strict.hit_for_miss_ms, 0);
        assert_eq!(with(StoreRules::safe()).store, Ok(()));
    }

    #[test]
    fn answers_to_authorized_requests_are_stored_only_when_for_all() {
        let asked = |control| asked_with(&[("Authorization", "x")], false, control).store;
        assert_eq!(asked("max-age=60"), Err(NotStored::Authorization));
        for control in ["max-age=60, public", "max-age=60, must-revalidate", "s-maxage=60"] {
            assert_eq!(asked(control), Ok(()), "{control}");
        }
    }

    #[test]
    fn answers_to_personal_requests_are_stored_only_when_for_all() {
        let asked = |control| asked_with(&[], true, control);
        assert_eq!(asked("max-age=60").store, Err(NotStored::Personal));
        assert_eq!(asked("max-age=60, must-revalidate").store, Err(NotStored::Personal));
        let public = asked("max-age=60, public");
        assert!(public.shared && public.store.is_ok());
        assert!(asked("s-maxage=60").shared);
        assert!(!asked("s-maxage=60, private").shared);
    }

    #[test]
    fn vary_star_is_not_stored() {
        let fields = [("Cache-Control", "max-age=60"), ("Vary", "Accept, *")];
        assert_eq!(rfc(200, &fields).store, Err(NotStored::VaryAny));
    }

    #[test]
    fn set_cookie_is_stored_only_by_rfc_rules_with_a_lifetime() {
        let fresh = [("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")];
        assert_eq!(rfc(200, &fresh).store, Ok(()));
        assert_eq!(safe(200, &fresh).store, Err(NotStored::SetCookie));
        let guessed = [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Set-Cookie", "a=b")];
        assert_eq!(rfc(200, &guessed).store, Err(NotStored::SetCookie));
        let dropped =
            [("Cache-Control", "max-age=60, no-cache=\"Set-Cookie\""), ("Set-Cookie", "a=b")];
        assert_eq!(safe(200, &dropped).store, Ok(()));
    }

    #[test]
    fn what_never_ends_is_not_stored_whatever_it_says() {
        for kind in [
            "text/event-stream",
            "Text/Event-Stream ; charset=utf-8",
            "multipart/x-mixed-replace;boundary=x",
        ] {
            let plan =
                safe(200, &[("Content-Type", kind), ("Cache-Control", "public, max-age=60")]);
            assert_eq!(plan.store, Err(NotStored::Endless), "{kind}");
            assert!(plan.hit_for_miss_ms > 0, "requests for it need not wait for each other");
        }
        let page = [("Content-Type", "text/html"), ("Cache-Control", "max-age=60")];
        assert!(safe(200, &page).store.is_ok());
    }

    #[test]
    fn what_could_never_be_used_is_not_stored() {
        assert_eq!(rfc(200, &[]).store, Err(NotStored::NoLifetime));
        let zero = ("Cache-Control", "max-age=0");
        assert_eq!(rfc(200, &[zero]).store, Err(NotStored::NoValidator));
        assert_eq!(rfc(200, &[zero, ("ETag", "\"a\"")]).store, Ok(()));
        assert_eq!(rfc(200, &[("ETag", "\"a\"")]).store, Ok(()));
        assert_eq!(rfc(403, &[("ETag", "\"a\"")]).store, Err(NotStored::NoLifetime));
        assert_eq!(rfc(404, &[("ETag", "\"a\"")]).store, Err(NotStored::NoLifetime));
        let stale = ("Cache-Control", "max-age=0, stale-while-revalidate=60");
        assert_eq!(rfc(200, &[stale]).store, Ok(()));
        let old = [("Cache-Control", "max-age=60"), ("Age", "60")];
        assert_eq!(rfc(200, &old).store, Err(NotStored::OldAge));
    }

    #[test]
    fn what_is_too_old_when_it_comes_is_told_by_what_says_so() {
        let sixty = ("Cache-Control", "max-age=60");
        let behind = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(rfc(200, &[sixty, behind]).store, Err(NotStored::OldDate));
        // The older of both counts.
        assert_eq!(rfc(200, &[sixty, behind, ("Age", "70")]).store, Err(NotStored::OldDate));
        assert_eq!(rfc(200, &[sixty, ("Age", "70")]).store, Err(NotStored::OldAge));
        let zero = [("Cache-Control", "max-age=0"), behind];
        assert_eq!(rfc(200, &zero).store, Err(NotStored::NoValidator));
        let no_cache = [("Cache-Control", "max-age=60, no-cache"), behind];
        assert_eq!(rfc(200, &no_cache).store, Err(NotStored::NoValidator));
    }

    #[test]
    fn no_cache_is_stored_to_be_validated() {
        let control = ("Cache-Control", "max-age=60, no-cache");
        assert_eq!(rfc(200, &[control]).store, Err(NotStored::NoValidator));
        let plan = rfc(200, &[control, ("ETag", "\"a\"")]);
        assert_eq!((plan.store, plan.must_validate), (Ok(()), true));
        assert!(is_fresh(&rfc(200, &[("Cache-Control", "max-age=60, no-cache=\"a\"")])));
    }

    #[test]
    fn refusals_that_concern_the_key_are_remembered() {
        assert_eq!(rfc(200, &[("Cache-Control", "private")]).hit_for_miss_ms, HIT_FOR_MISS_MS);
        assert_eq!(rfc(503, &[]).hit_for_miss_ms, HIT_FOR_MISS_ERROR_MS);
        assert_eq!(rfc(200, &[("Cache-Control", "max-age=60")]).hit_for_miss_ms, 0);
    }
}

mod windows {
    use super::*;

    fn windows(plan: &StorePlan) -> [u64; 3] {
        [plan.grace_ms, plan.stale_if_error_ms, plan.stale_if_unreachable_ms]
    }

    #[test]
    fn profiles_have_their_defaults() {
        let fresh = [("Cache-Control", "max-age=60")];
        assert_eq!(windows(&rfc(200, &fresh)), [0, 0, DAY_MS]);
        assert_eq!(windows(&safe(200, &fresh)), [10_000, DAY_MS, DAY_MS]);
    }

    #[test]
    fn directives_beat_defaults() {
        let fields = [("Cache-Control", "max-age=60, stale-while-revalidate=5, stale-if-error=7")];
        assert_eq!(windows(&rfc(200, &fields)), [5000, 7000, 7000]);
        assert_eq!(windows(&safe(200, &fields)), [5000, 7000, 7000]);
        let none = [("Cache-Control", "max-age=60, stale-while-revalidate=x")];
        assert_eq!(safe(200, &none).grace_ms, 0);
    }

    #[test]
    fn what_forbids_stale_use_forbids_all_of_it() {
        for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"] {
            let control = format!("max-age=60, stale-if-error=60, {directive}");
            assert_eq!(windows(&rfc(200, &[("Cache-Control", &control)])), [0; 3], "{directive}");
        }
    }

    #[test]
    fn s_maxage_leaves_its_stale_windows_in_the_safe_profile() {
        let fields = [("Cache-Control", "s-maxage=1, stale-while-revalidate=59")];
        assert_eq!(safe(200, &fields).grace_ms, 59_000);
        assert_eq!(rfc(200, &fields).grace_ms, 0);
    }

    #[test]
    fn what_was_never_fresh_has_no_default_grace() {
        let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"a\"")];
        assert_eq!(windows(&safe(200, &fields)), [0, DAY_MS, DAY_MS]);
    }
}

mod targets {
    use super::*;

    #[test]
    fn a_targeted_field_stands_in_for_the_others() {
        let expires = date(-10);
        let plan = rfc(
            200,
            &[
                ("Cache-Control", "no-store"),
                ("Expires", &expires),
                ("CDN-Cache-Control", "max-age=60"),
            ],
        );
        assert!(is_fresh(&plan) && plan.shared);
        assert_eq!((plan.lifetime_ms, plan.source), (MINUTE_MS, LifetimeSource::Targeted));
        let strict = [("Cache-Control", "max-age=60"), ("CDN-Cache-Control", "no-store")];
        assert_eq!(rfc(200, &strict).store, Err(NotStored::NoStore));
    }

    #[test]
    fn one_that_does_not_parse_is_ignored() {
        let fields = [("Cache-Control", "no-store"), ("CDN-Cache-Control", "max-age=60, &&&")];
        assert_eq!(rfc(200, &fields).store, Err(NotStored::NoStore));
    }

    #[test]
    fn one_of_the_wrong_type_does_not_bring_the_others_back() {
        let fields = [("Cache-Control", "max-age=60"), ("CDN-Cache-Control", "max-age=\"60\"")];
        assert_eq!(rfc(200, &fields).store, Err(NotStored::NoValidator));
    }

    #[test]
    fn age_counts_against_it_too() {
        let fields = [("CDN-Cache-Control", "max-age=60"), ("Age", "61"), ("ETag", "\"a\"")];
        assert!(!is_fresh(&rfc(200, &fields)));
    }

    #[test]
    fn surrogate_control_counts_too() {
        let fields = [("Cache-Control", "no-cache"), ("Surrogate-Control", "max-age=60+30")];
        let plan = safe(200, &fields);
        assert_eq!((plan.lifetime_ms, plan.grace_ms), (MINUTE_MS, 30_000));
        assert_eq!(rfc(200, &fields).lifetime_ms, MINUTE_MS);
    }
}

mod ignoring {
    use super::*;

    /// The plan for a 200 with a lifetime by a setting, without the fields `texts`.
    fn ignoring(texts: &[&str], request: &[(&str, &str)], fields: &[(&str, &str)]) -> StorePlan {
        let mut rules = StoreRules::safe();
        texts.iter().for_each(|text| rules.ignored.add(text).expect("a field"));
        rules.default_lifetime_ms = vec![(StatusMatch::Any, MINUTE_MS)];
        let mut asked = Request::new();
        for (name, value) in request {
            asked.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        let personal = asked.headers.contains(HeaderId::Cookie);
        plan(&asked, personal, &response(200, fields), EXCHANGE, &rules)
    }

    #[test]
    fn a_setting_has_its_say_where_the_fields_of_the_response_have_none() {
        for fields in [
            &[("Cache-Control", "no-store, private")][..],
            &[("Cache-Control", "max-age=0"), ("Expires", "0"), ("Pragma", "no-cache")],
            &[("CDN-Cache-Control", "no-store")],
            &[("Surrogate-Control", "no-store")],
        ] {
            let ignored = ["Cache-Control", "Expires", "CDN-Cache-Control", "Surrogate-Control"];
            let plan = ignoring(&ignored, &[], fields);
            assert_eq!((plan.store, plan.lifetime_ms), (Ok(()), MINUTE_MS), "{fields:?}");
            assert_eq!(plan.source, LifetimeSource::Setting, "{fields:?}");
            let counted = ignoring(&[], &[], fields);
            assert_ne!((counted.store, counted.lifetime_ms), (Ok(()), MINUTE_MS), "{fields:?}");
        }
        // What is not ignored counts.
        let both = [("Cache-Control", "no-store"), ("CDN-Cache-Control", "max-age=5")];
        assert_eq!(ignoring(&["Cache-Control"], &[], &both).lifetime_ms, 5000);
        let expires = [("Cache-Control", "private"), ("Expires", "0")];
        let plan = ignoring(&["Cache-Control"], &[], &expires);
        assert_eq!(plan.store, Err(NotStored::NoValidator));
    }

    #[test]
    fn what_is_for_one_visitor_by_its_request_is_not_stored_for_others() {
        let control = [("Cache-Control", "public, s-maxage=60, must-revalidate")];
        let authorized = [("Authorization", "Basic YTpi")];
        let cookie = [("Cookie", "sid=1")];
        assert_eq!(ignoring(&[], &authorized, &control).store, Ok(()));
        for texts in [&["Cache-Control"][..], &["Cache-Control", "Vary", "Set-Cookie"]] {
            let plan = ignoring(texts, &authorized, &control);
            assert_eq!(plan.store, Err(NotStored::Authorization));
            assert_eq!(ignoring(texts, &cookie, &control).store, Err(NotStored::Personal));
        }
    }

    #[test]
    fn what_varies_by_an_ignored_visitors_field_is_not_for_all() {
        let control = ("Cache-Control", "public, max-age=60, must-revalidate");
        let cookie = [("Cookie", "sid=1")];
        for (vary, shared) in [("User-Agent, accept", true), ("Cookie", false), ("x-user", false)] {
            let fields = [control, ("Vary", vary)];
            assert_eq!(ignoring(&["Vary"], &[], &fields).shared, shared, "{vary}");
            let asked = ignoring(&["Vary"], &cookie, &fields).store;
            assert_eq!(asked.is_ok(), shared, "{vary}");
            let asked = ignoring(&["Vary"], &[("Authorization", "x")], &fields).store;
            assert_eq!(asked.is_ok(), shared, "{vary}");
            assert!(ignoring(&[], &cookie, &fields).store.is_ok(), "{vary}");
        }
        let any = [control, ("Vary", "*")];
        assert_eq!(ignoring(&["Vary"], &[], &any).store, Err(NotStored::VaryAny));
        assert_eq!(ignoring(&["Vary: *"], &[], &any).store, Ok(()));
    }

    #[test]
    fn parts_are_judged_by_what_counts() {
        let block = |name: &str, value: &str| response(206, &[(name, value)]).headers;
        let first = StorageObjections::default();
        for (texts, name, value, kept) in [
            (&["Cache-Control"][..], "Cache-Control", "private", true),
            (&["Cache-Control"], "CDN-Cache-Control", "no-store", false),
            (&["Cache-Control"], "Set-Cookie", "a=b", false),
            (&["Set-Cookie"], "Set-Cookie", "a=b", true),
            (&["Vary"], "Vary", "*", false),
            (&["Vary: *"], "Vary", "*", true),
        ] {
            let plan = ignoring(texts, &[], &[]);
            let parts = plan.permit().expect("it may be stored").parts(first);
            assert_eq!(parts.next(&block(name, value)).is_ok(), kept, "{texts:?} {name}");
        }
    }

    #[test]
    fn x_accel_expires_precedes_what_is_ignored_and_what_is_not() {
        let mut rules = StoreRules::safe();
        rules.ignored.add("CDN-Cache-Control").expect("a field");
        let response = response(200, &[("CDN-Cache-Control", "max-age=5")]);
        let lasts = |rules: &StoreRules, seconds| {
            let mut judged = JudgedHead::of(&response, rules);
            judged.state_lifetime(seconds);
            super::super::plan(&Request::new(), false, &judged, EXCHANGE, rules)
        };
        assert_eq!(lasts(&rules, 60).lifetime_ms, MINUTE_MS);
        assert_eq!(lasts(&rules, 0).store, Err(NotStored::NoStore));
        rules.ignored.add("X-Accel-Expires").expect("a field");
        assert_eq!(lasts(&rules, 0).store, Err(NotStored::NoLifetime));
    }
}
