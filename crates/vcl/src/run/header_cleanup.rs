//! Cleanup of one header by several patterns in a row, as in templates for cookies: `set
//! req.http.Cookie = regsuball(req.http.Cookie, "...", "");`, repeated. The header is looked up
//! once and written at most once, since most patterns do not match. The result never differs from
//! that of the single statements.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::headers;
use crate::regex::Regex;
use crate::run::StringTerm;
use crate::source::StatementNumber;
use crate::state::ctx::Ctx;
use crate::state::value::Header;

/// Consecutive statements that each set the header to a `regsub` or `regsuball` of itself.
#[derive(Debug)]
pub(crate) struct HeaderCleanup {
    header: Header,
    patterns: Vec<CleanupPattern>,
    /// Least number of bytes that one of the patterns matches.
    bytes_min: usize,
}

/// Pattern and replacement of one statement.
#[derive(Debug)]
struct CleanupPattern {
    regex: Arc<Regex>,
    replacement: Bytes,
    all: bool,
    /// Number of the statement.
    at: StatementNumber,
}

impl HeaderCleanup {
    /// The cleanup of the statement `set header = text` at `at`, if it has this form.
    pub(crate) fn of(header: &Header, text: &StringTerm, at: StatementNumber) -> Option<Self> {
        let StringTerm::Regsub(regsub) = text else { return None };
        let (StringTerm::Header(subject), StringTerm::Const(replacement)) =
            (&regsub.subject, &regsub.replacement)
        else {
            return None;
        };
        if !subject.is_same(header) {
            return None;
        }
        let (regex, replacement) = (Arc::clone(&regsub.regex), replacement.clone());
        let bytes_min = regex.bytes_min();
        let patterns = vec![CleanupPattern { regex, replacement, all: regsub.all, at }];
        Some(Self { header: header.clone(), patterns, bytes_min })
    }

    /// Appends the statements of `other`, which follow, if both write the header in one spelling;
    /// returns `other` otherwise.
    pub(crate) fn join(&mut self, other: Self) -> Option<Self> {
        if self.header != other.header {
            return Some(other);
        }
        self.patterns.extend(other.patterns);
        self.bytes_min = self.bytes_min.min(other.bytes_min);
        None
    }

    /// Executes the statements.
    pub(super) fn run(&self, ctx: &mut Ctx<'_>) -> Result<(), ProgramFailure> {
        // The caller has taken the step of the first statement.
        for _ in 1..self.patterns.len() {
            ctx.step()?;
        }
        match self.cleaned(ctx) {
            Ok(Some(value)) => headers::set(ctx, &self.header, &value),
            Ok(None) if headers::replace_name_spelling(ctx, &self.header) => Ok(()),
            // The header exists from now on, as a single line.
            Ok(None) => StringTerm::Header(self.header.clone())
                .with_ctx(ctx, |ctx, value| headers::set(ctx, &self.header, value))?,
            Err((at, failure)) => {
                ctx.task.at = Some(at);
                Err(failure)
            }
        }
    }

