//! Blocks of a page: fenced ones, and code that is indented. None may be skipped: a block of
//! unknown kind has no tag, and the test refuses that.

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) page: String,
    /// Line of its first line, from 1.
    pub(crate) line: usize,
    /// The tag of the opening fence; empty without one.
    pub(crate) tag: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// All blocks of a page, in their order.
pub(crate) fn read(page: &str, text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let indent = line.len() - line.trim_start().len();
        if let Some(tag) = line.trim_start().strip_prefix("```") {
            let rest = &lines[at + 1..];
            let length = rest.iter().position(|line| line.trim() == "```").unwrap_or(rest.len());
            let inner = rest[..length].iter().map(|line| line.get(indent..).unwrap_or_default());
            blocks.push(block(page, at + 2, tag.trim(), inner));
            at += length + 2;
        } else if indent >= 4 && (at == 0 || lines[at - 1].trim().is_empty()) {
            let length = lines[at..].iter().position(|line| line.trim().is_empty());
            let length = length.unwrap_or(lines.len() - at);
            blocks.push(block(page, at + 1, "", lines[at..at + length].iter().copied()));
            at += length;
        } else {
            at += 1;
        }
    }
    blocks
}

fn block<'a>(page: &str, line: usize, tag: &str, lines: impl Iterator<Item = &'a str>) -> Block {
    let text = lines.map(|line| format!("{line}\n")).collect();
    Block { page: page.to_owned(), line, tag: tag.to_owned(), text }
}

/// A command of a block, and its output in the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) printed: String,
}

/// Commands of a block, one in a line, joined where a backslash ends it. With `prompts`, only lines
/// behind a `$ ` are commands; their output follows.
pub(crate) fn steps(text: &str, prompts: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let command = if prompts { line.strip_prefix("$ ") } else { Some(line) };
        match (command, steps.last_mut()) {
            (_, Some(step)) if goes_on => step.command.push_str(&format!("\n{line}")),
            (Some(command), _) if command.trim().is_empty() || command.starts_with('#') => {}
            (Some(command), _) => {
                steps.push(Step { command: command.to_owned(), printed: String::new() });
            }
            (None, Some(step)) => step.printed.push_str(&format!("{line}\n")),
            (None, None) => panic!("output before a command: {text}"),
        }
        goes_on = line.ends_with('\\') && (goes_on || command.is_some());
    }
    steps
}

/// The first line of `wanted` whose words `printed` lacks, in their order and shape. Further lines
/// may be printed in between, and lines may be folded elsewhere. `...` and `[...]` stand for
/// omissions in the page.
pub(crate) fn missing(wanted: &str, printed: &str) -> Option<String> {
    let printed: Vec<String> = printed.split_whitespace().map(shape).collect();
    let mut at = 0;
    let mut found = |line: &&str| {
        let words: Vec<String> = line.split_whitespace().map(shape).collect();
        let mut starts = printed[at..].windows(words.len());
        let start = starts.position(|window| window == words);
        at += start.map_or(0, |start| start + words.len());
        start.is_some()
    };
    let lines = wanted.lines().filter(|line| !["", "...", "[...]"].contains(&line.trim()));
    lines.into_iter().find(|line| !found(line)).map(str::to_owned)
}

/// The first words of lines only, for measurements: figures and remarks differ.
pub(crate) fn heads(text: &str) -> String {
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.filter(|word| *word != "next").map(|word| format!("{word}\n")).collect()
}

/// A word without its value: words with a digit, units, hexadecimal numbers of requests, and
/// alternatives such as kept or new.
fn shape(word: &str) -> String {
    let word = word.trim_end_matches([',', ';']).to_lowercase();
    let is_unit = ["b", "bytes", "kib", "mib", "gib", "ms", "s"].contains(&word.as_str());
    let is_value = is_unit || ["kept", "new"].contains(&word.as_str());
    let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
    let is_hex = word.len() > 2 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    if is_value || has_digit || is_hex { "#".to_owned() } else { word }
}

#[test]
fn fences_and_indented_blocks_are_found_and_nothing_else() {
    let page = "a\n\n```sh\nx\n\ny\n```\n- b\n\n   ```toml\n   z = 1\n   ```\n\n    w\n\nc\n";
    let found = read("p", page);
    let seen: Vec<_> = found.iter().map(|b| (b.line, b.tag.as_str(), b.text.as_str())).collect();
    assert_eq!(seen, [(4, "sh", "x\n\ny\n"), (11, "toml", "z = 1\n"), (14, "", "    w\n")]);
}

#[test]
fn commands_and_their_output_are_separated() {
    let step = |command: &str, printed: &str| Step {
        command: command.to_owned(),
        printed: printed.to_owned(),
    };
    assert_eq!(steps("# a\nb \\\n  c\n\nd\n", false), [step("b \\\n  c", ""), step("d", "")]);
    assert_eq!(steps("$ a\n1\n2\n$ b\n", true), [step("a", "1\n2\n"), step("b", "")]);
}

#[test]
fn output_is_compared_by_its_shape() {
    assert_eq!(missing("a 1\n...\nc 3ms\n", "a 2\nb\nc 17ms\n"), None);
    assert_eq!(missing("age 464 ms\n", "age 1 s\n"), None);
    assert_eq!(missing("a 1\nc 3\n", "c 3\na 1\n"), Some("c 3".to_owned()));
    assert_eq!(missing("a x\n", "a 1\n"), Some("a x".to_owned()));
    assert_eq!(missing("a b c\n", "a\n  b c d\n"), None);
    assert_eq!(heads("x 1\nnext y\nz 2\n"), "x\nz\n");
}
