//! The table of stages in ARCHITECTURE.md, made from the row in `flow`.

use std::fs;
use std::path::Path;

/// The file with the row.
const ROW: &str = "crates/flow/src/row.rs";
/// The lines around the table.
const BEGIN: &str = "<!-- stages: made by `cargo xtask docs` -->\n";
const END: &str = "<!-- end of stages -->\n";

/// Puts the table of today into `page`.
pub(super) fn put_table(root: &Path, page: String) -> Result<String, String> {
    let source = fs::read_to_string(root.join(ROW)).map_err(|error| format!("{ROW}: {error}"))?;
    let table = table(&source)?;
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or("ARCHITECTURE.md: no place for the table of stages")?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// The table of the stages that `row!` declares in `source`.
fn table(source: &str) -> Result<String, String> {
    let row = source.split_once("\nrow! {\n").and_then(|(_, rest)| rest.split_once("\n}\n"));
    let (row, _) = row.ok_or_else(|| format!("{ROW}: no row"))?;
    let mut table = "| stage | asks | outcomes |\n|---|---|---|\n".to_owned();
    let mut asks = Vec::new();
    for line in row.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            asks.push(words.trim());
        } else if let Some((stage, outcomes)) =
            line.strip_suffix(';').and_then(|line| line.split_once(" => "))
        {
            let outcomes: Vec<String> = outcomes.split(", ").map(in_words).collect();
            table += &format!("| `{stage}` | {} | {} |\n", asks.join(" "), outcomes.join(", "));
            asks.clear();
        } else {
            return Err(format!("{ROW}: no stage: {line}"));
        }
    }
    Ok(table)
}

/// The name of an outcome as two words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_a_table() {
        let row = "x\nrow! {\n    /// who\n    /// asks\n    Gates => GoesOn, Waits;\n}\n";
        let table = table(row).expect("a row");
        assert!(
            table.ends_with("|---|---|---|\n| `Gates` | who asks | goes on, waits |\n"),
            "{table}"
        );
        assert!(super::table("row! {\n    what\n}\n").is_err());
    }
}
