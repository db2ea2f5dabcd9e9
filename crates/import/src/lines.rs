//! Configurations whose directives are lines or flags: squid.conf, and the command line of
//! varnishd's service.

use std::sync::Arc;

use crate::error::Error;
use crate::syntax::{Directive, Place};

/// Lines or flags of a configuration.
const DIRECTIVES_MAX: usize = 50_000;

/// Reads a squid.conf.
///
/// # Errors
/// Too many lines.
pub(crate) fn squid(name: &str, text: &str) -> Result<Vec<Directive>, Error> {
    let mut all = Directives::new(name);
    for (at, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        all.push(at, words.next().unwrap_or_default(), words.collect())?;
    }
    Ok(all.all)
}

/// Reads the flags of varnishd: those of `ExecStart` in a unit file, or of `DAEMON_OPTS`.
///
/// # Errors
/// Too many flags.
pub(crate) fn varnish(name: &str, text: &str) -> Result<Vec<Directive>, Error> {
    let mut all = Directives::new(name);
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, mut command) = (key.trim(), value.trim().to_owned());
        let is_quoted = command.starts_with('"');
        // Lines go on behind a backslash, or within quotes.
        while command.ends_with('\\') || is_quoted && !command[1..].contains('"') {
            let Some((_, more)) = lines.next() else { break };
            command = format!("{} {}", command.trim_end_matches('\\').trim_end(), more.trim());
        }
        if !matches!(key, "ExecStart" | "DAEMON_OPTS" | "VARNISH_OPTS") {
            all.push(at, key.to_owned(), vec![command])?;
            continue;
        }
        let command = command.trim_matches('"');
        let words: Vec<&str> = command.split_whitespace().collect();
        let begin = usize::from(words.first().is_some_and(|word| !word.starts_with('-')));
        let mut words = words.into_iter().skip(begin).peekable();
        while let Some(flag) = words.next() {
            let (flag, inner) = match flag.char_indices().nth(2) {
                Some((end, _)) if flag.starts_with('-') => flag.split_at(end),
                _ => (flag, ""),
            };
            let mut args: Vec<String> = Vec::new();
            args.extend((!inner.is_empty()).then(|| inner.to_owned()));
            if inner.is_empty() {
                let value = words.next_if(|word| !word.starts_with('-'));
                args.extend(value.map(str::to_owned));
            }
            all.push(at, flag.to_owned(), args)?;
        }
    }
    Ok(all.all)
}

struct Directives {
    file: Arc<str>,
    all: Vec<Directive>,
}

impl Directives {
    fn new(name: &str) -> Self {
        Self { file: Arc::from(name), all: Vec::new() }
    }

    fn push(&mut self, line: usize, name: String, args: Vec<String>) -> Result<(), Error> {
        let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
        let place = Place { line, column: 1 };
        let id = self.all.len();
        if id == DIRECTIVES_MAX {
            let (what, most) = ("lines", DIRECTIVES_MAX);
            return Err(Error::Limit { file: self.file.to_string(), place, what, most });
        }
        let file = Arc::clone(&self.file);
        self.all.push(Directive { id, file, place, name, args, block: None });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_service_are_directives() {
        let unit = "[Service]\nType=simple\nExecStart=/usr/sbin/varnishd \\\n  -a :80 \\\n  \
                    -s malloc,256m -F -p feature=+http2\n";
        let options = "START=yes\nDAEMON_OPTS=\"-a :80 \\\n -s malloc,256m -F -pfeature=+http2\"\n";
        for text in [unit, options] {
            let all = varnish("x", text).expect("well-formed");
            let flags = all.iter().skip(1);
            let flags: Vec<String> =
                flags.map(|own| format!("{} {}", own.name, own.arg(0))).collect();
            assert_eq!(flags, ["-a :80", "-s malloc,256m", "-F ", "-p feature=+http2"], "{text}");
        }
    }
}
