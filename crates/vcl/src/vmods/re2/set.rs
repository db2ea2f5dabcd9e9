//! Set of patterns that are searched together, with a string, backend or subroutine for each. It
//! must be compiled before the first search.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::compiled_pattern::{NAME_OF_KEPT, Pattern, PatternOptions};
use super::pattern;
use super::replacement::ReplacementMode;
use super::signature::{
    CASE_SENSITIVE, DOT_NL, LITERAL, LONGEST_MATCH, MAX_MEM, NEVER_NL, ONE_LINE, PERL_CLASSES,
    POSIX_SYNTAX, REWRITE, TEXT, UTF8, WORD_BOUNDARY, method,
};
use crate::failure::ProgramFailure;
use crate::headers;
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Sub;
use crate::types::Type;
use crate::vmod::{Class, Method, Parameter};
use crate::vmods::args::{
    Args, enumeration, number, optional_parameter, owned, refused, required_parameter, text, this,
    truth,
};

const N: Parameter = number("n", Type::Int, 0.0);
const SELECT: Parameter = enumeration("select", &["FIRST", "LAST", "UNIQUE"], "UNIQUE");
const SELECTED: &[Parameter] = &[N, SELECT];
const SUBROUTINES: &str = "The subroutines that a program calls are known before it runs; those \
                           that a set associates are not.";

pub(super) const CLASS: Class = Class {
    name: "set",
    about: "A set of patterns that are searched together. The time depends on the subject's \
            length, not on the number of patterns. With `anchor`, patterns match only at the \
            start, or only the whole subject. The set is compiled at the end of `vcl_init`; if it \
            is empty or a pattern is invalid, the program is not loaded. `match` belongs to a \
            request or a fetch. The other methods use its last `match`, and fail without one. `n` \
            selects a pattern by number, from 1; by default, the pattern that matched. If several \
            matched, `select` takes the first or the last in the order of `add`, and `UNIQUE` \
            fails.",
    params: &[
        enumeration("anchor", &["none", "start", "both"], "none"),
        UTF8,
        POSIX_SYNTAX,
        LONGEST_MATCH,
        MAX_MEM,
        LITERAL,
        NEVER_NL,
        DOT_NL,
        CASE_SENSITIVE,
        PERL_CLASSES,
        WORD_BOUNDARY,
        ONE_LINE,
    ],
    construct: |_, naming, args| {
        Ok(Arc::new(PatternSet {
            name: naming.name.into(),
            number: naming.number,
            pattern_options: PatternOptions::of(args, 1, false),
            anchor: args.enum_value(0).unwrap_or("none"),
            members: Mutex::default(),
            ready: OnceLock::new(),
        }))
    },
    methods: METHODS,
};

