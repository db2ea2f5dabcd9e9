//! The parser of scenarios. It must report every line that it does not understand.

use std::collections::BTreeMap;

use super::{Scenario, ScenarioExpectation, ScenarioRequest, ScenarioStep, ScriptedAnswer};

/// Lines with their numbers.
type NumberedLines<'a> = Vec<(usize, &'a str)>;

/// Parses the scenarios of `text` from file `file`; `template` returns a template's text.
///
/// # Errors
/// A message about a mistake, with its line.
pub fn scenarios(
    file: &str,
    text: &str,
    template: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Scenario>, String> {
    let mut common = Scenario { file: file.to_owned(), ..Scenario::default() };
    let mut all: Vec<Scenario> = Vec::new();
    let mut section: Option<(&str, NumberedLines<'_>)> = None;
    let end = |section: Option<(&str, NumberedLines<'_>)>, into: &mut Scenario| match section {
        Some((head, lines)) => take(into, head, &lines, template),
        None => Ok(()),
    };
    for (number, line) in (1..).zip(text.lines()) {
        let target = all.last_mut().unwrap_or(&mut common);
        if let Some(name) = line.strip_prefix("== ") {
            end(section.take(), target).map_err(|why| format!("{file}: {why}"))?;
            let name = name.trim().to_owned();
            all.push(Scenario { line: number, name, ..common.clone() });
        } else if let Some(head) = line.strip_prefix("-- ") {
            end(section.take(), target).map_err(|why| format!("{file}: {why}"))?;
            section = Some((head.trim(), Vec::new()));
        } else if let Some((_, lines)) = &mut section {
            lines.push((number, line));
        }
    }
    let target = all.last_mut().unwrap_or(&mut common);
    end(section, target).map_err(|why| format!("{file}: {why}"))?;
    for (at, scenario) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == scenario.name) {
            return Err(format!("{file}:{}: the name is taken", scenario.line));
        }
        if scenario.steps.is_empty() {
            return Err(format!("{file}:{}: nothing is done", scenario.line));
        }
    }
    Ok(all)
}

/// Takes a section into the scenario.
fn take(
    into: &mut Scenario,
    head: &str,
    lines: &NumberedLines<'_>,
    template: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let text = || {
        let all: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
        format!("{}\n", all.join("\n").trim_end())
    };
    match head.split_once(' ').unwrap_or((head, "")) {
        ("vcl", "") => into.vcl = text(),
        ("vcl", name) => {
            into.vcl = template(name).ok_or_else(|| format!("no template {name}"))?;
        }
        ("label", name) => _ = into.labels.insert(name.to_owned(), text()),
        ("file", name) => _ = into.files.insert(name.to_owned(), text()),
        ("differs", _) => into.differs = Some(text().trim().to_owned()),
        ("allows", _) => {
            for (number, line) in lines.iter().filter(|(_, line)| !line.trim().is_empty()) {
                match line.split_once(' ') {
                    Some(("order", _)) => into.allows.order = true,
                    Some(("framing", _)) => into.allows.framing = true,
                    Some(_) => return Err(format!("{number}: not allowed: {line}")),
                    None => return Err(format!("{number}: no reason: {line}")),
                }
            }
        }
        ("params", _) => {
            for (number, line) in lines.iter().filter(|(_, line)| !line.trim().is_empty()) {
                let (name, value) =
                    line.trim().split_once(' ').ok_or_else(|| format!("{number}: no value"))?;
                into.params.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        (name @ ("o1" | "o2" | "o3" | "o4"), _) => {
            let blocks = blocks(lines).into_iter();
            let answers: Result<_, String> = blocks.map(|block| answer(&block)).collect();
            into.origins.insert(name.to_owned(), answers?);
        }
        ("steps", _) => into.steps = steps(lines)?,
        _ => return Err(format!("no section is called {head}")),
    }
    Ok(())
}

/// A line in the first column, and the indented lines after it without their indent.
struct TextBlock<'a> {
    number: usize,
    first: &'a str,
    rest: Vec<&'a str>,
}

fn blocks<'a>(lines: &NumberedLines<'a>) -> Vec<TextBlock<'a>> {
    let mut all: Vec<TextBlock<'a>> = Vec::new();
    for (number, line) in lines.iter().copied().filter(|(_, line)| !line.starts_with('#')) {
        let inner = line.starts_with(' ') || line.is_empty();
        match all.last_mut() {
            Some(block) if inner => {
                block.rest.push(line.strip_prefix("    ").unwrap_or_else(|| line.trim()));
            }
            _ if line.trim().is_empty() => {}
            _ => all.push(TextBlock { number, first: line.trim_end(), rest: Vec::new() }),
        }
    }
    for block in &mut all {
        while block.rest.last().is_some_and(|line| line.is_empty()) {
            block.rest.pop();
        }
    }
    all
}

