//! Figures of a daemon, by name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::client::ask;

/// Figures by name.
pub(super) type Figures = BTreeMap<String, i64>;

/// Reads all figures; the names of limits have the prefix `limit_hits.`.
pub(super) fn figures(socket: &Path) -> Result<Figures, String> {
    let (_, body) = ask(socket, "GET", "/stats")?;
    let value: serde_json::Value =
        serde_json::from_str(&body).map_err(|e| format!("larder: unexpected answer: {e}"))?;
    let mut figures = Figures::new();
    flatten(&value, "", &mut figures);
    Ok(figures)
}

fn flatten(value: &serde_json::Value, prefix: &str, out: &mut Figures) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = format!("{prefix}{name}");
        match value.as_i64() {
            Some(number) => _ = out.insert(name, number),
            None => flatten(value, &format!("{name}."), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_within_others_have_both_names() {
        let mut out = Figures::new();
        flatten(&serde_json::json!({ "a": 1, "limit_hits": { "ranges": 2 } }), "", &mut out);
        let names = [("a".to_owned(), 1), ("limit_hits.ranges".to_owned(), 2)];
        assert_eq!(out, names.into());
    }
}
