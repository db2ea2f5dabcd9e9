//! Settings and programs of the pages, checked by `larder check` and by the programs that they are
//! for. A fragment is completed by as little as possible.

use std::collections::HashMap;
use std::fs;

use regex::Regex;

use super::blocks::Block;
use super::world::{Done, World};

/// Checks settings. A key that occurs twice in a table means alternatives, and each is checked.
pub(crate) fn settings(world: &World, block: &Block) -> Result<(), String> {
    let is_whole = block.text.contains("[[site]]") && block.text.starts_with("# ");
    if is_whole || block.text.starts_with("listen = \":80\"\n\n[[origin]]") {
        let text = world.mapped(&block.text);
        fs::write(world.here().join("larder.toml"), &text).expect("a file");
        world.run("", "mkdir -p /etc/larder && cp larder.toml /etc/larder/larder.toml");
    }
    alternatives(&block.text).iter().try_for_each(|text| {
        let mut faults = Vec::new();
        for whole in completions(world, &world.mapped(text)) {
            fs::write(world.here().join("fragment.toml"), &whole).expect("a file");
            let done = world.check("fragment.toml");
            if done.is_well {
                return Ok(());
            }
            faults.push(format!("{whole}\n{}{}", done.printed, done.said));
        }
        Err(faults.join("\n-- or --\n"))
    })
}

/// The text for each of its alternatives.
fn alternatives(text: &str) -> Vec<String> {
    let key = Regex::new(r"^\s*([\w.-]+)\s*=").expect("a pattern");
    let mut table = 0;
    let mut seen: HashMap<(usize, String), usize> = HashMap::new();
    // Each line, and its number among those with its key.
    let mut turns = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            table += 1;
        }
        turns.push(key.captures(line).map(|found| {
            let turn = seen.entry((table, found[1].to_owned())).or_default();
            *turn += 1;
            ((table, found[1].to_owned()), *turn)
        }));
    }
    let most = seen.values().copied().max().unwrap_or(1);
    let is_in = |turn: usize, own: &Option<((usize, String), usize)>| match own {
        Some((key, at)) => seen[key] == 1 || turn == *at,
        None => true,
    };
    let of = |turn| text.lines().zip(&turns).filter(move |(_, own)| is_in(turn, own));
    (1..=most).map(|turn| of(turn).map(|(line, _)| format!("{line}\n")).collect()).collect()
}

/// A fragment as it is, and inside the tables that it may belong to.
fn completions(world: &World, text: &str) -> Vec<String> {
    let (http, php) = (world.origin(), world.application());
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"{http}\"\n");
    let root = world.here().display().to_string();
    let pool = format!("[[origin]]\nname = \"php\"\nservers = \"{php}\"\nroot = \"{root}\"\n");
    let of_pool = "[[site]]\nhost = \"*\"\norigin = \"php\"\n";
    let app = format!("[[origin]]\nname = \"app\"\nservers = \"{http}\"\n");
    let of_app = "[[site]]\nhost = \"*\"\norigin = \"app\"\n";
    let has_origin = Regex::new(r"(?m)^(?:origin|files|vcl)\s*=").expect("a pattern");
    let texts = match text.split_once("[[site]]\n") {
        None => vec![
            format!("{text}\n{site}"),
            format!("{site}{text}"),
            format!("{site}[[site.route]]\npath = \"/*\"\n{text}"),
            format!("{app}{text}\n{of_app}"),
            format!("{pool}{text}\n{of_pool}"),
            format!("[[site]]\nhost = \"*\"\n{text}"),
        ],
        Some((head, rest)) if !has_origin.is_match(text) && !head.contains("vcl") => {
            let host = if rest.contains("host") { "" } else { "host = \"*\"\n" };
            vec![format!("{head}[[site]]\norigin = \"{http}\"\n{host}{rest}")]
        }
        Some(_) => vec![text.to_owned()],
    };
    let texts = texts.into_iter().map(|text| with_origins(&text, &http, &pool));
    texts.map(|text| with_tables(world, &text)).collect()
}

/// The text, with the missing origins that its sites name.
fn with_origins(text: &str, http: &str, pool: &str) -> String {
    let named = Regex::new(r#"(?m)^origin\s*=\s*"([\w-]+)""#).expect("a pattern");
    let mut whole = text.to_owned();
    for found in named.captures_iter(text) {
        let own = Regex::new(&format!(r#"(?m)^name\s*=\s*"{}""#, &found[1])).expect("a pattern");
        if !own.is_match(&whole) {
            let missing = match &found[1] {
                "php" => pool.to_owned(),
                name => format!("[[origin]]\nname = \"{name}\"\nservers = \"{http}\"\n"),
            };
            whole = format!("{whole}\n{missing}");
        }
    }
    whole
}

/// The text, with what its settings need in other tables: a certificate for listeners, a disk, the
/// servers of a cluster.
fn with_tables(world: &World, text: &str) -> String {
    let mut whole = text.replace("cert = \"...\", key = \"...\"", &world.pair());
    let speaks_tls = Regex::new(r#"(?m)^listen.*[ "]tls[ "]"#).expect("a pattern");
    let has_certificate = Regex::new(r"(?m)^(?:\[tls\]|tls\s*=)").expect("a pattern");
    if speaks_tls.is_match(text) && !has_certificate.is_match(text) {
        whole = format!("tls = {{ {} }}\n{whole}", world.pair());
    }
    if text.contains("store = \"disk\"") && !text.contains("[disk]") {
        whole.push_str("\n[disk]\nsize = \"256MiB\"\n");
    }
    if text.contains("[cluster]") && !text.contains("nats://") {
        let own = "[cluster]\nservers = \"nats://127.0.0.1:4222\"\n";
        whole = whole.replace("[cluster]\n", own);
    }
    whole
}

/// Compiles a program, whose version may be missing.
pub(crate) fn program(world: &World, block: &Block) -> Result<(), String> {
    // Names of backends are resolved.
    let body = block.text.replace("app.internal", "localhost");
    let text = if body.starts_with("vcl ") { "" } else { "vcl 4.1;\n" };
    fs::write(world.here().join("block.vcl"), format!("{text}{body}")).expect("a file");
    well(world.check("block.vcl"))
}

/// Checks settings of another program with that.
pub(crate) fn foreign(world: &World, block: &Block) -> Option<Result<(), String>> {
    // Debian's NATS is older than this one setting, as the page says beside it.
    let lines = block.text.lines().filter(|line| !line.contains("NATS 2.10 and later"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(world.here().join("block.conf"), world.mapped(&text)).expect("a file");
    let command = match block.tag.as_str() {
        "nats" => "nats-server -t -c block.conf",
        "nginx" => "larder import block.conf -o block.toml",
        "squid" => "squid -k parse -f block.conf",
        _ => return None,
    };
    Some(well(world.run("", command)))
}

fn well(done: Done) -> Result<(), String> {
    if done.is_well { Ok(()) } else { Err(format!("{}{}", done.printed, done.said)) }
}

#[test]
fn a_key_that_stands_twice_in_a_table_makes_alternatives() {
    let text = "[a]\nx = 1\ny = 2\nx = 3\n[b]\nx = 4\n";
    assert_eq!(
        alternatives(text),
        ["[a]\nx = 1\ny = 2\n[b]\nx = 4\n", "[a]\ny = 2\nx = 3\n[b]\nx = 4\n"]
    );
    assert_eq!(alternatives("x = 1\n"), ["x = 1\n"]);
}
