//! The Debian package: its tree, its control files, and the `ar` archive around both (deb(5)).

use std::fmt::Write as _;

use time::format_description::well_known::Rfc2822;

use super::encoding::{gzip, hex, put};
use super::ingredients::{DOCUMENTS, Ingredients, UNITS};
use super::tree::Tree;

/// The Debian revision. It sorts before a distribution's package of the same version, which begins
/// with 1.
const REVISION: &str = "0larder1";

/// The maintainer, unless `DEBFULLNAME` and `DEBEMAIL` name one, as for dch(1).
const MAINTAINER: (&str, &str) = ("Larder packagers", "larder@localhost");

/// Files below /etc, whose local changes survive an upgrade.
const CONFFILES: &str = "/etc/larder/larder.toml\n";

/// The scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

const DESCRIPTION: &str = "\
HTTP accelerator: page cache, TLS and PHP-FPM in one daemon
 Larder stands in front of a web site and answers from memory whatever it can.
 It takes the place of a TLS terminator, a page cache and a gateway to PHP-FPM,
 runs VCL without a C compiler, obtains certificates by ACME, and tells of any
 request how it decided about it, and why.
";

/// The version with the Debian revision.
pub(crate) fn version(from: &Ingredients<'_>) -> String {
    // A pre-release sorts before its release.
    format!("{}-{REVISION}", from.version.replacen('-', "~", 1))
}

/// Debian's name of this machine's architecture.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        "powerpc64" => "ppc64el",
        other => other,
    }
}

/// Makes the package.
pub(crate) fn make(from: &Ingredients<'_>) -> Result<Vec<u8>, String> {
    let data = data(from)?;
    let mut control = Tree::default();
    control.file("control", 0o644, control_file(from, &data).into_bytes());
    control.file("conffiles", 0o644, CONFFILES.into());
    control.file("md5sums", 0o644, sums(&data).into_bytes());
    for name in SCRIPTS {
        control.file(name, 0o755, from.source(&format!("packaging/debian/{name}"))?);
    }
    let seconds = from.seconds();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.to_tar(seconds)?)),
        ("data.tar.gz", gzip(&data.to_tar(seconds)?)),
    ];
    Ok(archive(&members, seconds))
}

/// The tree of installed files.
fn data(from: &Ingredients<'_>) -> Result<Tree, String> {
    let mut tree = Tree::default();
    from.add_programs("usr/bin", &mut tree);
    for (source, place) in [
        ("packaging/larder.toml", "etc/larder/larder.toml"),
        ("packaging/larder.sysusers", "usr/lib/sysusers.d/larder.conf"),
        ("packaging/larder.tmpfiles", "usr/lib/tmpfiles.d/larder.conf"),
        ("packaging/welcome.html", "usr/share/larder/welcome/index.html"),
        ("packaging/debian/copyright", "usr/share/doc/larder/copyright"),
        ("packaging/debian/lintian-overrides", "usr/share/lintian/overrides/larder"),
    ] {
        tree.file(place, 0o644, from.source(source)?);
    }
    for unit in UNITS {
        let place = format!("usr/lib/systemd/system/{unit}");
        tree.file(&place, 0o644, from.source(&format!("packaging/{unit}"))?);
    }
    let documents = "usr/share/doc/larder";
    let [_, readme, changes] = DOCUMENTS;
    tree.file(&format!("{documents}/README.md"), 0o644, from.source(readme)?);
    tree.file(&format!("{documents}/changelog.gz"), 0o644, gzip(&from.source(changes)?));
    let changelog = changelog(from)?;
    tree.file(&format!("{documents}/changelog.Debian.gz"), 0o644, gzip(changelog.as_bytes()));
    tree.file(&format!("{documents}/sbom.cdx.json.gz"), 0o644, gzip(&from.sbom));
    tree.graft(documents, &Tree::read(&from.root.join("docs"), &["guide", "reference"])?);
    // `make package` builds it first.
    if from.root.join("target/site").is_dir() {
        let site = Tree::read(&from.root.join("target"), &["site"])?;
        tree.graft(documents, &site.places(|path| path.replacen("site/", "html/", 1)));
    }
    let is_page = |path: &str| path.starts_with("man");
    tree.graft(
        "usr/share",
        &from.manual.kept(|path| !is_page(path)).places(|path| match path {
            "completions/larder" => "bash-completion/completions/larder".to_owned(),
            "completions/_larder" => "zsh/vendor-completions/_larder".to_owned(),
            other => other.replace("completions/", "fish/vendor_completions.d/"),
        }),
    );
    let pages = from.manual.kept(is_page).mapped(gzip);
    tree.graft("usr/share/man", &pages.places(|path| format!("{path}.gz")));
    Ok(tree)
}

