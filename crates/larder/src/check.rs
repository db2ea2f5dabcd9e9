//! `larder check` and `larder check-audit`.

use std::path::Path;

use daemon::Code;
use vcl::params::Params;
use vcl::program::ProgramRole;

use crate::preset;

/// Checks a configuration, or a program without a configuration.
pub(crate) fn check(path: &Path, show: bool) -> Result<(), String> {
    if is_program(path) {
        return check_program(path);
    }
    let (config, warnings) = daemon::load(path)?;
    if !warnings.is_empty() {
        base::say!("{warnings}");
    }
    daemon::check_material(&config)?;
    for line in daemon::check_programs(&config)? {
        base::show!("{line}");
    }
    base::show!(
        "{}: good: {} site{}, {} origin{}",
        path.display(),
        config.sites.len(),
        plural(config.sites.len()),
        config.origins.len(),
        plural(config.origins.len()),
    );
    if show {
        preset::print(&config::show(&config))?;
    }
    Ok(())
}

/// Returns true if the file is a program: by its first keyword, or by its suffix if that decides
/// nothing.
fn is_program(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    config::is_program(&String::from_utf8_lossy(&text))
        .unwrap_or_else(|| path.extension().is_some_and(|ending| ending == "vcl"))
}

/// Checks that an audit log is complete.
pub(crate) fn check_audit(path: &Path) -> Result<(), String> {
    let failed = |why: String| format!("larder: {}: {why}", path.display());
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let count = admin::Audit::verify(std::io::BufReader::new(file)).map_err(failed)?;
    base::show!("{}: whole: {count} line{}", path.display(), plural(count));
    Ok(())
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// The one fault of a program that declares no backend, and so can only stand beside settings.
const NO_BACKEND: &str = "the program has no backend";

/// Checks a program, as `larder check FILE.vcl` does; labels that it names are assumed to exist.
///
/// # Errors
/// The faults, rendered.
fn check_program(path: &Path) -> Result<(), String> {
    // Relative to the working directory, not to `vcl_path`.
    let full = std::path::absolute(path).map_err(|error| format!("larder: {error}"))?;
    let name = full.to_string_lossy();
    let params = Params::default();
    let compile =
        |role| daemon::compile(Code::File(&name), &params, &["s0", "Transient"], &[], role);
    let (warnings, part) = match compile(ProgramRole::Whole) {
        Ok((_, warnings)) => (warnings, ""),
        Err(faults) => match compile(ProgramRole::Extra) {
            Ok((_, warnings)) => (warnings, ", beside a site's settings: it declares no backend"),
            Err(others) => return Err(if faults.contains(NO_BACKEND) { others } else { faults }),
        },
    };
    eprint!("{warnings}");
    base::show!("{}: good{part}", path.display());
    Ok(())
}
