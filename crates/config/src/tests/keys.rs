//! Tests that the tables of keys and the parser have the same keys.

use crate::keys::Section;
use crate::load_str;
use crate::parse::TOP;

/// Lines that open a section: its title, below the title of its parent table if it has one.
fn opening(section: &Section) -> String {
    match section.title {
        "" => String::new(),
        "{ url, weight, backup, id }" => "[[origin]]\n[[origin.servers]]\n".to_owned(),
        "{ file }" => "[tracing.headers.a]\n".to_owned(),
        "{ agent, keys, ca }" => "[crawlers.signatures.a]\n".to_owned(),
        title if title.starts_with("[origin.") => format!("[[origin]]\n{title}\n"),
        title if title.starts_with("[site.route.") => {
            format!("[[site]]\n[[site.route]]\n{title}\n")
        }
        title if title.starts_with("[site.") || title.starts_with("[[site.") => {
            format!("[[site]]\n{title}\n")
        }
        title => format!("{title}\n"),
    }
}

/// A date is of the wrong type for every key: if it goes unnoticed, the key is not read.
#[test]
fn every_key_of_the_table_is_read() {
    for section in TOP.all() {
        for key in (section.keys)() {
            let text = format!("{}{} = 1979-05-27\n", opening(section), key.name);
            let errors = load_str(&text, "larder.toml").expect_err("a date");
            let at = text.find("1979").expect("the date");
            let seen = errors.iter().any(|e| e.span.as_ref().is_some_and(|s| s.start == at));
            assert!(seen, "{} {}: {}", section.title, key.name, crate::render(&errors, false));
        }
    }
}

#[test]
fn every_key_of_a_later_version_is_an_error_that_says_so() {
    for section in TOP.all() {
        for (name, _) in section.later {
            let text = format!("{}{name} = 1\n", opening(section));
            let errors = load_str(&text, "larder.toml").expect_err("not there yet");
            let expected = format!("this version does not have `{name}` yet");
            assert!(errors.iter().any(|e| e.message == expected && e.help.is_some()), "{name}");
        }
    }
}

#[test]
fn every_key_of_no_section_is_an_error() {
    for section in TOP.all() {
        let text = format!("{}zzzzzz = 1\n", opening(section));
        let errors = load_str(&text, "larder.toml").expect_err("an unknown key");
        assert!(
            errors.iter().any(|e| e.message.starts_with("unknown key `zzzzzz`")),
            "{}",
            section.title
        );
    }
}