fn control_file(from: &Ingredients<'_>, data: &Tree) -> String {
    // In KiB, each file rounded up (Debian policy 5.6.20).
    let size: usize = data.files().map(|(_, bytes)| bytes.len().div_ceil(1024)).sum();
    let (name, address) = maintainer();
    let needed = from.programs.iter().map(|(_, program)| c_library(program));
    let (major, minor) = needed.max().unwrap_or_default();
    format!(
        "Package: larder\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: {name} <{address}>\n\
         Installed-Size: {size}\n\
         Depends: libc6 (>= {major}.{minor}), libgcc-s1, systemd (>= 252)\n\
         Recommends: ca-certificates\n\
         Section: web\n\
         Priority: optional\n\
         Description: {DESCRIPTION}",
        version(from),
        architecture(),
    )
}

fn maintainer() -> (String, String) {
    let named = |key: &str, usual: &str| std::env::var(key).unwrap_or_else(|_| usual.to_owned());
    (named("DEBFULLNAME", MAINTAINER.0), named("DEBEMAIL", MAINTAINER.1))
}

/// The version of the C library that the program needs: the highest one among its symbols.
fn c_library(program: &[u8]) -> (u32, u32) {
    const PREFIX: &[u8] = b"GLIBC_";
    let names = program.windows(PREFIX.len()).enumerate().filter(|(_, part)| *part == PREFIX);
    let versions = names.filter_map(|(at, _)| {
        let rest = program.get(at + PREFIX.len()..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max().unwrap_or((2, 36))
}

/// The package's changelog.
fn changelog(from: &Ingredients<'_>) -> Result<String, String> {
    let (name, address) = maintainer();
    let date = from.time.format(&Rfc2822).map_err(|error| format!("changelog: {error}"))?;
    Ok(format!(
        "larder ({}) unstable; urgency=medium\n\n  \
         * Packaged as the project itself does. See changelog.gz for what is new in\n    \
         this version.\n\n \
         -- {name} <{address}>  {date}\n",
        version(from)
    ))
}

/// The checksums for `dpkg --verify`.
fn sums(data: &Tree) -> String {
    use md5::Digest as _;
    let mut text = String::new();
    for (path, bytes) in data.files().filter(|(path, _)| !path.starts_with("etc/")) {
        put(&mut text, format_args!("{}  {path}\n", hex(&md5::Md5::digest(bytes))));
    }
    text
}

/// Joins members as ar(5) does.
fn archive(members: &[(&str, Vec<u8>)], seconds: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, member) in members {
        let mut head = String::new();
        let size = member.len();
        _ = writeln!(head, "{name:<16}{seconds:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, "100644");
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(member);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_at_even_offsets_behind_sixty_bytes() {
        let odd = archive(&[("one", b"abc".to_vec()), ("two", b"d".to_vec())], 7);
        assert_eq!(
            &odd[8..76],
            b"one             7           0     0     100644  3         `\nabc\n\
            two "
                .as_slice()
        );
        assert_eq!(odd.len(), 8 + 60 + 4 + 60 + 2);
    }

    #[test]
    fn the_newest_symbol_decides_about_the_c_library() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_PRIVATE\0GLIBC_2.2.5\0";
        assert_eq!(c_library(program), (2, 34));
    }
}
