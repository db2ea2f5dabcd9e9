//! Tests of the parameter table and of values.

use super::*;

#[test]
fn every_default_is_a_value_and_within_its_bounds() {
    for (at, spec) in TABLE.iter().enumerate() {
        assert_eq!(spec.param as usize, at, "{}", spec.name);
        assert!(spec.about.ends_with('.'), "{}", spec.name);
        let mut params = Params::default();
        if spec.kind == ValueKind::Absent {
            assert_eq!(params.set(spec.name, "1").err(), Some(Error::Absent(spec.name)));
            continue;
        }
        params.set(spec.name, spec.default).unwrap_or_else(|e| panic!("{e}"));
        assert!(params.is_default(spec), "{}", spec.name);
        for bound in [spec.min, spec.max].into_iter().flatten() {
            // `thread_pool_max` cannot be less than `thread_pool_min`.
            if spec.param != Param::ThreadPoolMin {
                params.set(spec.name, bound).unwrap_or_else(|e| panic!("{e}"));
            }
        }
        // A printed value can be set again.
        let row = params.row(spec);
        if row.value != "all" {
            params.set(spec.name, &row.value).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    assert!(TABLE.is_sorted_by_key(|spec| spec.name));
}

#[test]
fn values_are_read_and_refused_as_varnishd_does() {
    for (name, text, shown) in [
        ("default_ttl", "10", "10.000"),
        ("default_ttl", "10.5", "10.500"),
        ("default_ttl", "3600s", "3600.000"),
        ("default_ttl", "1h", "3600.000"),
        ("default_ttl", "1.5m", "90.000"),
        ("default_ttl", "100ms", "0.100"),
        ("max_restarts", "1", "1"),
        ("max_restarts", "-1", "unlimited"),
        ("max_restarts", "unlimited", "unlimited"),
        ("workspace_client", "128k", "128k"),
        ("workspace_client", "512k", "0.50M"),
        ("workspace_client", "9k", "9k"),
        ("workspace_session", "768", "0.75k"),
        ("http_req_size", "12345", "12345b"),
        ("http_req_size", "64KB", "64k"),
        ("vcc_allow_inline_c", "true", "on"),
        ("vcc_err_unref", "off", "off"),
        ("feature", "+http2", "+http2,+validate_headers"),
        ("feature", "-validate_headers,+esi_ignore_https", "+esi_ignore_https"),
        ("feature", "none", "none"),
        ("debug", "+req_state", "+req_state"),
        ("pool_req", "10,100,10", "10,100,10"),
        ("vcl_path", "/etc/vcl", "/etc/vcl"),
        ("acceptor_sleep_decay", "0.5", "0.5"),
    ] {
        let mut params = Params::default();
        let spec = params.set(name, text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(params.row(spec).value, shown, "{name} {text}");
        params.reset(name).expect("it is there");
        assert!(params.is_default(spec));
    }
    for (name, text, why) in [
        ("default_ttl", "-1", "Must be greater or equal to 0.000"),
        ("default_ttl", "x", "Invalid number (x)"),
        ("default_ttl", "1x", "Invalid number (1x)"),
        ("default_ttl", "", "Invalid number ()"),
        ("default_ttl", "inf", "Invalid number (inf)"),
        ("max_restarts", "1.5", "Not a number (1.5)"),
        ("http_max_hdr", "10", "Must be at least 32"),
        ("http_max_hdr", "70000", "Must be no more than 65535"),
        ("workspace_client", "1k", "Must be at least 9k"),
        ("vcc_allow_inline_c", "maybe", "use \"on\" or \"off\""),
        ("gzip_level", "10", "Must be no more than 9"),
        ("feature", "+nothing", "Unknown feature bit (+nothing)"),
        ("feature", "http2", "Unknown feature bit (http2)"),
        ("vsl_mask", "-Nothing", "Unknown VSL tag (-Nothing)"),
        ("pool_req", "10", "Three fields required: min_pool, max_pool and max_age"),
        ("pool_req", "a,b,c", "Not a number (a)"),
        ("thread_pool_min", "10000", "Must be no more than 5000 (thread_pool_max)"),
    ] {
        let before = Params::default();
        let mut params = before.clone();
        let error = params.set(name, text).expect_err(text).to_string();
        assert_eq!(
            error,
            format!("{why}\n\n(attempting to set param '{name}' to '{text}')"),
            "{name} {text}"
        );
        assert_eq!(params, before, "{name} stays");
    }
    let unknown = Params::default().set("nothing", "1").expect_err("unknown").to_string();
    assert_eq!(unknown, "Unknown parameter \"nothing\".");
}

#[test]
fn masks_unmask_what_has_a_plus() {
    let mut params = Params::default();
    let spec = params.set("vsl_mask", "+Debug,-VCL_Log").expect("two tags");
    let shown = params.row(spec).value;
    assert!(!shown.contains("-Debug") && shown.contains("-VCL_Log"), "{shown}");
    params.set("vsl_mask", "default").expect("the default");
    assert!(params.is_default(spec));
}

#[test]
fn what_asks_for_a_value_gets_it_in_its_unit() {
    let mut params = Params::default();
    params.set("http_req_size", "64k").expect("a size");
    params.set("feature", "+http2").expect("a switch");
    assert_eq!(params.number(Param::HttpReqSize), 64 << 10);
    assert_eq!(params.seconds(Param::DefaultTtl), 120.0);
    assert_eq!(params.number(Param::MaxRestarts), 4);
    assert!(params.is_on(Param::HttpGzipSupport) && params.has_feature("http2"));
    assert!(!params.has_feature("http3"));
    assert_eq!(params.by_name("default_grace"), Some(10.0));
    assert_eq!(params.by_name("vcl_path"), None);
    assert_eq!(params.text(Param::VclPath), "/etc/varnish:/usr/share/varnish/vcl");
}

#[test]
fn rows_are_shown_as_varnishd_shows_them() {
    let mut params = Params::default();
    let row = params.row(Spec::find("default_ttl").expect("there"));
    assert_eq!(row.line(29), "default_ttl                   120.000 [seconds] (default)\n");
    let long = row.long();
    assert!(
        long.starts_with(
            "default_ttl\n        Value is: 120.000 [seconds] (default)\n        Minimum is: 0.000\n\n"
        ),
        "{long}"
    );
    params.set("default_ttl", "1").expect("a time");
    let row = params.row(Spec::find("default_ttl").expect("there"));
    assert!(row.long().contains("Value is: 1.000 [seconds]\n        Default is: 120.000\n"));
    let json = row.json();
    assert!(
        json.starts_with(
            "  {\n    \"name\": \"default_ttl\",\n    \"implemented\": true,\n    \"value\": 1.000,\n    \
             \"units\": \"seconds\",\n    \"default\": \"120.000\",\n    \"minimum\": \"0.000\",\n"
        ),
        "{json}"
    );
    assert!(json.ends_with("\"flags\": [\n      \"obj_sticky\"\n    ]\n  }"), "{json}");
    let protected = Row { protected: true, ..row };
    let note = "\n\n        NB: This parameter is protected and can not be changed.\n\n";
    assert!(protected.long().ends_with(note), "{}", protected.long());
    let flags = "\"flags\": [\n      \"obj_sticky\",\n      \"protected\"\n    ]\n  }";
    assert!(protected.json().ends_with(flags), "{}", protected.json());
    let path = params.row(Spec::find("vcl_path").expect("there"));
    let flags = "[\n      \"protected\",\n      \"build_options\"\n    ]\n  }";
    assert!(Row { protected: true, ..path }.json().ends_with(flags));
    let absent = params.row(Spec::find("accept_filter").expect("there"));
    assert_eq!(absent.line(13), "accept_filter -\n");
    assert!(absent.json().ends_with("\"implemented\": false\n  }"));
}
