//! Tests of programs that use several VMODs, from source text to effects.

use bytes::Bytes;

use super::*;
use crate::sub::{Action, Sub};
use crate::testing::SubroutineFixture;

/// Runs `recv` as `vcl_recv` of a program with these imports and declarations.
fn run(imports: &str, declarations: &str, recv: &str) -> SubroutineFixture {
    let imports: String = imports.split(' ').map(|name| format!("import {name};\n")).collect();
    let program = format!(
        "vcl 4.1;\n{imports}\nbackend b1 {{ .host = \"127.0.0.1\"; }}\n\
         backend b2 {{ .host = \"127.0.0.2\"; }}\n{declarations}\n\
         sub vcl_recv {{\nset req.backend_hint = b2;\nset req.backend_hint = b1;\n\
         {recv}\nreturn (pass);\n}}\n"
    );
    let mut fixture = SubroutineFixture::of(&program).unwrap_or_else(|why| panic!("{why}"));
    let action = fixture.run(Sub::Recv);
    assert!(matches!(action, Action::Pass(_)), "{action:?} {:?}", fixture.environment.log.borrow());
    fixture
}

/// The value of the request's header `X`.
fn x(fixture: &SubroutineFixture) -> String {
    let value = fixture.req.headers.value_named(b"X").unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

/// The value of the request's header `X` after `recv`.
fn result_of(imports: &str, declarations: &str, recv: &str) -> String {
    x(&run(imports, declarations, recv))
}

#[test]
fn modules_are_sorted_and_found_by_name() {
    assert!(all().iter().map(|module| module.name).is_sorted());
    for module in all() {
        assert!(find(module.name).is_some_and(|found| ::std::ptr::eq(found, *module)));
    }
    assert!(find("nosuch").is_none());
}

#[test]
fn every_table_says_what_it_is_about() {
    let check = |what: &str, about: &str| {
        assert!(about.ends_with(['.', '`']) && about.len() > 8, "{what}: {about}");
    };
    for module in all() {
        check(module.name, module.about);
        for function in module.functions {
            check(function.name, function.about);
        }
        for class in module.classes {
            check(class.name, class.about);
            for method in class.methods {
                check(method.name, method.about);
            }
        }
    }
}

#[test]
fn cookies_are_kept_and_written() {
    let recv = r#"
        cookie.parse("a=1; utm_x=2; sid=3; _ga=4");
        cookie.filter_re("^(utm_|_ga)");
        cookie.set("new", "5");
        set req.http.X = cookie.get_string() + "|" + cookie.get("sid") + "|"
            + cookie.get_re("^s") + "|" + cookie.isset("utm_x");
        cookie.keep_re("^a$");
        set req.http.X = req.http.X + "|" + cookie.get_string();"#;
    assert_eq!(result_of("cookie", "", recv), "a=1; sid=3; new=5;|3|3|false|a=1;");
}

#[test]
fn headers_are_changed_one_by_one() {
    let recv = r#"
        header.append(req.http.Y, "1");
        header.append(req.http.Y, "2");
        header.copy(req.http.Y, req.http.Z);
        header.remove(req.http.Y, "1");
        set req.http.X = header.get(req.http.Z, "2") + header.get(req.http.Y, ".")
            + header.get(header.dyn(req, "z"), ".");
        header.regsub(req, "^X-Req: (.*)", "X-New: \1!");
        set req.http.X = req.http.X + req.http.X-New + req.http.X-Req;"#;
    assert_eq!(result_of("header", "", recv), "221asked!");
}

#[test]
fn what_is_no_header_fails() {
    let program = "vcl 4.1; import header; backend b none;
        sub vcl_recv { header.append(req.http.Y, {\"a\nb: c\"}); }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    assert!(matches!(fixture.run(Sub::Recv), Action::Fail(_)));
    assert_eq!(fixture.req.headers.value_named(b"Y"), None);
}

#[test]
fn variables_have_one_type_at_a_time() {
    let recv = r#"
        var.set("s", "text"); var.set_int("i", 5); var.set_real("r", 1.5);
        var.set_duration("d", 90s); var.set_backend("b", b2); var.set_ip("a", client.ip);
        set req.http.X = var.get("s") + "|" + var.get("i") + "|" + var.get_int("i") + "|"
            + var.get_int("s") + "|" + var.get_real("r") + "|" + var.get_duration("d") + "|"
            + var.get_backend("b") + "|" + var.get_ip("a");
        var.global_set("g", "all"); var.clear();
        set req.http.X = req.http.X + "|" + var.get("s") + "|" + var.global_get("g");"#;
    assert_eq!(result_of("var", "", recv), "text||5|0|1.500|90.000|b2|192.0.2.7||all");
}

#[test]
fn blobs_are_decoded_and_encoded() {
    let recv = r#"
        set req.http.X = blob.encode(HEX, UPPER, blob.decode(BASE64, encoded="Zm9v/w=="))
            + "|" + blob.transcode(encoded="a%20b", decoding=URL)
            + "|" + o.encode(BASE64URL)
            + "|" + blob.equal(o.get(), blob.decode(HEX, encoded="fbff"))
            + "|" + blob.same(o.get(), o.get())
            + "|" + blob.length(blob.sub(o.get(), 1B, 1B));"#;
    let init = r#"sub vcl_init { new o = blob.blob(HEX, "fbff"); }"#;
    assert_eq!(result_of("blob", init, recv), "666F6FFF|a b|-_8=|true|true|1");
}

#[test]
fn directors_lead_to_backends() {
    let init = r#"sub vcl_init {
        new r = directors.round_robin(); r.add_backend(b1); r.add_backend(b2);
        new f = directors.fallback(sticky = true); f.add_backend(r.backend());
        new h = directors.hash(); h.add_backend(b1, 1.0); h.add_backend(b2);
        new w = directors.random(); w.add_backend(b1, 10); w.add_backend(b2, 5);
        new p = directors.shard_param(); p.set(by=KEY, key=1);
        new s = directors.shard(); s.add_backend(b1); s.add_backend(b2, weight=2);
        s.associate(p.use()); s.reconfigure();
        new late = directors.shard(); late.add_backend(b2);
    }"#;
    let recv = r#"
        set req.http.X = r.backend() + "|" + f.backend() + "|" + w.backend() + "|"
            + h.backend("key") + "|" + s.backend(by=KEY, key=s.key("/")) + "|"
            + s.backend(resolve=LAZY) + "|" + late.backend(by=URL) + "|" + p.get_by();
        set req.backend_hint = f.backend();"#;
    let fixture = run("directors", init, recv);
    let names = x(&fixture);
    assert!(names.starts_with("r|f|w|b") && names.ends_with("|s|b2|KEY"), "{names}");
    assert_eq!(fixture.req_state.backend_hint.name(), "f");
    let names: Vec<String> =
        fixture.instance.backends().iter().map(|backend| backend.name().to_string()).collect();
    assert_eq!(names, ["b1", "b2", "r", "f", "h", "w", "s", "late"]);
}

#[test]
fn throttling_counts_by_key() {
    let recv = r#"
        set req.http.X = vsthrottle.remaining("k", 2, 10s)
            + "|" + vsthrottle.is_denied("k", 2, 10s) + "|" + vsthrottle.is_denied("k", 2, 10s)
            + "|" + vsthrottle.is_denied("k", 2, 10s) + "|" + vsthrottle.is_denied("l", 2, 10s)
            + "|" + vsthrottle.is_denied("k", 0, 10s, 30s)
            + "|" + vsthrottle.blocked("k", 0, 10s, 30s);
        vsthrottle.return_token("k", 2, 10s);
        set req.http.X = req.http.X + "|" + vsthrottle.is_denied("k", 2, 10s);"#;
    assert_eq!(result_of("vsthrottle", "", recv), "2|false|false|true|false|true|30.000|false");
}

#[test]
fn a_saint_stands_for_its_backend() {
    let init = "sub vcl_init { new s = saintmode.saintmode(b1, 2); }
        sub vcl_backend_response { saintmode.blacklist(20s); }
        sub vcl_backend_fetch { set bereq.backend = s.backend(); }";
    let recv = "set req.http.X = s.backend() + \"|\" + s.is_healthy() + s.blacklist_count();";
    let mut fixture = run("saintmode", init, recv);
    assert_eq!(x(&fixture), "s|true0");
    fixture.run(Sub::BackendFetch);
    let leaf = fixture.bereq_state.backend.clone().resolve(&mut fixture.ctx(Sub::BackendFetch));
    assert_eq!(leaf.as_ref().map(|leaf| &*leaf.name), Some("b1"));
    fixture.beresp_state.backend = leaf;
    fixture.run(Sub::BackendResponse);
    let again = fixture.bereq_state.backend.clone().resolve(&mut fixture.ctx(Sub::BackendFetch));
    assert!(again.is_none(), "it has failed at this request");
    fixture.run(Sub::Recv);
    assert_eq!(x(&fixture), "s|false1");
}

#[test]
fn urls_and_choices_are_filtered() {
    let init = r#"sub vcl_init {
        new q = querystring.filter(sort=true); q.add_glob("utm_*"); q.add_regex("^fbclid$");
        q.add_string("sid");
        new lang = accept.rule("en"); lang.add("de"); lang.add("fr");
    }"#;
    let recv = r#"
        set req.http.X = q.apply("/?z=1&utm_a=2&fbclid=3&sid=4&a=5") + "|"
            + q.apply("/?z=1&sid=4", mode=keep) + "|"
            + querystring.regfilter("/?a=1&ab=2&c=3", "^a") + "|"
            + querystring.filter("/?a=1&b=2", "a" + querystring.filtersep() + "c") + "|"
            + querysort.sort("/?b&a") + "|" + lang.filter("fr;q=0.5, de;q=0.8");"#;
    let expected = "/?a=5&z=1|/?sid=4|/?c=3|/?b=2|/?a&b|de";
    assert_eq!(result_of("querystring querysort accept", init, recv), expected);
}

#[test]
fn names_are_followed() {
    let init = r#"probe p { .url = "/up"; }
        sub vcl_init { new d = dynamic.director(port = "8080", probe = p, ttl = 1m); }"#;
    let recv = r#"
        set req.backend_hint = d.backend("app.example");
        set req.http.X = d.backend() + "|" + d.backend("x.example", "80");"#;
    let fixture = run("dynamic", init, recv);
    assert_eq!(x(&fixture), "d(example.com:8080)|d(x.example:80)");
    let crate::state::backend::Backend::Leaf(leaf) = &fixture.req_state.backend_hint else {
        panic!("no backend to connect to")
    };
    assert_eq!(leaf.spec.probe.as_ref().map(|probe| &*probe.url), Some("/up"));
}

#[test]
fn the_body_and_the_connection_are_seen() {
    let recv = r#"
        set req.http.X = bodyaccess.len_req_body() + "|" + proxy.is_ssl() + "|" + unix.uid()
            + "|" + tcp.congestion_algorithm("reno") + "|" + vtc.typesize("pi") + "|"
            + str.split("a b c", -1) + str.take("abc", 2) + str.reverse("ab")
            + str.startswith("ab", "a");
        tcp.set_socket_pace(1000);"#;
    let fixture = run("bodyaccess proxy unix tcp vtc str", "", recv);
    assert_eq!(x(&fixture), "-1|false|-1|0|16|cabbatrue");
    assert_eq!(fixture.connection.pace.get(), 1_024_000);
}

#[test]
fn a_kept_body_is_matched_and_hashed() {
    let program = "vcl 4.1; import bodyaccess; backend b none;
        sub vcl_recv { set req.http.X = \"\" + bodyaccess.rematch_req_body(\"^hel+o$\")
            + bodyaccess.rematch_req_body(\"HELLO\") + bodyaccess.len_req_body(); }
        sub vcl_hash { bodyaccess.hash_req_body(); return (lookup); }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    fixture.environment.body = Some(b"hello".to_vec());
    fixture.run(Sub::Recv);
    assert_eq!(x(&fixture), "105");
    fixture.run(Sub::Hash);
    assert_eq!(base::key_fields(fixture.key.bytes()).collect::<Vec<_>>(), [b"hello"]);
}

#[test]
fn purges_tell_how_many() {
    let program = "vcl 4.1; import purge; import xkey; backend b none;
        sub vcl_recv { set req.http.X = \"\" + xkey.purge(\"a b\") + xkey.softpurge(\"c\"); }
        sub vcl_miss { set req.http.X = \"\" + purge.hard() + purge.soft(10s, 5s); }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    fixture.run(Sub::Recv);
    assert_eq!(x(&fixture), "21");
    fixture.run(Sub::Miss);
    assert_eq!(x(&fixture), "11");
    let soft = crate::state::environment::PurgeMode::Soft {
        ttl: Some(10.0),
        grace: Some(5.0),
        keep: None,
    };
    assert_eq!(fixture.environment.purges.borrow()[1], (Bytes::from_static(b"key").to_vec(), soft));
}
