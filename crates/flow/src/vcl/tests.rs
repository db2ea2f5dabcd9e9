//! Tests of requests through programs, with an origin on the loopback.

pub(crate) mod rig;

use rig::Rig;

use crate::explain::Explanation;
use crate::forecast::outcome::ForecastOutcome;
use crate::invalidate::{Invalidation, Journal, JournalWrite};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::reply::CacheOutcome;

/// A configuration of one site without a program.
pub(crate) fn bare_live() -> LiveConfiguration {
    rig::live(None, &vcl::params::Params::default())
}

#[test]
fn what_is_fetched_is_hit_the_next_time() {
    let rig = Rig::new("ORIGIN");
    let first = rig.ask("GET /a");
    assert_eq!((first.status, &first.body[..]), (200, "hello"));
    assert_eq!(first.field("Age"), Some("0"));
    assert_eq!(first.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(first.field("X-Varnish"), Some("2"));
    assert_eq!(first.ran, ["recv", "hash", "miss", "backend_fetch", "backend_response", "deliver"]);
    let second = rig.ask("GET /a");
    assert_eq!(second.field("X-Varnish"), Some("4 3"));
    assert_eq!(second.body, "hello");
    assert_eq!(second.ran, ["recv", "hash", "hit", "deliver"]);
    let asked = rig.origin.asked();
    let [only] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert!(only.starts_with("GET /a HTTP/1.1\nHost: example.com\n"), "{only}");
    for line in ["X-Forwarded-For: 127.0.0.9\n", "Accept-Encoding: gzip\n", "X-Varnish: 3\n"] {
        assert!(only.contains(line), "{only}");
    }
}

#[test]
fn a_purge_whose_sweep_is_not_done_says_pending_and_is_in_force() {
    let rig = Rig::new("ORIGIN");
    rig.ask("GET /a");
    let held = rig.hold_sweeps();
    assert!(rig.purge(20).pending);
    rig.ask("GET /a");
    assert_eq!(rig.origin.asked().len(), 2, "what was purged answers no more");
    drop(held);
    // With the longest wait.
    let outcome = rig.purge(u64::from(u32::MAX));
    assert_eq!((outcome.objects, outcome.pending), (1, false));
}

/// A journal without space.
struct Full;

impl Journal for Full {
    fn name(&self) -> &str {
        "full"
    }

    fn record(&self, _: &[&Invalidation]) -> Result<Box<dyn JournalWrite>, String> {
        Err("no room".to_owned())
    }

    fn wait(&self) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn what_a_journal_refuses_no_program_purges_and_its_log_names_the_journal() {
    let rig = Rig::new(
        "ORIGIN import std; import xkey; import purge; sub vcl_recv { if (req.method == \
         \"PURGE\") { return (purge); } if (req.http.ban) { ban(req.http.ban); } \
         if (req.http.key) { set req.http.n = xkey.purge(req.http.key); } } sub vcl_hit { \
         if (req.http.hard) { set req.http.n = purge.hard(); } if (req.http.soft) { \
         set req.http.n = purge.soft(0s); } }",
    );
    assert!(rig.core.shared.invalidator.record_invalidations(std::sync::Arc::new(Full)));
    rig.ask("GET /a");
    for (request, status) in [
        ("PURGE /a", 503),
        ("GET /a\nban: req.url ~ .", 200),
        ("GET /a\nkey: a", 503),
        ("GET /a\nhard: 1", 503),
        ("GET /a\nsoft: 1", 503),
    ] {
        let seen = rig.ask(request);
        assert_eq!(seen.status, status, "{request}");
        let names_it = |line: &String| line.contains("the journal `full` refuses: no room");
        assert!(seen.log.iter().any(names_it), "{request}: {:?}", seen.log);
    }
    assert_eq!(rig.ask("GET /a").ran, ["recv", "hash", "hit", "deliver"]);
    assert_eq!(rig.origin.asked().len(), 1);
}

#[test]
fn a_pass_goes_along_with_its_body_and_is_not_stored() {
    let rig = Rig::new("ORIGIN");
    for _ in 0..2 {
        let seen = rig.ask("POST /a\nX-A: 1\n\nabc");
        assert_eq!((seen.status, &seen.body[..]), (200, "hello"));
        assert_eq!(seen.field("Accept-Ranges"), None);
    }
    let asked = rig.origin.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].starts_with("POST /a") && asked[0].ends_with("abc"), "{}", asked[0]);
}

