//! Destinations of a `rewrite` that gives the application another URL: the location that nginx
//! would choose for it.
//!
//! No rewritten path passes by a location that keeps clients out: where that is not sure, the
//! `rewrite` is left.

use super::locations::{Location, Modifier};
use super::predicate::literal_start;
use super::rules::{Found, RulePlace};
use super::sites::Maker;
use super::state::Handler;

/// A destination, and paths that do not go there.
pub(crate) struct RewrittenPlace<'d> {
    pub(crate) found: Found<'d>,
    pub(crate) except: Vec<String>,
}

impl<'d> Maker<'_, 'd> {
    /// Finds where the requests go whose URL becomes `to`. With `ends`, no other location is
    /// looked for.
    pub(crate) fn rewritten_to(
        &mut self,
        to: &str,
        ends: bool,
        place: RulePlace<'_, 'd>,
    ) -> Result<RewrittenPlace<'d>, &'static str> {
        let path = to.split('?').next().unwrap_or(to);
        let start = path.split('$').next().unwrap_or(path);
        if !start.starts_with('/') {
            return Err("the new path does not begin with a slash");
        }
        let own = place.location.filter(|_| ends);
        let chosen = own.or_else(|| located(place.all, &sample(path)));
        let mut except = Vec::new();
        if own.is_none() && path.contains('$') {
            for guard in place.all.iter().filter(|own| own.is_guarded()) {
                let is_chosen = chosen.is_some_and(|own| own.directive.id == guard.directive.id);
                match meets(guard, start) {
                    _ if is_chosen => {}
                    Meeting::Never => {}
                    Meeting::Anywhere => except.push(guard.pattern()),
                    Meeting::Perhaps => {
                        return Err("a new path may be one of a location that keeps clients out");
                    }
                }
            }
        }
        let is_other = |own: &&Location<'_>| {
            place.location.is_none_or(|place| place.directive.id != own.directive.id)
        };
        if chosen.filter(is_other).is_some_and(|own| self.has_guard_rules(own, place.all)) {
            return Err("the location that the new path leads to has rules that keep clients out");
        }
        let mut found = match chosen {
            Some(location) if !self.is_main(location, place.all) => {
                if location.own().iter().any(|own| own.name == "internal") {
                    return Err("the new path leads to an internal location");
                }
                let pattern = location.pattern();
                let destination = self.destination(&location.chain, place.all, &pattern);
                let chain = destination.chain.clone();
                Found { destination, chain }
            }
            _ => Found { destination: place.main.clone(), chain: place.main.chain.clone() },
        };
        let settings = &mut found.destination.settings;
        if found.destination.handler == Handler::Files {
            return Err("files are served under the client's URL");
        }
        if settings.has("strip_prefix") {
            if !ends {
                return Err("the location that the new path leads to exchanges a prefix, too");
            }
            // nginx passes the new path as it is.
            settings.remove("strip_prefix");
            settings.remove("add_prefix");
        }
        Ok(RewrittenPlace { found, except })
    }
}

/// A path with a letter in the place of each variable.
fn sample(path: &str) -> String {
    let mut sample = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('$') {
        sample.push_str(&rest[..at]);
        sample.push('x');
        let behind = &rest[at + 1..];
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(behind.len());
        rest = &behind[end..];
    }
    sample.push_str(rest);
    sample
}

/// The location that nginx chooses for a path.
fn located<'l, 'd>(all: &'l [Location<'d>], path: &str) -> Option<&'l Location<'d>> {
    all.iter().find(|own| match own.modifier {
        Modifier::Exact => own.path == path,
        Modifier::Final | Modifier::Prefix => path.starts_with(own.path),
        Modifier::Regex { ignores_case } => {
            let options = linear::Options { ignore_case: ignores_case, ..Default::default() };
            let regex = linear::Regex::new(own.path, options);
            regex.is_ok_and(|regex| regex.is_match(path.as_bytes()))
        }
        Modifier::Named => false,
    })
}

/// Chances that a rewritten path is one of a location.
enum Meeting {
    Never,
    /// Wherever the text stands: the client's own path has it.
    Anywhere,
    Perhaps,
}

fn meets(guard: &Location<'_>, start: &str) -> Meeting {
    let (texts, is_regex) = match guard.modifier {
        Modifier::Named => return Meeting::Never,
        Modifier::Exact | Modifier::Final | Modifier::Prefix => {
            (vec![guard.path.to_owned()], false)
        }
        Modifier::Regex { .. } => match guard.path.strip_prefix('^') {
            None => return Meeting::Anywhere,
            Some(expression) => (literal_starts(expression), true),
        },
    };
    let meets = |text: &String| {
        let is_longer = text.len() > start.len() && text.starts_with(start);
        is_longer || is_regex && start.starts_with(text.as_str())
    };
    if texts.iter().any(meets) { Meeting::Perhaps } else { Meeting::Never }
}

/// Texts that begin the matches of an anchored expression: each match begins with one of them.
fn literal_starts(expression: &str) -> Vec<String> {
    let before = literal_start(expression);
    let group = expression.find('(').map(|at| expression.split_at(at));
    let Some((plain, group)) = group.filter(|(plain, _)| literal_start(plain) == before) else {
        // Alternatives of the whole may begin otherwise.
        let is_whole = !expression.contains('|');
        return vec![if is_whole { before } else { String::new() }];
    };
    let inner = group.trim_start_matches('(').trim_start_matches("?:");
    let Some((alternatives, rest)) = inner.split_once(')') else { return vec![String::new()] };
    let is_simple = !alternatives.contains(['(', '[', '?']) && !rest.contains('|');
    if plain.contains('|') || !is_simple || rest.starts_with(['?', '*', '{']) {
        return vec![if expression.contains('|') && !is_simple { String::new() } else { before }];
    }
    let begins = alternatives.split('|').map(|one| format!("{before}{}", literal_start(one)));
    begins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;
    use crate::translate::chain::Chain;
    use crate::translate::locations::locations;

    #[test]
    fn a_path_finds_its_location_and_guards_that_it_may_meet() {
        let text = "location / {} location /a/ {} location ^~ /a/b/ {} location = /e {} \
                    location ~ \\.php$ { deny all; } location /a/secret/ { deny all; }";
        let directives = parse("x", text).expect("well-formed");
        let all = locations(&directives, &Chain::new(vec![&directives]));
        for (path, expected) in [
            ("/x", "/"),
            ("/a/x", "/a/"),
            ("/a/b/x.php", "/a/b/"),
            ("/e", "/e"),
            ("/x.php", "\\.php$"),
        ] {
            assert_eq!(located(&all, path).map(|own| own.path), Some(expected), "{path}");
        }
        assert_eq!(sample("/a/$1/b$path"), "/a/x/bx");
        let guards: Vec<_> = all.iter().filter(|own| own.is_guarded()).collect();
        assert_eq!(guards.len(), 2);
        assert!(matches!(meets(guards[0], "/a/"), Meeting::Anywhere));
        assert!(matches!(meets(guards[1], "/a/"), Meeting::Perhaps));
        assert!(matches!(meets(guards[1], "/b/"), Meeting::Never));
        for (expression, starts) in [
            ("/a/b", &["/a/b"][..]),
            ("/(a|b)/", &["/a", "/b"]),
            ("/x(?:a|b\\.c)$", &["/xa", "/xb.c"]),
            ("/x(a|b)?/", &["/x"]),
            ("/a|/b", &[""]),
            ("/x((a)|b)", &[""]),
        ] {
            assert_eq!(literal_starts(expression), starts, "{expression}");
        }
    }
}
