//! Packages: a Debian package, a tarball and an OCI image in one folder, with a list of components
//! and checksums.
//!
//! The same commit, compiler and C library must give the same bytes everywhere: every time is the
//! commit's, every owner is root, every list is sorted, and the programs contain no path of the
//! building machine.

mod build;
mod command;
mod deb;
mod encoding;
mod image;
mod ingredients;
mod sbom;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use command::call;
use encoding::{gzip, hex, put};
use ingredients::{DOCUMENTS, Ingredients, UNITS};
use tree::Tree;

/// The command line.
#[derive(Debug, Default)]
struct PackageArguments {
    /// The daemon's binary, with the other programs beside it; built if absent.
    binary: Option<PathBuf>,
    /// The output folder.
    out: Option<PathBuf>,
}

impl PackageArguments {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut wanted = Self::default();
        for pair in words.chunks(2) {
            match *pair {
                ["--binary", path] => wanted.binary = Some(path.into()),
                ["--out", path] => wanted.out = Some(path.into()),
                _ => return Err(format!("package: --binary PATH and --out DIR, not {pair:?}")),
            }
        }
        Ok(wanted)
    }
}

/// Makes the packages.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<String, String> {
    let wanted = PackageArguments::read(words)?;
    let target = build::target_folder(root)?;
    let out = wanted.out.unwrap_or_else(|| target.join("package"));
    let seconds = epoch(root)?;
    let binary = match wanted.binary {
        Some(path) => path,
        None => build::program(root, &target, seconds)?,
    };
    make_empty(&out)?;
    let work = out.join("work");
    fs::create_dir(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let (sbom, version) = sbom::make(root, seconds)?;
    let time = OffsetDateTime::from_unix_timestamp(seconds)
        .map_err(|error| format!("SOURCE_DATE_EPOCH: {error}"))?;
    let stripped = |(name, _)| {
        let bytes = build::stripped(&binary.with_file_name(name), &work)?;
        Ok::<_, String>((name, bytes))
    };
    let ingredients = Ingredients {
        root,
        programs: build::PROGRAMS.into_iter().map(stripped).collect::<Result<_, _>>()?,
        manual: manual(&binary, &time.date().to_string(), &work)?,
        sbom,
        version,
        time,
    };
    fs::remove_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    write_all(&ingredients, &binary, &out)
}

fn write_all(from: &Ingredients<'_>, binary: &Path, out: &Path) -> Result<String, String> {
    let version = &from.version;
    let arch = std::env::consts::ARCH;
    let packages = [
        (format!("larder_{}_{}.deb", deb::version(from), deb::architecture()), deb::make(from)?),
        (format!("larder-{version}-{arch}-linux.tar.gz"), tarball(from)?),
        (format!("larder-{version}-{arch}.oci.tar"), image::make(from, binary)?),
        (format!("larder-{version}.cdx.json"), from.sbom.clone()),
    ];
    let mut sums = String::new();
    let mut said = format!("in {}:", out.display());
    for (name, bytes) in &packages {
        put(&mut sums, format_args!("{}  {name}\n", hex(&Sha256::digest(bytes))));
        put(&mut said, format_args!("\n{:>9} KiB  {name}", bytes.len().div_ceil(1024)));
        write(&out.join(name), bytes)?;
    }
    write(&out.join("SHA256SUMS"), sums.as_bytes())?;
    Ok(said)
}

/// The archive for systems without a package: all files below one folder.
fn tarball(from: &Ingredients<'_>) -> Result<Vec<u8>, String> {
    let mut tree = Tree::default();
    let top = format!("larder-{}", from.version);
    from.add_programs(&format!("{top}/bin"), &mut tree);
    let mut add = |path: &str, mode: u32, bytes: Vec<u8>| {
        tree.file(&format!("{top}/{path}"), mode, bytes);
    };
    for name in DOCUMENTS {
        add(name, 0o644, from.source(name)?);
    }
    add("sbom.cdx.json", 0o644, from.sbom.clone());
    let settings = ["larder.sysusers", "larder.tmpfiles", "larder.toml"];
    for name in UNITS.into_iter().chain(settings) {
        add(&format!("etc/{name}"), 0o644, from.source(&format!("packaging/{name}"))?);
    }
    let html = from.source("packaging/welcome.html")?;
    add("share/larder/welcome/index.html", 0o644, html);
    tree.graft(
        &format!("{top}/share"),
        &from.manual.places(|path| match path {
            "completions/larder" => "bash-completion/completions/larder".to_owned(),
            "completions/_larder" => "zsh/site-functions/_larder".to_owned(),
            "completions/larder.fish" => "fish/vendor_completions.d/larder.fish".to_owned(),
            page => format!("man/{page}"),
        }),
    );
    let guide = Tree::read(&from.root.join("docs"), &["guide", "reference"])?;
    tree.graft(&format!("{top}/doc"), &guide);
    Ok(gzip(&tree.to_tar(from.seconds())?))
}

/// The man pages and completions that the program writes.
fn manual(binary: &Path, date: &str, work: &Path) -> Result<Tree, String> {
    let folder = work.join("manual");
    call(Command::new(binary).args(["manual", "--date", date]).arg(&folder))?;
    Tree::read(&folder, &["man1", "man5", "completions"])
}

/// The time of the build in seconds since 1970: `SOURCE_DATE_EPOCH`, or the commit's.
fn epoch(root: &Path) -> Result<i64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => call(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))
            .map_err(|why| format!("{why}; without git, SOURCE_DATE_EPOCH says the time"))?,
    };
    text.trim().parse().map_err(|_| format!("{:?} is no time in seconds", text.trim()))
}

/// Removes the files of an earlier run, and nothing else.
fn make_empty(out: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", out.display());
    fs::create_dir_all(out).map_err(failed)?;
    for entry in fs::read_dir(out).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("larder") || name == "SHA256SUMS" {
            fs::remove_file(&path).map_err(failed)?;
        } else if name == "work" {
            fs::remove_dir_all(&path).map_err(failed)?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