#[test]
fn an_uncacheable_answer_leaves_a_mark_for_miss() {
    let rig = Rig::new(
        "ORIGIN sub vcl_deliver { set resp.http.M = req.is_hitmiss; set resp.http.U = \
         obj.uncacheable; }",
    );
    rig.origin.answers(&["200 OK\nSet-Cookie: a=b\nCache-Control: private\n\nx"]);
    let first = rig.ask("GET /a");
    assert_eq!((first.field("M"), first.field("U")), (Some("false"), Some("true")));
    assert_eq!(first.field("Set-Cookie"), Some("a=b"));
    let second = rig.ask("GET /a");
    assert_eq!((second.field("M"), second.field("U")), (Some("true"), Some("true")));
    // A cacheable response replaces the mark.
    rig.origin.answers(&["200 OK\n\ny"]);
    assert_eq!(rig.ask("GET /a").field("U"), Some("false"));
    assert_eq!(rig.ask("GET /a").ran, ["recv", "hash", "hit", "deliver"]);
    assert_eq!(rig.origin.asked().len(), 3);
}

#[test]
fn a_mark_for_pass_has_requests_go_past_the_store() {
    let rig = Rig::new("ORIGIN sub vcl_backend_response { return (pass(10s)); }");
    assert_eq!(rig.ask("GET /a").ran[2], "miss");
    assert_eq!(rig.ask("GET /a").ran[2], "pass");
}

#[test]
fn a_failed_program_answers_503_and_ends_the_connection() {
    for text in [
        "ORIGIN sub vcl_recv { return (fail); }",
        "ORIGIN sub vcl_deliver { return (fail); }",
        "ORIGIN sub vcl_hash { return (fail); }",
        "ORIGIN sub vcl_miss { return (fail); }",
    ] {
        let seen = Rig::new(text).ask("GET /a");
        assert_eq!(seen.status, 503, "{text}");
        assert!(seen.head.starts_with("HTTP/1.1 503 VCL failed\n"), "{}", seen.head);
        assert!(seen.body.contains("<p>VCL failed</p>"), "{}", seen.body);
        assert!(seen.close);
    }
}

#[test]
fn restarts_keep_what_was_changed_and_come_to_an_end() {
    let rig = Rig::new(
        "ORIGIN sub vcl_recv { if (req.restarts == 0) { set req.http.X-A = \"kept\"; set req.url = \
         \"/b\"; return (restart); } return (pass); }",
    );
    assert_eq!(rig.ask("GET /a").field("X-Varnish"), Some("3"));
    let asked = rig.origin.asked();
    assert!(asked[0].starts_with("GET /b ") && asked[0].contains("X-A: kept\n"), "{}", asked[0]);
    let rig = Rig::new("ORIGIN sub vcl_recv { return (restart); }");
    let seen = rig.ask("GET /a");
    assert!(seen.head.starts_with("HTTP/1.1 503 Service Unavailable\n"), "{}", seen.head);
    assert_eq!(seen.ran.iter().filter(|sub| *sub == "recv").count(), 5);
    assert!(!seen.close);
}

#[test]
fn a_failed_fetch_is_retried_and_then_reported() {
    let rig =
        Rig::new("ORIGIN sub vcl_backend_error { if (bereq.retries < 2) { return (retry); } }");
    rig.origin.answers(&["close", "close", "200 OK\n\nback"]);
    assert_eq!(rig.ask("GET /a").body, "back");
    rig.origin.answers(&["close"]);
    let seen = rig.ask("GET /b");
    assert!(seen.head.starts_with("HTTP/1.1 503 Backend fetch failed\n"), "{}", seen.head);
    let rig = Rig::new("ORIGIN sub vcl_backend_response { return (retry); }");
    assert_eq!(rig.ask("GET /a").status, 503);
    assert_eq!(rig.origin.asked().len(), 5);
    for verb in ["abandon", "fail"] {
        let rig = Rig::new(&format!("ORIGIN sub vcl_backend_fetch {{ return ({verb}); }}"));
        let seen = rig.ask("GET /a");
        assert!(seen.head.starts_with("HTTP/1.1 503 Service Unavailable\n"), "{}", seen.head);
    }
}