const METHODS: &[Method] = &[
    Method {
        name: "add",
        about: "Adds a pattern and its associated values. With `save`, the pattern is also \
                compiled separately, for `sub`, `suball` and `extract`.",
        returns: Type::Void,
        params: &[
            required_parameter("", Type::String),
            optional_parameter("string", Type::String),
            optional_parameter("backend", Type::Backend),
            truth("save", false),
            truth("never_capture", false),
            optional_parameter("integer", Type::Int),
            refused("sub", Type::Sub, SUBROUTINES),
        ],
        from: Sub::Init.only(),
        call: |_, object, args| this::<PatternSet>(object)?.add(args),
    },
    Method {
        name: "compile",
        about: "Compiles the set before the end of `vcl_init`. After that, no pattern can be \
                added.",
        returns: Type::Void,
        params: &[],
        from: Sub::Init.only(),
        call: |_, object, _| {
            let set = this::<PatternSet>(object)?;
            if set.ready.get().is_some() {
                return Err(set.failure("is compiled twice"));
            }
            set.complete().map(|()| Value::Void).map_err(ProgramFailure::new)
        },
    },
    method(
        "match",
        "Whether any pattern matches.",
        Type::Bool,
        &[required_parameter("", Type::String)],
        |ctx, object, args| {
            let set = this::<PatternSet>(object)?;
            let found = set.ready()?.engine.matches(args.bytes(0));
            let is_match = !found.is_empty();
            *ctx.task.keep(NAME_OF_KEPT, set.number) = MatchedPatterns(Some(found));
            Ok(Value::Bool(is_match))
        },
    ),
    method(
        "matched",
        "Whether pattern `n` matched.",
        Type::Bool,
        &[required_parameter("", Type::Int)],
        matched,
    ),
    method("nmatches", "Number of patterns that matched.", Type::Int, &[], |ctx, object, _| {
        let found = this::<PatternSet>(object)?.found(ctx)?;
        Ok(Value::Int(found.len() as i64))
    }),
    method("which", "The number of the pattern that matched.", Type::Int, &[SELECT], which),
    method(
        "string",
        "The string associated with a pattern. Fails if there is none.",
        Type::String,
        SELECTED,
        |ctx, object, args| associated(ctx, object, args, 0, |m| m.string.clone().map(owned)),
    ),
    method(
        "backend",
        "The backend associated with a pattern. Fails if there is none.",
        Type::Backend,
        SELECTED,
        |ctx, object, args| {
            associated(ctx, object, args, 0, |m| m.backend.clone().map(Value::Backend))
        },
    ),
    method(
        "integer",
        "The number associated with a pattern. Fails if there is none.",
        Type::Int,
        SELECTED,
        |ctx, object, args| associated(ctx, object, args, 0, |m| m.integer.map(Value::Int)),
    ),
    method(
        "sub",
        "Same as `sub` of the pattern's own object. Fails if the pattern was not saved.",
        Type::String,
        &[TEXT, REWRITE, text("fallback", "**SUB METHOD FAILED**"), N, SELECT],
        |ctx, object, args| replaced(ctx, object, args, ReplacementMode::First),
    ),
    method(
        "suball",
        "Same as `suball` of the pattern's own object. Fails if the pattern was not saved.",
        Type::String,
        &[TEXT, REWRITE, text("fallback", "**SUBALL METHOD FAILED**"), N, SELECT],
        |ctx, object, args| replaced(ctx, object, args, ReplacementMode::All),
    ),
    method(
        "extract",
        "Same as `extract` of the pattern's own object. Fails if the pattern was not saved.",
        Type::String,
        &[TEXT, REWRITE, text("fallback", "**EXTRACT METHOD FAILED**"), N, SELECT],
        |ctx, object, args| replaced(ctx, object, args, ReplacementMode::Extract),
    ),
    method(
        "saved",
        "Whether a value of this type is associated with a pattern: the saved pattern, a string, a \
         backend, or a number.",
        Type::Bool,
        &[enumeration("which", &["REGEX", "STR", "BE", "INT", "SUB"], "REGEX"), N, SELECT],
        |ctx, object, args| {
            let which = args.enum_value(0).unwrap_or_default();
            associated(ctx, object, args, 1, |member| Some(Value::Bool(member.has(which))))
        },
    ),
    method(
        "hdr_filter",
        "Removes the fields of a message that match no pattern; without `whitelist`, the fields \
         that match one. Patterns are compared with the whole line, `Name: value`.",
        Type::Void,
        &[required_parameter("", Type::Http), truth("whitelist", true)],
        filter,
    ),
];

/// An object of the class.
struct PatternSet {
    name: Box<str>,
    number: u32,
    pattern_options: PatternOptions,
    anchor: &'static str,
    /// Patterns that were added, until the set is compiled.
    members: Mutex<Vec<SetPattern>>,
    ready: OnceLock<CompiledSet>,
}

struct CompiledSet {
    engine: linear::RegexSet,
    members: Vec<SetPattern>,
}

/// A pattern with its associated values.
struct SetPattern {
    /// The pattern as the engine reads it, with its anchors.
    text: String,
    regex: Option<Pattern>,
    string: Option<Bytes>,
    backend: Option<Backend>,
    integer: Option<i64>,
}

impl SetPattern {
    fn has(&self, which: &str) -> bool {
        match which {
            "REGEX" => self.regex.is_some(),
            "STR" => self.string.is_some(),
            "BE" => self.backend.is_some(),
            "INT" => self.integer.is_some(),
            _ => false,
        }
    }
}

/// Numbers of the patterns that have matched, from 0; `None` before the first `match`.
#[derive(Default)]
struct MatchedPatterns(Option<Vec<usize>>);

impl Object for PatternSet {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn complete(&self) -> Result<(), String> {
        if self.ready.get().is_some() {
            return Ok(());
        }
        let members = std::mem::take(&mut *self.members.lock());
        let fault = |why: String| format!("re2.set {}: {why}", self.name);
        if members.is_empty() {
            return Err(fault("no patterns were added".to_owned()));
        }
        let texts: Vec<&str> = members.iter().map(|member| &*member.text).collect();
        let options = self.pattern_options.options().map_err(fault)?;
        let engine =
            linear::RegexSet::new(&texts, options).map_err(|why| fault(why.to_string()))?;
        self.ready
            .set(CompiledSet { engine, members })
            .map_err(|_| fault("is compiled twice".to_owned()))
    }
}

impl PatternSet {
    fn failure(&self, why: &str) -> ProgramFailure {
        ProgramFailure::new(format!("re2.set {}: {why}", self.name))
    }

    fn ready(&self) -> Result<&CompiledSet, ProgramFailure> {
        self.ready.get().ok_or_else(|| self.failure("is not compiled"))
    }

