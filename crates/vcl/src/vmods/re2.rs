//! VMOD `re2`: regular expressions in RE2's syntax, single and in sets, as in libvmod-re2. Both
//! engines take time linear in the subject and prefer the leftmost match with the earliest
//! alternative; `pattern` rewrites the differences in syntax. No pattern goes to PCRE2.

mod compiled_pattern;
mod pattern;
mod replacement;
mod set;
mod signature;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

use compiled_pattern::{LastMatch, NAME_OF_KEPT, Pattern, PatternOptions};
use replacement::ReplacementMode;
use signature::{
    CASE_SENSITIVE, DOT_NL, LITERAL, LONGEST_MATCH, MAX_MEM, NEVER_CAPTURE, NEVER_NL, ONE_LINE,
    PERL_CLASSES, POSIX_SYNTAX, REWRITE, TEXT, UTF8, WORD_BOUNDARY, method,
};

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Call, Class, Function, Module, Parameter, UnsupportedFunction};
use crate::vmods::args::{Args, owned, required_parameter, text, this};

/// The module.
pub static MODULE: Module = Module {
    name: "re2",
    about: "Regular expressions in RE2's syntax, singly and in sets. Patterns are bytes in Latin-1 \
            unless `utf8` is set. Unicode classes (`\\p`) are refused, and so are, in Latin-1, \
            case-insensitive letters beyond ASCII. Options: `utf8`, `literal` (no operators), \
            `dot_nl` (`.` also matches a newline), `never_capture` (no groups), `case_sensitive`, \
            and `max_mem` (maximum bytes of the compiled pattern). `perl_classes`, `word_boundary` \
            and `one_line` only matter with `posix_syntax`, so they have no effect here. A missing \
            required string is a failure. Functions compile their pattern at every call; for a \
            constant pattern, use an object.",
    functions: FUNCTIONS,
    classes: &[REGEX, set::CLASS],
    refused: &[
        UnsupportedFunction { name: "set.subroutine", why: CALLS },
        UnsupportedFunction { name: "set.check_call", why: CALLS },
    ],
};

const CALLS: &str = "would lead to unchecked calls: the subroutines that a program calls are known \
                     before it runs.";
/// The result of `re2.version`.
const VERSION: &str = "2.0.0";

/// A list of parameters, followed by the options of a pattern.
macro_rules! with_options {
    ($($param:expr),*) => {
        &[
            $($param,)*
            UTF8, POSIX_SYNTAX, LONGEST_MATCH, MAX_MEM, LITERAL, NEVER_NL, DOT_NL, NEVER_CAPTURE,
            CASE_SENSITIVE, PERL_CLASSES, WORD_BOUNDARY, ONE_LINE,
        ]
    };
}

const PATTERN: Parameter = required_parameter("pattern", Type::String);
const REF: Parameter = required_parameter("ref", Type::Int);
const NAME: Parameter = required_parameter("name", Type::String);

const SUB: &str = "The text with its first match replaced. In `rewrite`, `\\0` to `\\9` stand for \
                   the match and its groups, and `\\\\` for a backslash. Returns `fallback` if \
                   nothing matches, or if `rewrite` has another backslash or an unknown group.";
const SUBALL: &str =
    "The text with all matches replaced, as by `sub`. Returns `fallback` if nothing matches.";
const EXTRACT: &str = "The string `rewrite` with the match and its groups inserted, as by `sub`, \
                       without the rest of the text. Returns `fallback` if nothing matches.";
const COST: &str = "The cost of a pattern: larger values need more work. Unlike RE2's value, it is \
                    the size of the compiled pattern in bytes.";
const BACKREF: &str = "The text of group `ref` from the last `match` of this request or fetch. 0 \
                       is the whole match. Returns `fallback` if the group, or the pattern, did \
                       not match. Fails without an earlier `match`, with `never_capture`, and if \
                       the pattern has no such group.";
const NAMEDREF: &str = "Same as `backref`, for a named group: `(?P<name>...)`.";

const fn function(
    name: &'static str,
    about: &'static str,
    returns: Type,
    params: &'static [Parameter],
    call: Call,
) -> Function {
    Function { name, about, returns, params, from: Subs::ALL, call }
}

