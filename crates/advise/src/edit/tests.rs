//! Edits of texts in the forms in which people write them.

use super::*;

fn item(scope: Scope, table: &'static str, key: &'static str, item: &str) -> Edit {
    Edit { scope, table, key, value: NewValue::Item(item.to_owned()) }
}

fn edited(text: &str, edit: Edit) -> String {
    apply(text, &[edit]).expect("an edit").0
}

const SITES: &str = r#"listen = ":80"

[[site]]
host = "a.test" # the first
origin = "http://127.0.0.1:1"

[[site.route]]
path = "/x/*"
cache = false

[[site]]
host = "b.test"
origin = "http://127.0.0.1:2"
cache.ttl = "1m"
bypass = { cookie = "s" }

[site.query]
strip = "a"

[log_ring]
size = "1MiB"
"#;

#[test]
fn a_missing_table_comes_after_the_settings_of_its_site() {
    let text = edited(SITES, item(Scope::Site(0), "query", "strip", "fbclid"));
    let expected = "origin = \"http://127.0.0.1:1\"\n\n[site.query]\nstrip = [\"fbclid\"]\n\n\
                    [[site.route]]";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_text_becomes_a_list_and_a_list_gets_one_more() {
    let once = edited(SITES, item(Scope::Site(1), "query", "strip", "b"));
    assert!(once.contains("strip = [\"a\", \"b\"]"), "{once}");
    let twice = edited(&once, item(Scope::Site(1), "query", "strip", "c"));
    assert!(twice.contains("strip = [\"a\", \"b\", \"c\"]"), "{twice}");
}

#[test]
fn inline_and_dotted_tables_are_added_to() {
    let text = edited(SITES, item(Scope::Site(1), "bypass", "path", "/x"));
    assert!(text.contains("bypass = { cookie = \"s\", path = [\"/x\"] }"), "{text}");
    let text = edited(SITES, item(Scope::Site(1), "cache", "ignore", "Expires"));
    assert!(text.contains("cache.ignore = [\"Expires\"]"), "{text}");
    let same = apply(SITES, &[item(Scope::Site(1), "bypass", "cookie", "t")]);
    assert!(same.expect_err("it has the key").contains("line 15"));
}

#[test]
fn a_time_for_a_status_joins_those_that_are_there() {
    let set = |scope, status: &str| Edit {
        scope,
        table: "cache",
        key: "ttl",
        value: NewValue::Status(status.to_owned(), "1h".to_owned()),
    };
    let text = edited(SITES, set(Scope::Site(1), "404"));
    let expected = "cache.ttl = { 200 = \"1m\", 301 = \"1m\", 302 = \"1m\", 404 = \"1h\" }";
    assert!(text.contains(expected), "{text}");
    let text = edited(&text, set(Scope::Site(1), "301"));
    assert!(text.contains("{ 200 = \"1m\", 302 = \"1m\", 404 = \"1h\", 301 = \"1h\" }"), "{text}");
}

#[test]
fn a_route_for_a_path_is_made_once() {
    let scope = || Scope::Path(0, "\"*.css\"".to_owned());
    let edits = [
        item(scope(), "cache", "ignore", "Expires"),
        Edit {
            scope: scope(),
            table: "cache",
            key: "ttl",
            value: NewValue::Whole("\"1h\"".to_owned()),
        },
    ];
    let (text, made) = apply(SITES, &edits).expect("an edit");
    let expected = "cache = false\n\n[[site.route]]\npath = \"*.css\"\n\n[site.route.cache]\n\
                    ttl = \"1h\"\nignore = [\"Expires\"]\n\n[[site]]";
    assert!(text.contains(expected), "{text}");
    assert_eq!(made[1], Lines { line: 15, lines: vec!["ttl = \"1h\"".to_owned()] });
}

#[test]
fn values_of_the_top_are_replaced_where_they_stand() {
    let size = |table| Edit {
        scope: Scope::Top,
        table,
        key: "size",
        value: NewValue::Whole("\"2MiB\"".to_owned()),
    };
    let text = edited(SITES, size("log_ring"));
    assert!(text.contains("[log_ring]\nsize = \"2MiB\"\n"), "{text}");
    let text = edited(SITES, size("memory"));
    assert!(text.ends_with("\n[memory]\nsize = \"2MiB\"\n"), "{text}");
}

#[test]
fn lists_of_several_lines_get_a_line() {
    let text = "[[site]]\nhost = \"a\"\n[site.query]\nstrip = [\n    \"a\", # [\n]\nsort = true\n";
    let text = edited(text, item(Scope::Site(0), "query", "strip", "b"));
    assert!(text.contains("strip = [\n    \"b\",\n    \"a\", # [\n]\nsort = true"), "{text}");
}

#[test]
fn comments_behind_a_value_stay() {
    let text = edited("[[site]]\nhost = \"a#\" # first\n", item(Scope::Site(0), "", "host", "b"));
    assert_eq!(text, "[[site]]\nhost = [\"a#\", \"b\"] # first\n");
}

#[test]
fn strings_with_quotes_and_of_several_lines_hide_no_table() {
    for text in
        ["a = \"x\\\"[\"\n", "a = \"\"\"\n[site.cache]\n\"[\n\"\"\"\n", "a = '''\n[x\n'''\n"]
    {
        let before = format!("{text}\n[[site]]\nhost = \"a\"\n");
        let value = NewValue::Whole("true".to_owned());
        let edit = Edit { scope: Scope::Site(0), table: "cache", key: "k", value };
        let (after, _) = apply(&before, &[edit]).expect("a site");
        assert_eq!(after, format!("{before}\n[site.cache]\nk = true\n"), "{text}");
    }
}

#[test]
fn the_ends_of_lines_stay() {
    let value = NewValue::Whole("true".to_owned());
    let edit = Edit { scope: Scope::Site(0), table: "", key: "k", value };
    let (after, lines) = apply("[[site]]\r\nhost = \"a\"\r\n", &[edit]).expect("a site");
    assert_eq!(after, "[[site]]\r\nk = true\r\nhost = \"a\"\r\n");
    assert_eq!(lines[0].lines, ["k = true"]);
}