#[test]
fn what_is_over_is_confirmed_with_its_validators() {
    let rig = Rig::new(
        "ORIGIN sub vcl_backend_response { set beresp.ttl = 1ms; set beresp.grace = 0s; set \
         beresp.keep = 10s; set beresp.http.W = beresp.was_304; }",
    );
    rig.origin.answers(&["200 OK\nETag: \"a\"\nX-Old: 1\n\nbody", "304 Not Modified\nX-New: 1"]);
    assert_eq!(rig.ask("GET /a").field("W"), Some("false"));
    let seen = rig.ask("GET /a");
    assert_eq!((seen.status, &seen.body[..]), (200, "body"));
    assert_eq!(
        (seen.field("W"), seen.field("X-New"), seen.field("X-Old")),
        (Some("true"), Some("1"), Some("1"))
    );
    assert!(rig.origin.asked()[1].contains("If-None-Match: \"a\"\n"));
}

#[test]
fn within_grace_the_old_answer_is_given_and_one_fetch_refreshes_it() {
    let rig = Rig::new(
        "ORIGIN sub vcl_backend_response { set beresp.ttl = 1ms; set beresp.http.B = \
         bereq.is_bgfetch; }",
    );
    rig.origin.answers(&["200 OK\n\none", "200 OK\n\ntwo"]);
    rig.ask("GET /a");
    let stale = rig.ask("GET /a");
    assert_eq!((&stale.body[..], stale.field("B")), ("one", Some("false")));
    let next = rig.ask("GET /a");
    assert_eq!((&next.body[..], next.field("B")), ("two", Some("true")));
}

#[test]
fn conditions_and_ranges_count_after_vcl_deliver() {
    for text in ["ORIGIN", "ORIGIN sub vcl_deliver { set resp.http.X = \"1\"; }"] {
        let rig = Rig::new(text);
        rig.origin.answers(&["200 OK\nETag: \"a\"\n\nhello"]);
        rig.ask("GET /a");
        let seen = rig.ask("GET /a\nIf-None-Match: \"a\"");
        assert_eq!((seen.status, &seen.body[..]), (304, ""), "{text}");
        let seen = rig.ask("GET /a\nRange: bytes=1-2");
        assert_eq!((seen.status, &seen.body[..]), (206, "el"), "{text}");
        assert_eq!(seen.field("Content-Range"), Some("bytes 1-2/5"));
        let seen = rig.ask("GET /a\nRange: bytes=10-20");
        assert_eq!((seen.status, &seen.body[..]), (416, ""), "{text}");
        assert_eq!(rig.ask("HEAD /a").status, 200);
    }
}

#[test]
fn purging_takes_the_object_out_and_says_so() {
    let rig = Rig::new("ORIGIN sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }");
    rig.ask("GET /a");
    let seen = rig.ask("PURGE /a");
    assert!(seen.head.starts_with("HTTP/1.1 200 Purged\n"), "{}", seen.head);
    assert_eq!(rig.ask("GET /a").ran[2], "miss");
}

#[test]
fn bans_of_a_program_meet_what_was_asked_for() {
    let rig = Rig::new(
        "ORIGIN sub vcl_recv { if (req.method == \"BAN\") { ban(\"req.url == \" + req.url); return \
         (synth(200)); } } sub vcl_hash { hash_data(req.http.X-Key); return (lookup); }",
    );
    rig.ask("GET /a\nX-Key: 1");
    rig.ask("GET /b\nX-Key: 2");
    rig.ask("BAN /a");
    assert_eq!(rig.ask("GET /a\nX-Key: 1").ran[2], "miss");
    assert_eq!(rig.ask("GET /b\nX-Key: 2").ran[2], "hit");
}

#[test]
fn variants_are_selected_by_the_backend_requests_fields() {
    let rig = Rig::new("ORIGIN");
    rig.origin.answers(&["200 OK\nVary: X-L\n\none", "200 OK\nVary: X-L\n\ntwo"]);
    assert_eq!(rig.ask("GET /a\nX-L: 1").body, "one");
    assert_eq!(rig.ask("GET /a\nX-L: 2").body, "two");
    assert_eq!(rig.ask("GET /a\nX-L: 1").body, "one");
    assert_eq!(rig.origin.asked().len(), 2);
}

#[test]
fn those_who_ask_at_once_wait_for_one_fetch() {
    let rig = Rig::new("ORIGIN");
    let seen = rig.ask_at_once(&["GET /a", "GET /a", "GET /a"]);
    assert!(seen.iter().all(|seen| seen.body == "hello"));
    assert_eq!(rig.origin.asked().len(), 1);
    // Requests for personal responses fetch for themselves.
    let rig = Rig::new("ORIGIN sub vcl_backend_response { set beresp.uncacheable = true; }");
    let seen = rig.ask_at_once(&["GET /a", "GET /a", "GET /a"]);
    assert!(seen.iter().all(|seen| seen.body == "hello"));
    assert_eq!(rig.origin.asked().len(), 3);
}