/// The lines before the first empty one, and the text after it, if any.
fn head_and_body(lines: &[&str]) -> (Vec<String>, Option<String>) {
    let cut = lines.iter().position(|line| line.is_empty());
    let (head, body) = match cut {
        Some(at) => (&lines[..at], Some(repeated(&lines[at + 1..].join("\n")))),
        None => (lines, None),
    };
    (head.iter().map(|line| (*line).to_owned()).collect(), body)
}

/// `%repeat NUMBER TEXT` makes a long body.
fn repeated(body: &str) -> String {
    let long = body.strip_prefix("%repeat ").and_then(|rest| rest.split_once(' '));
    match long.and_then(|(count, text)| Some((count.parse::<usize>().ok()?, text))) {
        Some((count, text)) => text.repeat(count),
        None => body.to_owned(),
    }
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

fn ms(text: &str) -> Option<u64> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok(),
        None => text.strip_suffix('s')?.parse::<u64>().ok().map(|seconds| seconds * 1000),
    }
}

fn answer(block: &TextBlock<'_>) -> Result<ScriptedAnswer, String> {
    let fault = |what: &str| format!("{}: {what}", block.number);
    let (method, target) = match block.first.split_once(' ') {
        Some((method, target)) => (Some(method.to_owned()), target),
        None => (None, block.first),
    };
    let status = "200 OK".to_owned();
    let mut answer =
        ScriptedAnswer { method, target: target.to_owned(), status, ..ScriptedAnswer::default() };
    let (head, body) = head_and_body(&block.rest);
    answer.body = body.unwrap_or_default();
    for line in head {
        if let Some(manner) = line.strip_prefix('!') {
            how(&mut answer, manner).ok_or_else(|| fault(&line))?;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            answer.status = line;
        } else {
            answer.fields.push(field(&line).ok_or_else(|| fault(&line))?);
        }
    }
    Ok(answer)
}

fn how(answer: &mut ScriptedAnswer, manner: &str) -> Option<()> {
    let own = &mut answer.manner;
    match manner.split_once(' ').unwrap_or((manner, "")) {
        ("delay", time) => own.delay_ms = ms(time)?,
        ("stall", time) => own.stall_ms = ms(time)?,
        ("drop", "") => own.drop = true,
        ("chunked", "") => own.chunked = true,
        ("gzip", "") => own.gzip = true,
        ("close", "") => own.close = true,
        ("lf", "") => own.lf = true,
        ("cut", "") => own.cut = true,
        ("quiet", "") => own.quiet = true,
        ("echo", "") => own.echo = true,
        ("if", need) if !need.is_empty() => answer.needs.push(match field(need) {
            Some((name, value)) => (name, Some(value)),
            None => (need.to_owned(), None),
        }),
        _ => return None,
    }
    Some(())
}

fn steps(lines: &NumberedLines<'_>) -> Result<Vec<(usize, ScenarioStep)>, String> {
    let mut all = Vec::new();
    let mut together: Option<(usize, Vec<ScenarioRequest>)> = None;
    for block in blocks(lines) {
        let fault = |what: &str| format!("{}: {what}: {}", block.number, block.first);
        let number = block.number;
        let (word, rest) = block.first.split_once(' ').unwrap_or((block.first, ""));
        let step = match word {
            "wait" => ScenarioStep::Wait(ms(rest).ok_or_else(|| fault("no time"))?),
            "await" => {
                let seen = origin_and_number(rest).ok_or_else(|| fault("no number"))?;
                ScenarioStep::Await(seen.0, seen.1)
            }
            "cli" | "cli+" => ScenarioStep::Cli { line: rest.to_owned(), text: word == "cli+" },
            "say" => ScenarioStep::Say(rest.to_owned()),
            "counts" => ScenarioStep::Counts(counts(rest).ok_or_else(|| fault("no counters"))?),
            "expect" => ScenarioStep::Expect(expect(rest).ok_or_else(|| fault("no expectation"))?),
            "&" => {
                let own = ask(rest, &block.rest).ok_or_else(|| fault("no request"))?;
                together.get_or_insert_with(|| (number, Vec::new())).1.push(own);
                continue;
            }
            _ => {
                let own = ask(block.first, &block.rest).ok_or_else(|| fault("no request"))?;
                let (first, mut group) = together.take().unwrap_or((number, Vec::new()));
                group.push(own);
                all.push((first, ScenarioStep::Ask(group)));
                continue;
            }
        };
        if together.is_some() || !block.rest.is_empty() {
            return Err(fault("out of place"));
        }
        all.push((number, step));
    }
    if together.is_some() { Err("`&` joins a request with the next".to_owned()) } else { Ok(all) }
}

