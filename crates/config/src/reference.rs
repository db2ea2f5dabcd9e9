//! The reference page of every key, limit and counter, made from the tables that the program itself
//! uses.

use std::fmt::Write as _;

use base::counters::{self, Kind};

use crate::keys::Section;
use crate::parse::TOP;

const HEAD: &str = "\
# Configuration reference

<!-- Made by `cargo xtask docs` from the tables in the code; changes here are lost. -->
";

/// The introduction of the reference, in Markdown.
pub const REFERENCE_INTRODUCTION: &str = "\
`larder.toml` is TOML. Durations need a unit (`100ms`, `10s`, `5m`, `1h`, `1d`, `1w`, `1y`), and so
do sizes (`64KiB`, `1GiB`, `250MB`). Unknown keys and undefined names are errors; `larder check`
shows all of them.
";

/// Every kind of table, in the order of the reference.
pub fn reference_sections() -> Vec<&'static Section> {
    TOP.all()
}

/// The page, as Markdown.
pub fn reference_markdown() -> String {
    let mut page = format!("{HEAD}\n{REFERENCE_INTRODUCTION}");
    for section in TOP.all() {
        let title = match section.title {
            "" => "Top of the file".to_owned(),
            title => format!("`{title}`"),
        };
        push(&mut page, format_args!("\n## {title}\n\n{}\n\n", section.about));
        page.push_str("| key | takes | default | what it does |\n|---|---|---|---|\n");
        for key in (section.keys)() {
            let (takes, about) = (cell(key.takes), cell(key.about));
            let default = match key.default.as_ref() {
                value
                    if value
                        .starts_with(['"', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) =>
                {
                    format!("`{value}`")
                }
                words => words.to_owned(),
            };
            push(&mut page, format_args!("| `{}` | {takes} | {default} | {about} |\n", key.name));
        }
    }
    page.push_str(
        "\n## Counters\n\nNames in `larder stat`; `larder_` precedes them in `/metrics`.\n\n",
    );
    page.push_str("| counter | kind | what it counts |\n|---|---|---|\n");
    for spec in counters::TABLE {
        let kind = match spec.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Peak => "peak",
        };
        push(&mut page, format_args!("| `{}` | {kind} | {} |\n", spec.name, cell(spec.about)));
    }
    page
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes whatever is written to it");
}

/// A bar would end the table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_described() {
        for section in TOP.all() {
            let keys = (section.keys)();
            for (at, key) in keys.iter().enumerate() {
                assert!(keys[..at].iter().all(|k| k.name != key.name), "{}", key.name);
                assert!(key.about.ends_with('.') && !key.takes.is_empty(), "{}", key.name);
                assert!(section.later.iter().all(|(name, _)| *name != key.name), "{}", key.name);
            }
        }
    }

    #[test]
    fn the_page_has_every_key_limit_and_counter() {
        let page = reference_markdown();
        for section in TOP.all() {
            assert!(page.contains(section.title));
            for key in (section.keys)() {
                assert!(page.contains(&format!("| `{}` | ", key.name)), "{}", key.name);
            }
        }
        assert!(counters::TABLE.iter().all(|spec| page.contains(&format!("| `{}` | ", spec.name))));
        assert!(page.contains("| `header_bytes` | a size such as \"64KiB\" | `\"32KiB\"` |"));
    }

    #[test]
    fn every_row_has_as_many_cells_as_its_head() {
        for line in reference_markdown().lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert!(bars == 5 || bars == 4, "{line}");
        }
    }
}