#[test]
fn synthetic_answers_come_from_anywhere() {
    for (text, status) in [
        ("sub vcl_recv { return (synth(700, \"hi\")); }", 700),
        ("sub vcl_miss { return (synth(701)); }", 701),
        ("sub vcl_deliver { return (synth(702)); }", 702),
        ("sub vcl_pass { return (synth(703)); } sub vcl_recv { return (pass); }", 703),
        ("sub vcl_backend_fetch { return (error(704, \"e\")); }", 704),
        ("sub vcl_backend_response { return (error(705, \"e\")); }", 705),
        ("sub vcl_pipe { return (synth(706)); } sub vcl_recv { return (pipe); }", 706),
    ] {
        let rig = Rig::new(&format!("ORIGIN {text}"));
        assert_eq!(rig.ask("GET /a").status, status, "{text}");
    }
    let rig = Rig::new("ORIGIN sub vcl_recv { return (synth(700, \"hi\")); }");
    let seen = rig.ask("GET /a");
    assert!(seen.head.starts_with("HTTP/1.1 700 hi\n"), "{}", seen.head);
    assert_eq!(seen.field("Retry-After"), Some("5"));
}

#[test]
fn a_pipe_hands_one_request_over_and_ends_the_connection() {
    let rig = Rig::new("ORIGIN sub vcl_recv { return (pipe); }");
    let seen = rig.ask("FOO /a\nX-A: 1\n\nabc");
    assert_eq!((seen.status, &seen.body[..], seen.close), (200, "hello", true));
    assert_eq!(seen.field("X-Varnish"), None);
    let asked = rig.origin.asked();
    assert!(asked[0].starts_with("FOO /a ") && asked[0].ends_with("abc"), "{}", asked[0]);
}

#[test]
fn a_kept_body_is_sent_again() {
    let rig = Rig::new(
        "ORIGIN import std; sub vcl_recv { std.cache_req_body(10KB); return (pass); } sub \
         vcl_backend_response { if (bereq.retries == 0) { return (retry); } }",
    );
    assert_eq!(rig.ask("POST /a\n\nabc").status, 200);
    let asked = rig.origin.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|asked| asked.ends_with("abc")));
    // The body is not kept, so it is gone after the first try.
    let rig = Rig::new(
        "ORIGIN sub vcl_recv { return (pass); } sub vcl_backend_response { if (bereq.retries == 0) \
         { return (retry); } }",
    );
    assert_eq!(rig.ask("POST /a\n\nabc").status, 503);
}

/// A program that switches to another for some requests.
fn labelled() -> Rig {
    let rig = Rig::new("ORIGIN\nsub vcl_recv { if (req.http.X-A) { return (vcl(other)); } }");
    rig.label("vcl 4.1;\nbackend none none;\nsub vcl_recv {\n  return (synth(299, \"in it\"));\n}");
    rig
}

#[test]
fn a_label_goes_on_in_its_program() {
    let seen = labelled().ask("GET /a\nX-A: 1");
    assert_eq!(seen.status, 299);
    assert_eq!(seen.recorded[..2], ["recv test.vcl:3 vcl", "recv test.vcl:4 synth"]);
    assert_eq!(labelled().ask("GET /a").status, 200);
}

#[test]
fn the_forecast_follows_a_label() {
    let all = labelled().foretell("GET /a\nX-A: 1");
    let recvs = all.steps.iter().filter(|step| step.what == "recv");
    let recorded: Vec<_> = recvs.map(|step| (&*step.why, step.place.as_deref())).collect();
    let expected = [
        ("vcl_recv returned vcl(other)", Some("test.vcl:3")),
        ("vcl_recv returned synth(299, \"in it\")", Some("test.vcl:4")),
    ];
    assert_eq!(recorded, expected);
    assert_eq!(all.summary, "would be answered by vcl_synth, with status 299");
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    // Each subroutine calls the next eight times: 8^7 statements.
    let mut text = "ORIGIN sub s0 { set req.http.X = \"y\"; }".to_owned();
    for n in 1..8 {
        let calls = format!("call s{};", n - 1).repeat(8);
        text.push_str(&format!(" sub s{n} {{ {calls} }}"));
    }
    text.push_str(" sub vcl_recv { call s7; }");
    let seen = Rig::new(&text).ask("GET /a");
    // `vcl_synth` has no steps left either.
    assert!(seen.head.starts_with("HTTP/1.1 500 "), "{}", seen.head);
    assert!(!seen.log.is_empty());
}

