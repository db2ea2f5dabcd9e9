//! The explanation of a request, `larder explain`: why it is answered as it is, as text or JSON.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use crate::client::{AdminArgs, call};
use crate::output::{is_terminal, print};

/// Width of the text, and of the labels before a sentence.
const WIDTH: usize = 80;
const INDENT: usize = 13;
/// Longest fact, unless all facts are shown in full.
const FACT_MAX: usize = 240;
/// Facts up to this length share a line.
const BRIEF_MAX: usize = 32;

/// Show what the running daemon would do with a request now, and why, without doing it; and how the
/// last requests for the same URL were served.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    larder explain https://example.com/\n  \
    larder explain https://example.com/cart -H 'Cookie: woocommerce_items_in_cart=1'\n  \
    larder explain http://example.com/api --method POST --client 192.0.2.7\n  \
    larder explain https://example.com/ --json | jq .outcome")]
pub struct ExplainArgs {
    /// The URL, such as `https://example.com/shop?page=2`. Without a scheme it is HTTPS if the
    /// daemon listens with TLS.
    url: String,
    /// A header field of the request, such as 'Cookie: a=b'; repeatable.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    header: Vec<String>,
    /// Method of the request.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Client address of the request.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    client: IpAddr,
    /// Number of rows of earlier requests for the URL, from the log ring; equal requests share a
    /// row.
    #[arg(long, value_name = "N", default_value_t = 5)]
    last: u8,
    /// Also list the rules and routes that were tested, and shorten nothing.
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON with all facts, for tools.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder explain`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &ExplainArgs) -> Result<(), String> {
    let body = json!({
        "url": args.url,
        "method": args.method,
        "headers": args.header,
        "client": args.client.to_string(),
        "last": args.last,
    });
    let explanation = call(&args.admin.admin_socket, "/api/v1/explain", &body)?;
    if args.json {
        return print(format!("{explanation}\n").as_bytes()).map(drop);
    }
    let colours = is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print(ExplanationText::of(&explanation, args.verbose, colours).as_bytes()).map(drop)
}

/// Explains in sentences what the daemon at `socket` would do with a GET of `url`, and what it did
/// with the last one.
///
/// # Errors
/// A message for standard error.
pub fn reasons(socket: &Path, url: &str, headers: &[String]) -> Result<String, String> {
    let body = json!({ "url": url, "headers": headers, "last": 1 });
    let explanation = call(socket, "/api/v1/explain", &body)?;
    let deciding = list(&explanation["steps"]).iter().filter(|step| step["decided"] == true);
    let sentences =
        deciding.chain(list(&explanation["past"])).filter_map(|step| step["why"].as_str());
    Ok(sentences.map(clean).collect::<Vec<_>>().join(" "))
}

/// The text under construction, line by line.
struct ExplanationText {
    text: String,
    verbose: bool,
    colours: bool,
}

impl ExplanationText {
    fn of(explanation: &Value, verbose: bool, colours: bool) -> String {
        let mut page = Self { text: String::new(), verbose, colours };
        let word = |value: &Value| clean(value.as_str().unwrap_or_default());
        let request = format!("{} {}", word(&explanation["method"]), word(&explanation["url"]));
        page.lines("", 0, &request, "1");
        let outcome = &explanation["outcome"];
        let summary = format!("{}: {}", word(&outcome["served"]), word(&outcome["summary"]));
        page.lines("", 2, &summary, "1;32");
        page.text.push('\n');
        for step in list(&explanation["steps"]) {
            page.step(step);
        }
        page.text.push('\n');
        let past = list(&explanation["past"]);
        match explanation["past_note"].as_str() {
            Some(note) => page.lines("", 0, &format!("Earlier requests: {}", clean(note)), ""),
            None if past.is_empty() => {}
            None => page.lines("", 0, "The last requests for this URL, the newest first:", "1"),
        }
        for one in past {
            page.transaction(one);
        }
        page.advice(list(&explanation["advice"]));
        page.text
    }

    /// Appends the advice, where readers look for it.
    fn advice(&mut self, advice: &[Value]) {
        if advice.is_empty() {
            return;
        }
        self.text.push('\n');
        self.lines("", 0, "What to do:", "1");
        for one in advice.iter().filter_map(Value::as_str) {
            self.lines("", 2, &clean(one), "");
        }
    }

    fn step(&mut self, step: &Value) {
        let word = |key: &str| clean(step[key].as_str().unwrap_or_default());
        let decided = step["decided"] == true;
        let mark = if decided { ">" } else { " " };
        let mut head = format!("{mark} {:<width$}", word("what"), width = INDENT - 2);
        if !head.ends_with(' ') {
            // A long head gets lines of its own.
            self.lines(&std::mem::take(&mut head), INDENT, "", "");
        }
        self.lines(&head, INDENT, &word("why"), if decided { "1" } else { "" });
        if let Some(place) = step["where"].as_str() {
            self.lines("", INDENT, &clean(place), "36");
        }
        let facts: Vec<String> = self.facts(step);
        let facts = facts.into_iter();
        let (brief, long): (Vec<_>, Vec<_>) = facts.partition(|fact| fact.len() <= BRIEF_MAX);
        for line in long.into_iter().chain(Some(brief.join(", "))).filter(|line| !line.is_empty()) {
            self.lines("", INDENT, &line, "2");
        }
    }

    fn transaction(&mut self, one: &Value) {
        let word = |key: &str| clean(one[key].as_str().unwrap_or_default());
        self.lines("", 2, &format!("{}  {}", word("what"), word("why")), "");
        if let Some(place) = one["where"].as_str() {
            self.lines("", 6, &clean(place), "36");
        }
        let facts = self.facts(one).join(", ");
        self.lines("", 6, &facts, "2");
    }

    /// Further facts about a step. Lists of rules that did not apply are left out unless all facts
    /// are wanted.
    fn facts(&self, step: &Value) -> Vec<String> {
        let is_wanted = |fact: &&Value| {
            let name = fact["name"].as_str().unwrap_or_default();
            self.verbose || !name.starts_with("looked at")
        };
        let part = |fact: &Value, key: &str| clean(fact[key].as_str().unwrap_or_default());
        let text = |fact: &Value| {
            let (name, value) = (part(fact, "name"), part(fact, "value"));
            format!("{name}: {}", if self.verbose { value } else { short(&value) })
        };
        list(&step["facts"]).iter().filter(is_wanted).map(text).collect()
    }

    /// Appends `text` behind `head`, wrapped, with an indent of `indent` columns.
    fn lines(&mut self, head: &str, indent: usize, text: &str, colour: &str) {
        let mut before = head.to_owned();
        for line in broken(text, WIDTH - indent.max(head.chars().count())) {
            let pad = indent.saturating_sub(before.chars().count());
            let (on, off) = match self.colours && !colour.is_empty() {
                true => (format!("\x1b[{colour}m"), "\x1b[m"),
                false => (String::new(), ""),
            };
            // Writing to a String cannot fail.
            _ = writeln!(self.text, "{before}{}{on}{line}{off}", " ".repeat(pad));
            before.clear();
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Removes what a terminal would act on. Much of the text is from requests.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn short(text: &str) -> String {
    if text.chars().count() <= FACT_MAX {
        return text.to_owned();
    }
    let first: String = text.chars().take(FACT_MAX).collect();
    format!("{first}... (-v shows all)")
}

/// Wraps `text` at spaces to lines of at most `width` columns. Longer words are split.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut column = 0;
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        let gap = usize::from(column > 0);
        if column > 0 && column + gap + rest.len() > width {
            lines.push(String::new());
            column = 0;
        }
        while rest.len() > width {
            let first: String = rest.drain(..width).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(&first);
            }
            lines.push(String::new());
            column = 0;
        }
        let last = lines.last_mut().expect("there is always a line");
        if column > 0 {
            last.push(' ');
            column += 1;
        }
        last.extend(&rest);
        column += rest.len();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_words_within_the_width() {
        assert_eq!(broken("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(broken("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(broken("", 4), [""]);
        let text = "word ".repeat(100);
        assert!(broken(&text, 30).iter().all(|line| line.chars().count() <= 30));
    }

    fn explanation() -> Value {
        json!({
            "url": "http://a.test/\x1b[31m",
            "method": "GET",
            "outcome": { "served": "PASS", "summary": "would be passed to the origin" },
            "steps": [
                { "what": "site", "why": "`a.test`", "where": "larder.toml:3", "facts": [] },
                { "what": "rule", "why": "w ".repeat(200), "where": null, "decided": true,
                  "facts": [{ "name": "looked at", "value": "every rule" },
                            { "name": "long", "value": "x".repeat(1000) }] },
                { "what": "backend_fetch", "why": "returned", "where": "a.vcl:3", "facts": [] },
            ],
            "past": [{ "what": "now", "why": "MISS 200", "facts": [] }],
            "past_note": null,
            "advice": ["Nothing: \x1b[31mthe cache answers."],
        })
    }

    #[test]
    fn a_page_fits_a_terminal_and_cannot_command_it() {
        let page = ExplanationText::of(&explanation(), false, false);
        assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
        assert!(!page.contains('\x1b') && page.contains("larder.toml:3"), "{page}");
        assert!(page.contains("\n  backend_fetch\n             returned\n"), "{page}");
        assert!(page.contains("> rule") && page.contains("(-v shows all)"), "{page}");
        let verbose = ExplanationText::of(&explanation(), true, false);
        assert!(verbose.contains("every rule") && !page.contains("every rule"), "{page}");
        assert!(!verbose.contains("-v shows all"), "{verbose}");
        assert!(page.contains("PASS: would be passed"), "{page}");
        assert!(
            page.ends_with("\nWhat to do:\n  Nothing: \u{fffd}[31mthe cache answers.\n"),
            "{page}"
        );
        let coloured = ExplanationText::of(&explanation(), false, true);
        assert!(coloured.contains("\x1b[36mlarder.toml:3\x1b[m"));
        assert!(!coloured.contains("\x1b[31m"));
    }
}
