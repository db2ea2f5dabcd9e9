//! Tests of README and guide: settings are checked, programs compiled, commands run against a
//! daemon, and their output compared with the page's. A block of unknown kind is a failure, and so
//! is an entry of the table that no page needs.

mod blocks;
mod claims;
mod configs;
mod recipes;
mod table;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use blocks::{Block, Step, heads, missing, read, steps};
use table::{ELSEWHERE, FOREIGN, HEADS, LISTED, ORDERS, SAMPLES, STREAMS, Sample, UNSEEN};
use world::{Done, World};

/// Outcome of the pages' blocks and commands.
#[derive(Debug, Default)]
struct Tally {
    counts: BTreeMap<&'static str, usize>,
    /// Entries of the table that were needed.
    used: BTreeSet<&'static str>,
    /// Blocks and commands that were not run, each with its reason.
    listed: Vec<String>,
    faults: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn list(&mut self, what: &'static str, start: &'static str, why: &str, block: &Block) {
        self.count(what);
        self.used.insert(start);
        let first = start.lines().next().unwrap_or_default();
        self.listed.push(format!("{}: {first} ({why})", block.place()));
    }

    fn judge(&mut self, what: &'static str, block: &Block, outcome: Result<(), String>) {
        self.count(what);
        if let Err(fault) = outcome {
            self.faults.push(format!("{}: {fault}", block.place()));
        }
    }
}

/// README and the guide's pages, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_dir(tree.join("docs/guide")).expect("the guide");
    let mut files: Vec<_> = guide.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files.insert(0, tree.join("README.md"));
    let text = |file: &PathBuf| fs::read_to_string(file).expect("a page");
    files.iter().map(|file| (file.clone(), text(file))).collect()
}

/// All blocks of the pages.
fn all_blocks() -> Vec<Block> {
    let page = |(file, text): (PathBuf, String)| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let is_guide = file.parent().is_some_and(|folder| folder.ends_with("guide"));
        let is_index = is_guide && name == "README.md";
        let name = if is_index { "guide/README.md".to_owned() } else { name };
        read(&name, &text)
    };
    pages().into_iter().flat_map(page).collect()
}

/// Tests one block.
fn look_at(world: &World, block: &Block, tally: &mut Tally) {
    match block.tag.as_str() {
        "toml" => tally.judge("settings checked", block, configs::settings(world, block)),
        "vcl" => tally.judge("programs compiled", block, configs::program(world, block)),
        "sh" | "console" => {
            tally.count("blocks of commands");
            for step in steps(&block.text, block.tag == "console") {
                let outcome = take(world, block, &step, tally);
                if let Err(fault) = outcome {
                    tally.faults.push(format!("{}: {}\n{fault}", block.place(), step.command));
                }
            }
        }
        "" => tally.faults.push(format!("{}: the page does not say what it is", block.place())),
        _ => other(world, block, tally),
    }
}

/// Tests settings of other programs, and samples.
fn other(world: &World, block: &Block, tally: &mut Tally) {
    if let Some(outcome) = configs::foreign(world, block) {
        return tally.judge("settings of others checked", block, outcome);
    }
    if let Some((tag, why)) = FOREIGN.iter().find(|(tag, _)| *tag == block.tag) {
        return tally.list("blocks listed", tag, why, block);
    }
    let of_page = |(page, start, _): &&(&str, &str, Sample)| {
        *page == block.page && block.text.starts_with(start)
    };
    let Some((_, start, sample)) = SAMPLES.iter().find(of_page) else {
        return tally.judge("unknown", block, Err("the table does not name it".to_owned()));
    };
    tally.used.insert(start);
    match sample {
        Sample::Listed(why) => tally.list("blocks listed", start, why, block),
        Sample::Printed(command) => {
            let done = world.run(&block.page, command);
            tally.judge("samples compared", block, compared(&block.text, &done));
        }
        Sample::Taken(command) => {
            let done = world.run(&block.page, &command.replace("{}", block.text.trim_end()));
            tally.judge("samples taken", block, well(&done));
        }
    }
}

