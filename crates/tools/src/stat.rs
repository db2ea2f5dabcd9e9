//! Statistics, `larder stat`: the daemon's counters, with rates and averages.

mod figures;
#[cfg(feature = "screens")]
mod live_figures;

use clap::Args;

use crate::client::{AdminArgs, ask};
use crate::output::{is_terminal, print};
use figures::figures;

/// Show the running daemon's counters, with rates and averages.
///
/// On a terminal they are updated; elsewhere, or with --once, they are printed once.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Keys: up, down, page up and page down scroll, v shows or hides zeros, q quits."
)]
pub struct StatArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Print them once.
    #[arg(short = '1', long)]
    once: bool,
    /// Print one JSON object, once. Its names are stable across versions.
    #[arg(long)]
    json: bool,
}

impl StatArgs {
    /// Returns true if the figures are to be updated, which `larder-top` does.
    pub fn moves(&self) -> bool {
        !self.once && !self.json && is_terminal()
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

/// Runs `larder stat`, with live figures on a terminal.
///
/// # Errors
/// A message for standard error.
#[cfg(feature = "screens")]
pub fn run_moving(args: &StatArgs) -> Result<(), String> {
    if !args.moves() {
        return run(args);
    }
    let socket = &args.admin.admin_socket;
    live_figures::show(socket, figures(socket)?)
}
