//! The container image, an OCI layout in a tar archive. It is made without a registry or a base
//! image: the programs, the libraries that they are linked with, and nothing else, not even a
//! shell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::format_description::well_known::Rfc3339;

use super::command::call;
use super::deb;
use super::encoding::{gzip, hex};
use super::ingredients::Ingredients;
use super::tree::Tree;

/// User and group of the daemon: a number that no distribution assigns.
const USER: u64 = 65532;

/// The building machine's certificate authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// A reference to a blob.
#[derive(Debug)]
struct Blob {
    digest: String,
    size: usize,
}

/// Makes the archive.
pub(crate) fn make(from: &Ingredients<'_>, binary: &Path) -> Result<Vec<u8>, String> {
    let layer = content(from, binary)?.to_tar(from.seconds())?;
    let mut layout = Tree::default();
    let packed = blob(&mut layout, gzip(&layer));
    let config = config(from, &hex(&Sha256::digest(&layer)))?;
    let config = blob(&mut layout, config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    });
    let manifest = blob(&mut layout, manifest.to_string().into_bytes());
    let mut named = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    named["platform"] = json!({ "architecture": deb::architecture(), "os": "linux" });
    named["annotations"] = json!({
        "org.opencontainers.image.ref.name": from.version,
        "io.containerd.image.name": format!("docker.io/library/larder:{}", from.version),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [named],
    });
    layout.file("index.json", 0o644, index.to_string().into_bytes());
    layout.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
    layout.to_tar(from.seconds())
}

/// The file system of the container.
fn content(from: &Ingredients<'_>, binary: &Path) -> Result<Tree, String> {
    let mut tree = Tree::default();
    from.add_programs("usr/bin", &mut tree);
    tree.file("etc/larder/larder.toml", 0o644, from.source("packaging/larder.toml")?);
    let welcome = from.source("packaging/welcome.html")?;
    tree.file("usr/share/larder/welcome/index.html", 0o644, welcome);
    tree.file("usr/share/doc/larder/LICENSE", 0o644, from.source("LICENSE")?);
    tree.file("usr/share/doc/larder/sbom.cdx.json", 0o644, from.sbom.clone());
    let users = format!("root:x:0:0::/:\nlarder:x:{USER}:{USER}::/var/lib/larder:\n");
    tree.file("etc/passwd", 0o644, users.into_bytes());
    tree.file("etc/group", 0o644, format!("root:x:0:\nlarder:x:{USER}:\n").into_bytes());
    tree.folder("tmp", 0o1777, 0);
    for folder in ["run/larder", "var/cache/larder", "var/lib/larder", "var/log/larder"] {
        tree.folder(folder, 0o700, USER);
    }
    let mut libraries = BTreeMap::new();
    for (name, _) in &from.programs {
        libraries.extend(libraries_of(&binary.with_file_name(name))?);
    }
    for (path, bytes) in libraries {
        tree.file(&path, 0o755, bytes);
    }
    for (path, place) in [
        (format!("/{AUTHORITIES}"), AUTHORITIES),
        ("/usr/share/doc/libc6/copyright".to_owned(), "usr/share/doc/libc6/copyright"),
        ("/usr/share/doc/libgcc-s1/copyright".to_owned(), "usr/share/doc/libgcc-s1/copyright"),
    ] {
        if let Ok(bytes) = fs::read(path) {
            tree.file(place, 0o644, bytes);
        }
    }
    Ok(tree)
}

/// The libraries of a program and its loader, by the loader's paths.
fn libraries_of(binary: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let said = call(Command::new("ldd").arg(binary))?;
    let mut found = BTreeMap::new();
    for path in linked(&said) {
        let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        found.insert(path.trim_start_matches('/').to_owned(), bytes);
    }
    Ok(found)
}

/// The paths in the output of ldd(1): `libc.so.6 => /lib/libc.so.6 (0x...)`, or a path alone.
fn linked(said: &str) -> impl Iterator<Item = &str> {
    said.lines().filter_map(|line| {
        let place = line.split_once("=>").map_or(line, |(_, place)| place);
        place.split_whitespace().next().filter(|path| path.starts_with('/'))
    })
}

fn config(from: &Ingredients<'_>, layer: &str) -> Result<Value, String> {
    let created = from.time.format(&Rfc3339).map_err(|error| format!("image: {error}"))?;
    Ok(json!({
        "created": created,
        "architecture": deb::architecture(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { "8780/tcp": {} },
            "Env": ["PATH=/usr/bin", "XDG_RUNTIME_DIR=/run/larder"],
            "Entrypoint": ["/usr/bin/larder", "serve"],
            "WorkingDir": "/var/lib/larder",
            "StopSignal": "SIGTERM",
            // Docker's extension to OCI's specification, which others ignore. It checks the admin
            // socket, so that it needs no port and no site.
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/larder", "stat", "--json"],
                "Interval": 30_000_000_000_u64,
                "Timeout": 5_000_000_000_u64,
                "StartPeriod": 10_000_000_000_u64,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "larder",
                "org.opencontainers.image.version": from.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
        "history": [{ "created": created, "created_by": "cargo xtask package" }],
    }))
}

/// Adds a blob under its digest.
fn blob(layout: &mut Tree, bytes: Vec<u8>) -> Blob {
    let digest = hex(&Sha256::digest(&bytes));
    let size = bytes.len();
    layout.file(&format!("blobs/sha256/{digest}"), 0o644, bytes);
    Blob { digest, size }
}

fn descriptor(media: &str, blob: &Blob) -> Value {
    let digest = format!("sha256:{}", blob.digest);
    json!({ "mediaType": media, "digest": digest, "size": blob.size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_are_files() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/a/libc.so.6 (0x2)\n\
                    \t/lib64/ld-linux.so.2 (0x3)\n";
        assert_eq!(linked(said).collect::<Vec<_>>(), ["/lib/a/libc.so.6", "/lib64/ld-linux.so.2"]);
    }
}
