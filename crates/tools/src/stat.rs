//! `larder stat`: the daemon's figures, with rates and averages.

mod figures;
#[cfg(feature = "screens")]
mod live_figures;

use clap::Args;

use crate::client::{AdminArgs, ask};
use crate::output::{is_terminal, print};
use figures::figures;

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
    live_figures::show(socket, figures(socket)?)
}
