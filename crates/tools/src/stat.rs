//! `larder stat`: the daemon's figures, with rates and averages.

#[cfg(feature = "screens")]
mod moving;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;

use super::print;
use crate::client::{AdminArgs, ask};

/// Show the running daemon's counters, with rates and averages.
///
/// On a terminal they move; elsewhere, or with --once, they are printed once.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Keys: up, down, page up and page down move, v shows or hides what is zero, q ends."
)]
pub struct StatArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Print them once.
    #[arg(short = '1', long)]
    once: bool,
    /// As one JSON object whose names stay the same from version to version; prints once.
    #[arg(long)]
    json: bool,
}

impl StatArgs {
    /// Returns true if the figures are to move: that is `larder-top`'s.
    pub fn moves(&self) -> bool {
        !self.once && !self.json && super::is_terminal()
    }
}

/// Runs `larder stat`, printing the figures once.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &StatArgs) -> Result<(), String> {
    let socket = &args.admin.admin_socket;
    if args.json {
        let (_, body) = ask(socket, "GET", "/stats")?;
        return print(body.as_bytes()).map(|_| ());
    }
    let first = figures(socket)?;
    let lines = first.iter().map(|(name, value)| format!("{name:<44} {value:>16}\n"));
    print(lines.collect::<String>().as_bytes()).map(|_| ())
}

/// Runs `larder stat`, with figures that move on a terminal.
///
/// # Errors
/// A message for standard error.
#[cfg(feature = "screens")]
pub fn run_moving(args: &StatArgs) -> Result<(), String> {
    if !args.moves() {
        return run(args);
    }
    let socket = &args.admin.admin_socket;
    moving::show(socket, figures(socket)?)
}

type Figures = BTreeMap<String, i64>;

/// Every figure by its name; those of limits have `limit_hits.` before theirs.
fn figures(socket: &Path) -> Result<Figures, String> {
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