fn origin_and_number(text: &str) -> Option<(String, usize)> {
    let (origin, number) = text.split_once(' ')?;
    let is_origin = matches!(origin, "o1" | "o2" | "o3" | "o4");
    is_origin.then_some((origin.to_owned(), number.trim().parse().ok()?))
}

fn counts(text: &str) -> Option<Vec<(String, i64)>> {
    let one = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.split_ascii_whitespace().map(one).collect()
}

fn expect(text: &str) -> Option<ScenarioExpectation> {
    if let Ok(status) = text.parse() {
        return Some(ScenarioExpectation::Status(status));
    }
    if let Some((origin, number)) = origin_and_number(text) {
        return Some(ScenarioExpectation::Seen(origin, number));
    }
    if let Some(name) = text.strip_prefix("no ") {
        return Some(ScenarioExpectation::NoField(name.to_owned()));
    }
    let (name, value) = field(text)?;
    Some(if name == "body" {
        ScenarioExpectation::Body(value)
    } else {
        ScenarioExpectation::Field(name, value)
    })
}

fn ask(first: &str, rest: &[&str]) -> Option<ScenarioRequest> {
    let mut words = first.split(' ').filter(|word| !word.is_empty());
    let mut ask = ScenarioRequest { connection: "c".to_owned(), ..ScenarioRequest::default() };
    let method = words.next()?;
    let raw = method == "RAW";
    ask.method = if raw { words.next()? } else { method }.to_owned();
    if !raw {
        ask.target = words.next()?.to_owned();
    }
    while let Some(word) = words.next() {
        match word {
            "from" => ask.from = Some(words.next()?.to_owned()),
            "after" => ask.after_ms = ms(words.next()?)?,
            "HTTP/1.0" => ask.old = true,
            "chunked" => ask.chunked = true,
            _ => ask.connection = word.strip_prefix('@')?.to_owned(),
        }
    }
    if !ask.method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return None;
    }
    if raw {
        ask.raw = Some(raw_text(rest));
        return Some(ask);
    }
    let (head, body) = head_and_body(rest);
    ask.body = body;
    for line in head {
        ask.fields.push(match line.strip_prefix('-') {
            Some(name) => (name.to_owned(), None),
            None => field(&line).map(|(name, value)| (name, Some(value)))?,
        });
    }
    Some(ask)
}

/// Lines as sent: a complete head, even if nothing follows it.
fn raw_text(lines: &[&str]) -> String {
    let text = lines.join("\r\n");
    if lines.contains(&"") { text } else { format!("{text}\r\n\r\n") }
}

/// The program with version and backends, and its placeholders replaced.
pub(crate) fn program(vcl: &str, values: &BTreeMap<String, String>) -> String {
    let own = vcl.lines().any(|line| line.starts_with("vcl 4."));
    let mut text = String::new();
    if !own {
        text.push_str("vcl 4.1;\n");
        for name in ["o1", "o2", "o3", "o4"] {
            if name == "o1" || names(vcl, name) {
                let port = format!("\"${{{name}}}\"");
                text.push_str(&format!(
                    "backend {name} {{ .host = \"127.0.0.1\"; .port = {port}; }}\n"
                ));
            }
        }
    }
    text.push_str(vcl);
    filled(&text, values)
}

/// Replaces placeholders in `text`.
pub(crate) fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}

/// Returns true if `text` contains `name` as a whole word.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}