const FUNCTIONS: &[Function] = &[
    function(
        "match",
        "Whether the pattern matches anywhere in the subject.",
        Type::Bool,
        with_options![PATTERN, required_parameter("subject", Type::String)],
        |ctx, args| {
            let pattern = compiled(args, 2)?;
            Ok(Value::Bool(pattern.search(last(ctx), args.string(1))))
        },
    ),
    function(
        "backref",
        BACKREF,
        Type::String,
        &[REF, text("fallback", "**BACKREF FUNCTION FAILED**")],
        |ctx, args| last(ctx).group(args),
    ),
    function(
        "namedref",
        NAMEDREF,
        Type::String,
        &[NAME, text("fallback", "**NAMEDREF FUNCTION FAILED**")],
        |ctx, args| last(ctx).named(args),
    ),
    function(
        "sub",
        SUB,
        Type::String,
        with_options![PATTERN, TEXT, REWRITE, text("fallback", "**SUB FUNCTION FAILED**")],
        |ctx, args| replaced(ctx, args, ReplacementMode::First),
    ),
    function(
        "suball",
        SUBALL,
        Type::String,
        with_options![PATTERN, TEXT, REWRITE, text("fallback", "**SUBALL FUNCTION FAILED**")],
        |ctx, args| replaced(ctx, args, ReplacementMode::All),
    ),
    function(
        "extract",
        EXTRACT,
        Type::String,
        with_options![PATTERN, TEXT, REWRITE, text("fallback", "**EXTRACT FUNCTION FAILED**")],
        |ctx, args| replaced(ctx, args, ReplacementMode::Extract),
    ),
    function("cost", COST, Type::Int, with_options![PATTERN], |_, args| {
        Ok(Value::Int(compiled(args, 1)?.cost()))
    }),
    function(
        "quotemeta",
        "A pattern that matches this string literally. ASCII characters other than letters, digits \
         and `_` get a backslash.",
        Type::String,
        &[required_parameter("", Type::String)],
        |_, args| Ok(args.string(0).map_or(Value::String(None), |text| owned(quoted(text)))),
    ),
    function(
        "version",
        "The version of libvmod-re2 that Larder follows.",
        Type::String,
        &[],
        |_, _| Ok(owned(VERSION)),
    ),
];

const REGEX: Class = Class {
    name: "regex",
    about: "A pattern, compiled while the program is loaded. If it is invalid, the program is not \
            loaded.",
    params: with_options![PATTERN],
    construct: |_, naming, args| {
        let pattern = compiled(args, 1).map_err(|why| {
            ProgramFailure::new(format!("re2.regex {}: {}", naming.name, why.into_reason()))
        })?;
        Ok(Arc::new(PatternObject { pattern, number: naming.number }))
    },
    methods: &[
        method(
            "match",
            "Whether the pattern matches anywhere in the subject.",
            Type::Bool,
            &[required_parameter("", Type::String)],
            |ctx, object, args| {
                let PatternObject { pattern, number } = this::<PatternObject>(object)?;
                Ok(Value::Bool(
                    pattern.search(ctx.task.keep(NAME_OF_KEPT, *number), args.string(0)),
                ))
            },
        ),
        method(
            "backref",
            BACKREF,
            Type::String,
            &[REF, text("fallback", "**BACKREF METHOD FAILED**")],
            |ctx, object, args| this::<PatternObject>(object)?.last(ctx).group(args),
        ),
        method(
            "namedref",
            NAMEDREF,
            Type::String,
            &[NAME, text("fallback", "**NAMEDREF METHOD FAILED**")],
            |ctx, object, args| this::<PatternObject>(object)?.last(ctx).named(args),
        ),
        method(
            "sub",
            SUB,
            Type::String,
            &[TEXT, REWRITE, text("fallback", "**SUB METHOD FAILED**")],
            |ctx, object, args| {
                this::<PatternObject>(object)?.pattern.replace(ctx, args, ReplacementMode::First)
            },
        ),
        method(
            "suball",
            SUBALL,
            Type::String,
            &[TEXT, REWRITE, text("fallback", "**SUBALL METHOD FAILED**")],
            |ctx, object, args| {
                this::<PatternObject>(object)?.pattern.replace(ctx, args, ReplacementMode::All)
            },
        ),
        method(
            "extract",
            EXTRACT,
            Type::String,
            &[TEXT, REWRITE, text("fallback", "**EXTRACT METHOD FAILED**")],
            |ctx, object, args| {
                this::<PatternObject>(object)?.pattern.replace(ctx, args, ReplacementMode::Extract)
            },
        ),
        method("cost", COST, Type::Int, &[], |_, object, _| {
            Ok(Value::Int(this::<PatternObject>(object)?.pattern.cost()))
        }),
    ],
};

/// Name under which a task keeps the last match of the function `match`.
const NAME_OF_FUNCTIONS: &str = "re2.match";

/// An object of the class.
struct PatternObject {
    pattern: Arc<Pattern>,
    number: u32,
}

impl Object for PatternObject {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PatternObject {
    /// The last match of the object.
    fn last<'c>(&self, ctx: &'c mut Ctx<'_>) -> &'c LastMatch {
        ctx.task.keep(NAME_OF_KEPT, self.number)
    }
}

/// The last match of the function `match`.
fn last<'c>(ctx: &'c mut Ctx<'_>) -> &'c mut LastMatch {
    ctx.task.keep(NAME_OF_FUNCTIONS, 0)
}

/// The pattern in argument 0, with options from argument `at` on.
fn compiled(args: &[Value], at: usize) -> Result<Arc<Pattern>, ProgramFailure> {
    let text =
        args.string(0).ok_or_else(|| ProgramFailure::new("re2: the pattern is undefined"))?;
    Pattern::new(text, PatternOptions::of(args, at, true)).map(Arc::new).map_err(|why| {
        ProgramFailure::new(format!("re2: cannot compile '{}': {why}", text.escape_ascii()))
    })
}

/// `sub`, `suball` and `extract` as functions: the pattern precedes the other arguments.
fn replaced(ctx: &Ctx<'_>, args: &[Value], mode: ReplacementMode) -> Result<Value, ProgramFailure> {
    compiled(args, 4)?.replace(ctx, &args[1..], mode)
}

/// `text` with a backslash before each possible operator.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'_' {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}
