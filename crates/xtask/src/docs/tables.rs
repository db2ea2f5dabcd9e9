//! Tables in ARCHITECTURE.md that are made from declarations in `flow`.

use std::fs;
use std::path::Path;

/// A table, and the macro that declares its rows.
struct DeclarationTable {
    name: &'static str,
    file: &'static str,
    declared: &'static str,
    head: &'static str,
}

/// All tables.
const TABLES: [DeclarationTable; 2] = [
    DeclarationTable {
        name: "stages",
        file: "crates/flow/src/stage_row.rs",
        declared: "row!",
        head: "| stage | asks | outcomes |",
    },
    DeclarationTable {
        name: "sources",
        file: "crates/flow/src/sources.rs",
        declared: "sources!",
        head: "| source | is | answers |",
    },
];

/// Replaces the tables in `page`.
pub(super) fn put_tables(root: &Path, mut page: String) -> Result<String, String> {
    for table in &TABLES {
        let DeclarationTable { name, file, .. } = table;
        let source = fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        let begin = format!("<!-- {name}: made by `cargo xtask docs` -->\n");
        let end = format!("<!-- end of {name} -->\n");
        let parts = page.split_once(&begin).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(&end)?;
            Some((before, after))
        });
        let (before, after) =
            parts.ok_or_else(|| format!("ARCHITECTURE.md: no place for the table of {name}"))?;
        page = format!("{before}{begin}{}{end}{after}", table.of(&source)?);
    }
    Ok(page)
}

impl DeclarationTable {
    /// The table of the rows declared in `source`.
    fn of(&self, source: &str) -> Result<String, String> {
        let Self { file, declared, head, .. } = self;
        let begin = format!("\n{declared} {{\n");
        let rows = source.split_once(&begin).and_then(|(_, rest)| rest.split_once("\n}\n"));
        let (rows, _) = rows.ok_or_else(|| format!("{file}: no {declared}"))?;
        let mut table = format!("{head}\n|---|---|---|\n");
        let mut words = Vec::new();
        for line in rows.lines().map(str::trim) {
            if let Some(more) = line.strip_prefix("///") {
                words.push(more.trim());
            } else if let Some((name, last)) =
                line.strip_suffix(';').and_then(|line| line.split_once(" => "))
            {
                let last: Vec<String> = last.split(", ").map(in_words).collect();
                table += &format!("| `{name}` | {} | {} |\n", words.join(" "), last.join(", "));
                words.clear();
            } else {
                return Err(format!("{file}: no row: {line}"));
            }
        }
        Ok(table)
    }
}

/// Splits an outcome's name into words.
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
        let table = TABLES[0].of(row).expect("a row");
        assert!(
            table.ends_with("|---|---|---|\n| `Gates` | who asks | goes on, waits |\n"),
            "{table}"
        );
        assert!(TABLES[0].of("\nrow! {\n    what\n}\n").is_err());
    }
}
