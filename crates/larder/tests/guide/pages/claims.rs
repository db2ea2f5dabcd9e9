//! Claims of pages outside of blocks, as far as a program can see it: links lead somewhere, and
//! metrics that are named are there.

use std::fs;
use std::path::Path;

use regex::Regex;

/// Most words of README: readers decide by it whether to read on.
const README_WORDS: usize = 900;

/// A page without its blocks.
fn prose(text: &str) -> String {
    let mut is_prose = true;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_prose ^= is_fence;
        is_prose && !is_fence
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The names under which a page's headings are linked to, as forges make them.
fn anchors(text: &str) -> Vec<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let words: String = line.trim_start_matches('#').trim().chars().filter(kept).collect();
        words.to_lowercase().replace(' ', "-")
    };
    headings.map(name).collect()
}

/// Links of a page that lead nowhere.
pub(crate) fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)").expect("a pattern");
    let text = prose(text);
    let is_broken = |target: &str, anchor: Option<&str>| {
        let file = page.parent().expect("a folder").join(target);
        let file = if target.is_empty() { page.to_owned() } else { file };
        let has = |anchor: &str| {
            let text = fs::read_to_string(&file).unwrap_or_default();
            anchors(&text).iter().any(|own| own == anchor)
        };
        !file.exists() || anchor.is_some_and(|anchor| !has(anchor))
    };
    let own = link.captures_iter(&text).filter(|found| !found[1].contains("://"));
    let broken = own.filter(|found| is_broken(&found[1], found.get(2).map(|name| name.as_str())));
    broken.map(|found| format!("{}: {} leads nowhere", page.display(), &found[0])).collect()
}

/// Metrics that a page names and `known` does not have.
pub(crate) fn unknown_metrics(page: &Path, text: &str, known: &str) -> Vec<String> {
    let name =
        Regex::new(r"`(?:larder_([a-z0-9_]+)|([a-z][a-z0-9_]*_total))\b").expect("a pattern");
    let text = prose(text);
    let names = name.captures_iter(&text).filter_map(|found| found.get(1).or_else(|| found.get(2)));
    let unknown = names.filter(|name| !known.contains(name.as_str()));
    unknown.map(|name| format!("{}: no metric {}", page.display(), name.as_str())).collect()
}

/// A fault if README is too long.
pub(crate) fn too_long(text: &str) -> Option<String> {
    let words = text.split_whitespace().count();
    (words >= README_WORDS).then(|| format!("README.md has {words} words"))
}

#[test]
fn links_that_lead_nowhere_and_unknown_metrics_are_found() {
    let folder = crate::support::folder::Folder::new();
    folder.file("b.md", "# B c: `d`?\n");
    let page = folder.path().join("a.md");
    let text = "# A\n[1](b.md) [2](b.md#b-c-d) [3](#a) [4](http://x)\n```sh\n[5](no)\n```\n\
                [6](c.md) [7](b.md#a) [8](#b)\n`larder_x_total{a}` `y_total` `z_total`\n";
    folder.file("a.md", text);
    assert_eq!(broken_links(&page, text).len(), 3);
    assert_eq!(unknown_metrics(&page, text, "larder_x_total y_total").len(), 1);
}
