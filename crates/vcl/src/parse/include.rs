//! `include`, replaced by the tokens of the file it names, wherever it stands, as in Varnish. A
//! file never includes itself.

use crate::input::Input;
use crate::lex::{self, Token, TokenKind};
use crate::report::Report;
use crate::source::{SourceFile, SourceSpan, Sources};

/// Most files of a program, each counted for every include.
pub const MAX_FILES: usize = 1000;
/// Most bytes of all files of a program.
pub const MAX_PROGRAM: usize = 32 << 20;

/// Tokens of `file` and of all files that it includes.
pub(super) fn splice(
    input: &Input<'_>,
    file: u32,
    sources: &mut Sources,
    report: &mut Report,
) -> Vec<Token> {
    let mut splicer = Splicer {
        input,
        sources,
        report,
        open: Vec::new(),
        bytes: input.text.len(),
        full: false,
        tokens: Vec::new(),
    };
    splicer.file(file);
    splicer.tokens
}

struct Splicer<'a, 'b> {
    input: &'a Input<'b>,
    sources: &'a mut Sources,
    report: &'a mut Report,
    /// Numbers of the files that are being read, each included by the one before it.
    open: Vec<u32>,
    bytes: usize,
    /// True if a limit was reached, which has been reported.
    full: bool,
    tokens: Vec<Token>,
}

impl Splicer<'_, '_> {
    fn file(&mut self, file: u32) {
        let source = self.sources.file(file).clone();
        let tokens = lex::tokens(file, &source, self.report);
        self.open.push(file);
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = after;
            let span = token.span;
            let is_include = token.kind == TokenKind::Identifier
                && &source.text[span.start as usize..span.end as usize] == b"include";
            if is_include {
                rest = self.include(&source, span, after);
            } else {
                self.tokens.push(*token);
            }
        }
        self.open.pop();
    }

    /// Parses an include behind its keyword; returns the remaining tokens.
    fn include<'t>(
        &mut self,
        source: &SourceFile,
        word: SourceSpan,
        after: &'t [Token],
    ) -> &'t [Token] {
        let (glob, after) = match after {
            [plus, flag, rest @ ..]
                if plus.kind == TokenKind::Sign("+")
                    && flag.kind == TokenKind::Identifier
                    && plus.span.end == flag.span.start =>
            {
                let text = &source.text[flag.span.start as usize..flag.span.end as usize];
                if text != b"glob" {
                    self.report
                        .error(plus.span.to(flag.span), "unknown flag of `include`")
                        .help("there is `+glob` only");
                }
                (true, rest)
            }
            _ => (false, after),
        };
        let Some((name, rest)) = after.split_first().filter(|(t, _)| t.kind == TokenKind::Str)
        else {
            let found = after.first().filter(|token| token.kind != TokenKind::Bad);
            let span = found.map_or(word, |token| token.span);
            if found.is_some() || after.is_empty() {
                let entry = self.report.error(span, "`include` without a file name");
                entry.expected("a string").help("`include \"file.vcl\";`");
            }
            let end = after.iter().position(|token| token.kind == TokenKind::Sign(";"));
            return &after[end.map_or(0, |end| end + 1)..];
        };
        let bytes = &source.text[name.span.start as usize..name.span.end as usize];
        let text = String::from_utf8_lossy(lex::string(bytes)).into_owned();
        let rest = match rest {
            [semicolon, rest @ ..] if semicolon.kind == TokenKind::Sign(";") => rest,
            _ => {
                let end = SourceSpan { start: name.span.end, ..name.span };
                self.report.error(end, "`include` without its `;`").expected("`;`");
                rest
            }
        };
        let at = word.to(name.span);
        if glob {
            self.glob(&text, &source.name, at);
        } else {
            self.load(&text, &source.name, at);
        }
        rest
    }

    fn glob(&mut self, pattern: &str, from: &str, at: SourceSpan) {
        match self.input.loader.glob(pattern, from) {
            Ok(names) if names.is_empty() => {
                self.report
                    .error(at, format!("no file matches `{pattern}`"))
                    .help("a pattern of `include +glob` must match at least one file");
            }
            Ok(names) => names.iter().for_each(|name| self.load(name, from, at)),
            Err(why) => {
                self.report.error(at, format!("`{pattern}` matches nothing: {why}"));
            }
        }
    }

    fn load(&mut self, name: &str, from: &str, at: SourceSpan) {
        if self.full {
            return;
        }
        if self.open.len() > self.input.rules.include_depth as usize {
            let depth = self.input.rules.include_depth;
            self.report.error(at, format!("more than {depth} files include each other"));
            return;
        }
        match self.input.loader.load(name, from) {
            Ok((name, text)) => self.read(&name, text, at),
            Err(why) => {
                self.report.error(at, format!("cannot read `{name}`: {why}"));
            }
        }
    }

    fn read(&mut self, name: &str, text: Vec<u8>, at: SourceSpan) {
        if self.open.iter().any(|file| &*self.sources.file(*file).name == name) {
            self.report
                .error(at, format!("`{name}` includes itself"))
                .help("a file cannot include itself; move the common part to a third file");
            return;
        }
        self.bytes += text.len();
        if self.sources.files().len() >= MAX_FILES || self.bytes > MAX_PROGRAM {
            self.full = true;
            let megabytes = MAX_PROGRAM >> 20;
            self.report
                .error(at, "the program is too long")
                .note(format!("at most {MAX_FILES} files and {megabytes} MiB"));
            return;
        }
        let file = self.sources.add(SourceFile {
            name: name.into(),
            text: text.into(),
            included_at: Some(at),
        });
        self.file(file);
    }
}
