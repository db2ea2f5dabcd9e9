//! The SBOM: all components that the programs are built from (CycloneDX 1.5), as Cargo resolved
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::command::call;

/// Makes the list. Returns it with the version of `larder`.
pub(crate) fn make(root: &Path, seconds: i64) -> Result<(Vec<u8>, String), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = call(Command::new(cargo).current_dir(root).args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        &platform,
    ]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let time = OffsetDateTime::from_unix_timestamp(seconds)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .ok_or("the commit's time cannot be written")?;
    let (list, version) = list(&metadata, &checksums(&lock), &time)?;
    Ok((format!("{list:#}\n").into_bytes(), version))
}

/// Checksums of `Cargo.lock` by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim_start_matches(" = ").trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn list(
    metadata: &Value,
    sums: &BTreeMap<(String, String), String>,
    time: &str,
) -> Result<(Value, String), String> {
    let packages: BTreeMap<&str, &Value> = entries(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = entries(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let main = packages
        .iter()
        .find(|(_, package)| package["name"] == "larder")
        .map(|(id, _)| *id)
        .ok_or("cargo metadata: there is no larder")?;
    let mut wanted = BTreeSet::from([main]);
    let mut rest = vec![main];
    let mut dependencies = Vec::new();
    while let Some(id) = rest.pop() {
        let below: BTreeSet<&str> = nodes.get(id).map_or_else(BTreeSet::new, |node| linked(node));
        rest.extend(below.iter().filter(|other| wanted.insert(other)));
        let mut names: Vec<_> = below.iter().map(|other| reference(packages[other])).collect();
        names.sort();
        dependencies.push((reference(packages[id]), names));
    }
    dependencies.sort();
    let mut components: Vec<Value> = wanted
        .iter()
        .filter(|id| **id != main)
        .map(|id| component(packages[id], sums, "library"))
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let dependencies = dependencies.into_iter();
    let dependencies = dependencies.map(|(name, on)| json!({ "ref": name, "dependsOn": on }));
    let version = packages[main]["version"].as_str().unwrap_or_default().to_owned();
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "component": component(packages[main], sums, "application"),
        },
        "components": components,
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    Ok((list, version))
}

/// Packages that the node is linked with or built by, without those of its tests.
fn linked(node: &Value) -> BTreeSet<&str> {
    let is_built = |dependency: &&Value| {
        entries(&dependency["dep_kinds"]).any(|kind| kind["kind"].as_str() != Some("dev"))
    };
    entries(&node["deps"]).filter(is_built).filter_map(|found| found["pkg"].as_str()).collect()
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>, kind: &str) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
    });
    if let Some(about) = package["description"].as_str() {
        component["description"] = json!(about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(licence) = package["license"].as_str() {
        // Older manifests separate alternatives by a slash.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if package["source"].is_string() {
        component["purl"] = json!(reference(package));
    }
    if let Some(sum) = sums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The name of a package in the list: its package URL.
fn reference(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version").replace('+', "%2B"))
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_use_is_not_listed() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0" });
        let on = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("larder"), package("a"), package("b"), package("t")],
            "resolve": { "nodes": [
                { "id": "larder", "deps": [on("a", Value::Null), on("t", json!("dev"))] },
                { "id": "a", "deps": [on("b", json!("build"))] },
            ]},
        });
        let sums = checksums("[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n");
        let (list, version) = list(&metadata, &sums, "2026-01-01T00:00:00Z").expect("a list");
        assert_eq!(version, "1.0.0");
        let names: Vec<_> = entries(&list["components"]).map(|part| &part["name"]).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list["components"][0]["hashes"][0]["content"], "ab");
        assert_eq!(list["dependencies"][0]["dependsOn"], json!(["pkg:cargo/b@1.0.0"]));
    }
}