    fn add(&self, args: &[Value]) -> Result<Value, ProgramFailure> {
        if self.ready.get().is_some() {
            return Err(self.failure("a pattern is added after compile()"));
        }
        let pattern = args.string(0).ok_or_else(|| self.failure("a pattern is undefined"))?;
        let mut pattern_options = self.pattern_options;
        pattern_options.syntax.never_capture = args.truth(4).unwrap_or(false);
        let fault = |why: String| {
            self.failure(&format!("cannot compile '{}': {why}", pattern.escape_ascii()))
        };
        let text = pattern::rewrite(pattern, pattern_options.syntax).map_err(fault)?.text;
        // Compiled alone first, so that an error names the right pattern.
        let alone = Pattern::new(pattern, pattern_options).map_err(fault)?;
        self.members.lock().push(SetPattern {
            text: match self.anchor {
                "start" => format!("\\A(?:{text})"),
                "both" => format!("\\A(?:{text})\\z"),
                _ => text,
            },
            regex: args.truth(3).unwrap_or(false).then_some(alone),
            string: args.string(1).cloned(),
            backend: match args.get(2) {
                Some(Value::Backend(backend)) => Some(backend.clone()),
                _ => None,
            },
            integer: args.int(5),
        });
        Ok(Value::Void)
    }

    /// The patterns of the last match.
    fn found<'c>(&self, ctx: &'c mut Ctx<'_>) -> Result<&'c [usize], ProgramFailure> {
        let MatchedPatterns(found) = ctx.task.keep(NAME_OF_KEPT, self.number);
        found.as_deref().ok_or_else(|| self.failure("there was no match() before"))
    }

    /// The selected one of the patterns that have matched.
    fn selected(&self, ctx: &mut Ctx<'_>, select: Option<&str>) -> Result<usize, ProgramFailure> {
        let chosen = match (self.found(ctx)?, select) {
            ([], _) => return Err(self.failure("no pattern has matched")),
            ([first, ..], Some("FIRST")) => first,
            ([.., last], Some("LAST")) => last,
            ([only], _) => only,
            _ => return Err(self.failure("more than one pattern has matched")),
        };
        Ok(*chosen)
    }

    /// The member that the arguments `n` and `select`, from `at` on, choose.
    fn member(
        &self,
        ctx: &mut Ctx<'_>,
        args: &[Value],
        at: usize,
    ) -> Result<&SetPattern, ProgramFailure> {
        let number = match args.int(at) {
            Some(n @ 1..) => usize::try_from(n - 1).unwrap_or(usize::MAX),
            _ => self.selected(ctx, args.enum_value(at + 1))?,
        };
        let member = self.ready()?.members.get(number);
        member.ok_or_else(|| self.failure("has not so many patterns"))
    }
}

fn matched(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let set = this::<PatternSet>(object)?;
    let number = args.int(0).and_then(|n| usize::try_from(n).ok()?.checked_sub(1));
    let number = number.filter(|n| set.ready.get().is_some_and(|all| *n < all.members.len()));
    let number = number.ok_or_else(|| set.failure("has no pattern of this number"))?;
    Ok(Value::Bool(set.found(ctx)?.contains(&number)))
}

fn which(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let number = this::<PatternSet>(object)?.selected(ctx, args.enum_value(0))?;
    Ok(Value::Int(number as i64 + 1))
}

/// The associated value of the chosen member.
fn associated(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
    at: usize,
    get: impl FnOnce(&SetPattern) -> Option<Value>,
) -> Result<Value, ProgramFailure> {
    let set = this::<PatternSet>(object)?;
    let found = get(set.member(ctx, args, at)?);
    found.ok_or_else(|| set.failure("nothing of this kind was associated with the pattern"))
}

fn replaced(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
    mode: ReplacementMode,
) -> Result<Value, ProgramFailure> {
    let set = this::<PatternSet>(object)?;
    match &set.member(ctx, args, 3)?.regex {
        Some(regex) => regex.replace(ctx, args, mode),
        None => Err(set.failure("this pattern was not saved")),
    }
}

fn filter(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let engine = &this::<PatternSet>(object)?.ready()?.engine;
    let stays = args.truth(1).unwrap_or(true);
    let block = args.message(0).and_then(|message| headers::block_mut(ctx, message));
    let block =
        block.ok_or_else(|| ProgramFailure::new("re2: this message cannot be changed here"))?;
    let mut line = Vec::new();
    block.retain(|field| {
        line.clear();
        for part in [field.name, b": ", field.value] {
            line.extend_from_slice(part);
        }
        engine.matches(&line).is_empty() != stays
    });
    Ok(Value::Void)
}