    /// The header's new value, if it changes. An error has the number of the statement that failed.
    fn cleaned(&self, ctx: &Ctx<'_>) -> Result<Option<Vec<u8>>, (StatementNumber, ProgramFailure)> {
        let mut value = Cow::Borrowed(headers::get(ctx, &self.header).unwrap_or_default());
        // Most requests have no cookies.
        if value.len() < self.bytes_min {
            return Ok(None);
        }
        for CleanupPattern { regex, replacement, all, at } in &self.patterns {
            let replaced = match regex.replace(&value, replacement, *all, &ctx.task.workspace) {
                Ok(Cow::Borrowed(_)) => continue,
                Ok(Cow::Owned(replaced)) => replaced,
                Err(failure) => return Err((*at, failure)),
            };
            let valid =
                headers::valid(&self.header, &replaced).map_err(|failure| (*at, failure))?;
            value = Cow::Owned(match valid.len() == replaced.len() {
                true => replaced,
                false => valid.to_vec(),
            });
        }
        Ok(match value {
            Cow::Borrowed(_) => None,
            Cow::Owned(value) => Some(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::headers;
    use crate::state::value::{Header, VclMessage};
    use crate::sub::{Action, Sub};
    use crate::testing::SubroutineFixture;

    /// The lines of the header after `statements`, beginning with `lines`; an error is the reason
    /// of the failure.
    fn cleaned(lines: &[&str], statements: &str) -> Result<Vec<String>, String> {
        let text = format!(
            "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; }}
             sub vcl_recv {{ {statements} return (hash); }}"
        );
        let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|said| panic!("{said}"));
        fixture.req.headers.remove_named(b"cookie");
        lines.iter().for_each(|line| fixture.req.headers.push_named(b"cookie", line.as_bytes()));
        if let Action::Fail(reason) = fixture.run(Sub::Recv) {
            return Err(reason.into());
        }
        let fields = fixture.req.headers.iter().filter(|f| f.name.eq_ignore_ascii_case(b"cookie"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(fields.map(|f| format!("{}: {}", text(f.name), text(f.value))).collect())
    }

    /// One `regsuball` statement for each pair.
    fn statements(pairs: &[(&str, &str)]) -> String {
        let one = |(pattern, replacement): &(&str, &str)| {
            format!(
                r#"set req.http.Cookie = regsuball(req.http.cookie, "{pattern}", "{replacement}");"#
            )
        };
        pairs.iter().map(one).collect()
    }

    #[test]
    fn patterns_follow_each_other_and_the_name_is_the_programs() {
        let all =
            statements(&[("_ga=[^;]+(; )?", ""), ("none", "x"), ("^;\\s*", ""), ("a", "\\0\\0")]);
        assert_eq!(cleaned(&["_ga=1; a=2"], &all).expect("it runs"), ["Cookie: aa=2"]);
        let none = statements(&[("_ga=[^;]+(; )?", ""), ("none", "x")]);
        assert_eq!(cleaned(&["a=2"], &none).expect("it runs"), ["Cookie: a=2"]);
    }

    #[test]
    fn a_header_that_is_not_there_is_empty_and_there_afterwards() {
        assert_eq!(cleaned(&[], &statements(&[("a", "b")])).expect("it runs"), ["Cookie: "]);
        assert_eq!(
            cleaned(&[], &statements(&[("^$", "b"), ("b", "c")])).expect("it runs"),
            ["Cookie: c"]
        );
    }

    #[test]
    fn several_lines_become_the_first() {
        for pattern in ["none", "a"] {
            let lines = cleaned(&["a=1", "b=2"], &statements(&[(pattern, "a")]));
            assert_eq!(lines.expect("it runs"), ["Cookie: a=1"]);
        }
    }

    #[test]
    fn blanks_at_the_beginning_go_between_the_statements() {
        let all = statements(&[("^x", "  "), ("^ ", "seen")]);
        assert_eq!(cleaned(&["x=1"], &all).expect("it runs"), ["Cookie: =1"]);
    }

    #[test]
    fn what_no_header_may_have_fails_where_it_is_made() {
        let text = r#"set req.http.Cookie = regsub(req.http.Cookie, "a", "b");
            set req.http.Cookie = regsub(req.http.Cookie, "b", {"
"});"#;
        let said = cleaned(&["a"], text).expect_err("it fails");
        assert!(said.starts_with("Bad header Cookie"), "{said}");
    }

    #[test]
    fn each_statement_takes_a_step() {
        let text = format!(
            "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; }} sub vcl_recv {{ {} }}",
            statements(&[("a", "b"); 5])
        );
        let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|said| panic!("{said}"));
        fixture.task.steps = 4;
        let Action::Fail(reason) = fixture.run(Sub::Recv) else { panic!("it went on") };
        assert!(reason.contains("vcl_steps"), "{reason}");
        let ctx = fixture.ctx(Sub::Recv);
        assert_eq!(headers::get(&ctx, &Header::new(VclMessage::Req, "Cookie")), None);
    }
}