#[test]
fn what_claims_to_be_in_gzip_and_is_not_breaks_off_and_is_not_stored() {
    let rig = Rig::new("ORIGIN");
    rig.origin.answers(&["200 OK\nContent-Encoding: gzip\n\nnot gzip at all"; 2]);
    for _ in 0..2 {
        assert_eq!(rig.ask("GET /a\nAccept-Encoding: gzip").body, "");
    }
    assert_eq!(rig.origin.asked().len(), 2);
}

#[test]
fn a_record_names_the_line_of_each_return_and_the_log_before_it() {
    let rig = Rig::new(
        "import std;
ORIGIN
sub vcl_recv {
  std.log(\"url\" + req.restarts);
  if (req.url == \"/a\") {
    set req.url = \"/b\";
    return (restart);
  }
  call deeper;
}
sub deeper { call deepest; }
sub deepest {
  return (hash);
}
sub vcl_backend_response {
  std.log({\"two
lines\"});
  if (bereq.retries == 0) { return (retry); }
}
sub vcl_deliver { std.log(\"last\"); }",
    );
    let seen = rig.ask("GET /a");
    assert_eq!(
        seen.recorded,
        [
            "VCL_Log url0",
            "recv test.vcl:8 restart",
            "hash <builtin> lookup",
            "VCL_Log url1",
            "recv test.vcl:14 hash",
            "hash <builtin> lookup",
            "miss <builtin> fetch",
            "backend_fetch <builtin> fetch",
            "VCL_Log two lines",
            "backend_response test.vcl:19 retry",
            "backend_fetch <builtin> fetch",
            "VCL_Log two lines",
            "backend_response <builtin> deliver",
            "VCL_Log last",
            "deliver <builtin> deliver",
        ]
    );
    let hit = ["recv test.vcl:14 hash", "hash <builtin> lookup", "hit <builtin> deliver"];
    assert_eq!(rig.ask("GET /b").recorded[1..4], hit);
}

#[test]
fn a_failure_is_recorded_where_the_program_or_fetch_failed() {
    let rig = Rig::new(
        "import std;
ORIGIN
sub vcl_recv {
  if (req.url == \"/a\") {
    return (fail(\"on purpose\"));
  }
}",
    );
    assert_eq!(
        rig.ask("GET /a").recorded,
        [
            "VCL_Error on purpose (test.vcl line 6)",
            "recv test.vcl:6 fail",
            "synth <builtin> deliver"
        ]
    );
    rig.origin.answers(&["close"]);
    let recorded = rig.ask("GET /b").recorded;
    assert!(recorded[4].starts_with("FetchError backend b: "), "{recorded:?}");
    assert_eq!(recorded[5], "backend_error <builtin> deliver");
}

/// The step called `what`: its reason, place and facts.
fn step(rig: &Rig, request: &str, what: &str) -> (String, String, Vec<String>) {
    let all = rig.foretell(request);
    let step = all.steps.iter().find(|step| step.what == what);
    let step = step.unwrap_or_else(|| panic!("no {what} in {:?}", all.steps));
    let place = step.place.as_deref().unwrap_or_default().to_owned();
    let facts = step.facts.iter().map(|(name, value)| format!("{name}: {value}"));
    (step.why.clone(), place, facts.collect())
}

const FORETOLD: &str = "import std; import directors;
ORIGIN
sub vcl_init { new rr = directors.round_robin(); rr.add_backend(b); }
sub vcl_recv {
  std.log(\"seen\");
  if (req.method == \"BAN\") {
    ban(\"req.url ~ /a\");
    return (synth(200, \"Banned\"));
  }
  if (req.url == \"/old\") { set req.url = \"/new\"; return (restart); }
  if (req.url == \"/rr\") { set req.backend_hint = rr.backend(); return (pass); }
  unset req.http.Cookie;
}
sub vcl_hash { hash_data(req.http.X-Kind); }
sub vcl_backend_fetch { set bereq.http.X-Fetch = \"1\"; }
sub vcl_backend_response {
  if (bereq.url == \"/long\") {
    set beresp.ttl = 1h;
  }
}";

#[test]
fn a_forecast_names_lines_and_changes() {
    let rig = Rig::new(FORETOLD);
    let request = "GET /a\nCookie: a=b\nX-Kind: k";
    let (why, place, facts) = step(&rig, request, "recv");
    assert!(why == "vcl_recv returned hash" && place.starts_with("<builtin>:"), "{why} {place}");
    let expected = ["line: return (hash);", "VCL_Log: seen", "changes: req.http.Cookie is unset"];
    assert_eq!(facts, expected);
    assert_eq!(step(&rig, request, "key").0, "hash_data: `k`, `/a`, `example.com`");
    let (why, _, facts) = step(&rig, request, "backend");
    assert!(why.starts_with("`b` (127.0.0.1:") && why.contains("once for all waiting"), "{why}");
    assert_eq!(facts, ["timeouts: connect 3.5 s, first byte 60 s, between bytes 60 s"]);
    let fetch = step(&rig, request, "backend_fetch").2;
    assert!(fetch.contains(&"changes: bereq.http.X-Fetch to 1".to_owned()), "{fetch:?}");
    let all = rig.foretell(request);
    assert_eq!(
        (all.outcome.word(), &*all.summary),
        ("MISS", "would be fetched: no stored response fits")
    );
    assert_eq!(rig.origin.asked(), Vec::<String>::new());
    let xid = rig.ask(request).field("X-Varnish").map(str::to_owned);
    assert_eq!(xid.as_deref(), Some("2"), "explaining takes no numbers");
    let hit = rig.foretell(request);
    assert_eq!(
        (hit.outcome.word(), &*hit.summary),
        ("HIT", "would be answered from the cache, with status 200")
    );
    let (why, ..) = step(&rig, request, "freshness");
    assert!(why.starts_with("ttl 120 s (2 min): parameter `default_ttl`; age "), "{why}");
}

#[test]
fn bans_restarts_and_directors_are_forecast_without_effect() {
    let rig = Rig::new(FORETOLD);
    rig.ask("GET /a");
    let (why, place, facts) = step(&rig, "BAN /a", "recv");
    assert_eq!((&*why, &*place), ("vcl_recv returned synth(200, \"Banned\")", "test.vcl:9"));
    assert!(facts.contains(&"would: ban req.url ~ /a".to_owned()), "{facts:?}");
    assert_eq!(rig.foretell("BAN /a").outcome.word(), "SYNTH");
    assert_eq!(rig.foretell("GET /a").outcome.word(), "HIT", "nothing was banned");
    let recvs = |all: &Explanation| {
        let all = all.steps.iter().filter(|step| step.what == "recv");
        all.map(|step| step.place.as_deref().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let restarted = rig.foretell("GET /old");
    assert_eq!(recvs(&restarted)[0], "test.vcl:11");
    assert_eq!((recvs(&restarted).len(), &restarted.request.target[..]), (2, &b"/new"[..]));
    let (why, ..) = step(&rig, "GET /rr", "backend");
    assert_eq!(why, "one of director `rr` (round-robin) would be asked for this client alone");
    assert_eq!(rig.foretell("GET /rr").outcome.word(), "PASS");
}

#[test]
fn a_programs_lifetime_is_explained_by_the_lines_that_set_it() {
    let rig = Rig::new(FORETOLD);
    rig.ask("GET /long");
    let (why, _, facts) = step(&rig, "GET /long", "freshness");
    assert!(why.starts_with("ttl 3600 s (60 min): set by the program"), "{why}");
    assert_eq!(facts[0], "may be from: test.vcl:19: set beresp.ttl = 1h;");
}

#[test]
fn forecasts_of_stored_responses_come_true() {
    let rig = Rig::new(FORETOLD);
    rig.ask("GET /a");
    for (request, status) in [
        ("GET /a", 200),
        ("HEAD /a", 200),
        ("GET /a\nIf-None-Match: *", 304),
        ("GET /a\nRange: bytes=0-0", 206),
        ("GET /a\nRange: bytes=1000-", 416),
    ] {
        let ForecastOutcome::Answer { served, status: Some(outcome) } =
            rig.foretell(request).outcome
        else {
            panic!("{request}: an answer")
        };
        assert_eq!((served, outcome.code()), (CacheOutcome::Hit, status), "{request}");
        assert_eq!(rig.ask(request).status, status, "{request}");
    }
}