/// Runs one step.
fn take(world: &World, block: &Block, step: &Step, tally: &mut Tally) -> Result<(), String> {
    let command = step.command.as_str();
    if let Some((start, why)) = LISTED.iter().find(|(start, _)| command.starts_with(start)) {
        tally.list("commands listed", start, why, block);
        return Ok(());
    }
    tally.count("commands run");
    if command.contains(ORDERS) {
        return well(&world.run(&block.page, &format!("{} --help", without_comment(command))));
    }
    let is_daemon = command.starts_with("larder serve");
    if is_daemon || STREAMS.iter().any(|start| command.starts_with(start)) {
        let word = if is_daemon { "larder: memory " } else { "" };
        let done = world.begin(&block.page, without_comment(command), word);
        return well(&done);
    }
    let done = world.run(&block.page, command);
    well(&done)?;
    let mut entries = UNSEEN.iter().chain(HEADS);
    let entry = entries.find(|(page, start, _)| *page == block.page && command.starts_with(start));
    if let Some((_, start, _)) = entry {
        tally.used.insert(start);
    }
    match entry {
        None => compared(&step.printed, &done),
        Some(own) if HEADS.contains(own) => {
            let printed = heads(&done.printed);
            compared(&heads(&step.printed), &Done { printed, ..done })
        }
        Some(_) => Ok(()),
    }
}

fn without_comment(command: &str) -> &str {
    command.split_once("  #").map_or(command, |(own, _)| own.trim_end())
}

fn well(done: &Done) -> Result<(), String> {
    if done.is_well { Ok(()) } else { Err(format!("it failed:\n{}{}", done.printed, done.said)) }
}

fn compared(wanted: &str, done: &Done) -> Result<(), String> {
    let fault = |line| format!("not printed: {line}\nbut:\n{}{}", done.printed, done.said);
    missing(wanted, &done.printed).map_or(Ok(()), |line| Err(fault(line)))
}

/// Claims of the pages that are false.
fn claims(world: &World) -> Vec<String> {
    let of =
        |page| world.run(page, "curl --unix-socket \"$SOCKET\" http://localhost/metrics").printed;
    let reference = "../../docs/reference/configuration.md";
    let tables = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(reference));
    let tables = tables.expect("the reference");
    let known = format!("{}{}{tables}{ELSEWHERE}", of(""), of("cluster.md"));
    let pages = pages();
    let faults = pages.iter().flat_map(|(page, text)| {
        let mut faults = claims::broken_links(page, text);
        faults.extend(claims::unknown_metrics(page, text, &known));
        faults
    });
    faults.chain(claims::too_long(&pages[0].1)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_block_of_readme_and_guide_is_true() {
    let blocks = all_blocks();
    let fragments = blocks.iter().find(|block| block.tag == "html").expect("a page with ESI");
    let world = World::new(&fragments.text).await;
    let mut tally = Tally::default();
    let mut page = "";
    let only = std::env::var("PAGE").ok();
    for block in &blocks {
        if only.as_ref().is_some_and(|only| *only != block.page) {
            continue;
        }
        // Settings alone need no daemon.
        if page != block.page && block.tag != "toml" {
            page = &block.page;
            world.ready(page).await;
        }
        look_at(&world, block, &mut tally);
    }
    println!("not run:\n{}", tally.listed.join("\n"));
    println!("{} blocks: {:?}", blocks.len(), tally.counts);
    let starts = SAMPLES.iter().map(|(_, start, _)| *start);
    let listed = LISTED.iter().chain(FOREIGN).map(|(start, _)| *start);
    let unseen = UNSEEN.iter().chain(HEADS).map(|(_, start, _)| *start);
    tally.faults.extend(claims(&world));
    if only.is_none() {
        for entry in starts.chain(listed).chain(unseen) {
            if !tally.used.contains(entry) {
                tally.faults.push(format!("no page needs the table's entry {entry:?}"));
            }
        }
    }
    assert!(tally.faults.is_empty(), "{} faults\n{}", tally.faults.len(), tally.faults.join("\n"));
}
