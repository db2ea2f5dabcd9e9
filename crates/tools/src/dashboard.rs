//! The dashboard's link with a token, for `larder dashboard`. It is as secret as the token in it.

use std::fs;
use std::path::Path;

use clap::Args;
use serde_json::Value;

use crate::client::{AdminArgs, ask};

/// Print a link to the dashboard that signs in. Keep it as secret as the token in it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder dashboard\n  \
                  larder dashboard --role config\n  \
                  xdg-open \"$(larder dashboard)\"")]
pub struct DashboardArgs {
    /// Permission of the link: view and explain, also purge, or also change the configuration.
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "read",
        value_parser = ["read", "purge", "config"]
    )]
    role: String,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder dashboard`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &DashboardArgs) -> Result<(), String> {
    let socket = &args.admin.admin_socket;
    let (status, body) = ask(socket, "GET", "/api/v1/status")?;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    if status != 200 {
        return Err(format!("larder: {}", body.trim_end()));
    }
    let link = link(&answer["dashboard"], &args.role, socket, |file| fs::read_to_string(file))?;
    base::show!("{link}");
    Ok(())
}

/// Makes the link for `role`, from the daemon's answer `answer`.
fn link(
    answer: &Value,
    role: &str,
    socket: &Path,
    read: impl FnOnce(&Path) -> std::io::Result<String>,
) -> Result<String, String> {
    let (Some(address), Some(folder)) =
        (answer["addresses"][0].as_str(), answer["tokens"].as_str())
    else {
        return Err(format!(
            "larder: the daemon has no dashboard listener\n  \
             = help: set `listen = \"127.0.0.1:6080\"` below `[admin]`, and restart it; or go to \
             its socket through ssh, `ssh -L 6080:{} HOST`, and open http://127.0.0.1:6080/ \
             without a token",
            socket.display()
        ));
    };
    let file = Path::new(folder).join(format!("{role}.token"));
    let token = read(&file).map_err(|error| {
        format!(
            "larder: cannot read {}: {error}\n  \
             = help: tokens are for root and the daemon's user: try it with sudo",
            file.display()
        )
    })?;
    Ok(format!("http://{address}/#token={}", token.trim()))
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_link_has_the_roles_token_or_the_error_says_why_not() {
        let answer = json!({ "addresses": ["127.0.0.1:6080", "[::1]:6080"], "tokens": "/var/t" });
        let socket = Path::new("/run/larder/admin.sock");
        let read = |file: &Path| Ok(format!("token of {}\n", file.display()));
        let link_of = |answer: &Value| link(answer, "purge", socket, read);
        let wanted = "http://127.0.0.1:6080/#token=token of /var/t/purge.token";
        assert_eq!(link_of(&answer).as_deref(), Ok(wanted));
        let none = link_of(&json!({ "addresses": [], "tokens": "/var/t" })).expect_err("none");
        assert!(none.contains("[admin]") && none.contains("/run/larder/admin.sock"), "{none}");
        let denied = |_: &Path| Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let why = link(&answer, "read", socket, denied).expect_err("no permission");
        assert!(why.contains("/var/t/read.token") && why.contains("sudo"), "{why}");
    }
}
