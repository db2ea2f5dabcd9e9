//! Tests of functions and filters on URLs, and on any bytes.

use proptest::prelude::*;

use super::*;
use crate::sub::Sub;
use crate::testing::SubroutineFixture;
use crate::vmod::ObjectIdentity;

fn string(text: &str) -> Value {
    Value::String(Some(Bytes::copy_from_slice(text.as_bytes())))
}

fn call(name: &str, args: &[Value]) -> String {
    let function = FUNCTIONS.iter().find(|f| f.name == name).expect("a function");
    let answer =
        (function.call)(&mut SubroutineFixture::bare().ctx(Sub::Recv), args).expect("it answers");
    String::from_utf8(answer.into_bytes().expect("a string").to_vec()).expect("text")
}

#[test]
fn empty_parameters_go() {
    for (url, clean) in [
        ("/a?&b=1&&c&", "/a?b=1&c"),
        ("/a?&&", "/a"),
        ("/a?", "/a"),
        ("/a", "/a"),
        ("/a?b=1?c", "/a?b=1?c"),
        ("", ""),
    ] {
        assert_eq!(call("clean", &[string(url)]), clean, "{url}");
    }
}

#[test]
fn the_query_goes_as_a_whole() {
    assert_eq!(call("remove", &[string("/a?b=1&c=2")]), "/a");
    assert_eq!(call("remove", &[string("/a")]), "/a");
}

#[test]
fn parameters_are_put_in_order() {
    let url = string("/a?c=1&a=2&b&a=2&&a=1");
    assert_eq!(call("sort", &[url.clone(), Value::Bool(false)]), "/a?a=1&a=2&a=2&b&c=1");
    assert_eq!(call("sort", &[url, Value::Bool(true)]), "/a?a=1&a=2&b&c=1");
}

#[test]
fn lists_of_names_drop_or_keep() {
    let url = string("/a?utm_source=x&id=1&gclid&ids=2");
    let names = string(&["utm_source", "gclid"].join(&call("filtersep", &[])));
    assert_eq!(call("filter", &[url.clone(), names.clone()]), "/a?id=1&ids=2");
    assert_eq!(call("filter_except", &[url, names]), "/a?utm_source=x&gclid");
}

#[test]
fn globs_drop_or_keep() {
    let url = string("/a?utm_source=x&id=1&utm_medium=y");
    assert_eq!(call("globfilter", &[url.clone(), string("utm_*")]), "/a?id=1");
    assert_eq!(call("globfilter_except", &[url, string("id")]), "/a?id=1");
}

fn filter(args: &[Value], rules: &[(&str, &str)]) -> Arc<dyn Object> {
    let mut fixture = SubroutineFixture::bare();
    let naming = ObjectIdentity { name: "f", number: 0 };
    let object = (CLASS.construct)(&mut fixture.ctx(Sub::Init), &naming, args).expect("it is made");
    for (name, rule) in rules {
        let method = CLASS.methods.iter().find(|m| m.name == *name).expect("a method");
        (method.call)(&mut fixture.ctx(Sub::Init), &object, &[string(rule)]).expect("it is added");
    }
    object
}

fn applied(filter: &Arc<dyn Object>, url: &str, keeps: bool) -> String {
    let filter = this::<Filter>(filter).expect("it is one");
    let url = Bytes::copy_from_slice(url.as_bytes());
    let applied = filter.apply(&url, keeps).expect("no pattern is beyond its limits");
    String::from_utf8(applied.to_vec()).expect("text")
}

#[test]
fn a_filter_drops_or_keeps_what_is_on_its_list() {
    let rules = [("add_string", "sid"), ("add_glob", "utm_*"), ("add_regex", "^fb(clid|_)")];
    let filter = filter(&[Value::Bool(false), Value::Bool(false), Value::Enum("name")], &rules);
    let url = "/?utm_a=1&b=2&sid=3&fbclid=4&a=5&sids=6";
    assert_eq!(applied(&filter, url, false), "/?b=2&a=5&sids=6");
    assert_eq!(applied(&filter, url, true), "/?utm_a=1&sid=3&fbclid=4");
}

#[test]
fn a_filter_may_go_by_all_of_a_parameter_and_sort() {
    let args = [Value::Bool(true), Value::Bool(true), Value::Enum("param")];
    let filter = filter(&args, &[("add_string", "b=2")]);
    assert_eq!(applied(&filter, "/?c&b=2&b=1&a&a", false), "/?a&b=1&c");
}

#[test]
fn what_is_no_pattern_fails() {
    let filter = filter(&[], &[]);
    let method = CLASS.methods.iter().find(|m| m.name == "add_regex").expect("a method");
    let mut fixture = SubroutineFixture::bare();
    assert!((method.call)(&mut fixture.ctx(Sub::Init), &filter, &[string("(")]).is_err());
}

proptest! {
    #[test]
    fn what_is_dropped_and_what_is_kept_are_all(url in "/[a-c=&]{0,12}\\?[a-c=&?]{0,20}") {
        let filter = filter(&[], &[("add_string", "a")]);
        let count = |url: &str| {
            let query = url.split_once('?').map_or("", |(_, query)| query);
            query.split('&').filter(|param| !param.is_empty()).count()
        };
        let (dropped, kept) = (applied(&filter, &url, false), applied(&filter, &url, true));
        prop_assert_eq!(count(&dropped) + count(&kept), count(&url));
    }

    #[test]
    fn any_bytes_are_taken(url in prop::collection::vec(any::<u8>(), 0..60)) {
        let order = Sorting { is_sorted: true, is_unique: true };
        let url = Bytes::from(url);
        let once = rewrite(&url, order, |_| Ok(true)).expect("nothing fails");
        let twice = rewrite(&once, order, |_| Ok(true)).expect("nothing fails");
        prop_assert_eq!(twice, once);
    }
}
