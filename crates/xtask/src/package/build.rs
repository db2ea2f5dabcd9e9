//! The build of the packaged programs: without paths of the machine, and stripped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::call;

/// The folder that Cargo builds into.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    std::path::absolute(root.join(named.unwrap_or_else(|| "target".into())))
        .map_err(|error| format!("target: {error}"))
}

/// The programs, the daemon first, with the arguments that select each.
pub(crate) const PROGRAMS: [(&str, &[&str]); 3] =
    [("larder", &["--no-default-features"]), ("larder-bench", &[]), ("larder-top", &[])];

/// Compiles the programs with the profile `dist`, and returns the daemon's path; the others are
/// beside it. The daemon is compiled without features that only the others need.
///
/// Paths of sources, of Cargo's folder and of the compiler are replaced by fixed texts, in Rust and
/// in C.
pub(crate) fn program(root: &Path, target: &Path, seconds: i64) -> Result<PathBuf, String> {
    let cargo_home = match std::env::var("CARGO_HOME") {
        Ok(path) => path,
        Err(_) => format!("{}/.cargo", std::env::var("HOME").unwrap_or_default()),
    };
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let sysroot = call(Command::new(rustc).current_dir(root).args(["--print", "sysroot"]))?;
    let replaced = [
        (root.display().to_string(), "larder"),
        (target.display().to_string(), "target"),
        (cargo_home, "cargo"),
        (sysroot.trim().to_owned(), "rust"),
    ];
    let rust: Vec<_> =
        replaced.iter().map(|(path, word)| format!("--remap-path-prefix={path}=/{word}")).collect();
    let c: Vec<_> =
        replaced.iter().map(|(path, word)| format!("-ffile-prefix-map={path}=/{word}")).collect();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    for (name, features) in PROGRAMS {
        let status = Command::new(&cargo)
            .current_dir(root)
            .args(["build", "--locked", "--profile", "dist", "--package", "larder"])
            .args(["--bin", name])
            .args(features)
            .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
            .env("CFLAGS", format!("-g0 {}", c.join(" ")))
            .env("CARGO_TARGET_DIR", target)
            .env("SOURCE_DATE_EPOCH", seconds.to_string())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("package: {name} does not compile"));
        }
    }
    Ok(target.join("dist/larder"))
}

/// Returns the bytes of a program without symbols.
pub(crate) fn stripped(binary: &Path, work: &Path) -> Result<Vec<u8>, String> {
    let copy = work.join("larder");
    call(
        Command::new("strip")
            .args(["--strip-all", "--remove-section=.comment", "--remove-section=.note", "-o"])
            .args([&copy, binary]),
    )?;
    fs::read(&copy).map_err(|error| format!("{}: {error}", copy.display()))
}
