//! VMOD `querystring`: filters and sorts the parameters of a URL. A parameter stands between two
//! `&`; its name ends at the first `=`. Empty parameters are always removed, and with the last
//! parameter the question mark.

use base::fnmatch::{Options, fnmatch};
use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use message::query;
use parking_lot::RwLock;

use crate::failure::ProgramFailure;
use crate::regex::{Limits, Regex};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Class, Function, Method, MethodCall, Module, Parameter};
use crate::vmods::args::{Args, enumeration, owned, required_parameter, this, truth};

/// The module.
pub static MODULE: Module = Module {
    name: "querystring",
    about: "Selects and sorts the query parameters of a URL. All functions remove empty \
            parameters. A URL without a query is returned unchanged.",
    functions: FUNCTIONS,
    classes: &[CLASS],
    refused: &[],
};

/// Separator of names in a list: a byte that no URL contains.
const SEPARATOR: &str = "\u{1f}";

const URL: Parameter = required_parameter("url", Type::String);
const BY_NAMES: &[Parameter] = &[URL, required_parameter("params", Type::String)];
const BY_REGEX: &[Parameter] = &[URL, required_parameter("regex", Type::Regex)];
const BY_GLOB: &[Parameter] = &[URL, required_parameter("glob", Type::String)];

const fn function(
    name: &'static str,
    about: &'static str,
    params: &'static [Parameter],
    call: crate::vmod::Call,
) -> Function {
    Function { name, about, returns: Type::String, params, from: Subs::ALL, call }
}

const FUNCTIONS: &[Function] = &[
    function("clean", "The URL without empty query parameters.", &[URL], |_, args| {
        kept(args, |_| Ok(true))
    }),
    function("remove", "The URL without its query.", &[URL], |_, args| {
        let Some(url) = args.string(0) else { return Ok(Value::String(None)) };
        let end = memchr::memchr(b'?', url).unwrap_or(url.len());
        Ok(Value::String(Some(url.slice(..end))))
    }),
    function(
        "sort",
        "The URL with its query parameters sorted. With `uniq`, duplicates are removed.",
        &[URL, truth("uniq", false)],
        |_, args| {
            let Some(url) = args.string(0) else { return Ok(Value::String(None)) };
            let order = Sorting { is_sorted: true, is_unique: args.truth(1).unwrap_or(false) };
            Ok(Value::String(Some(rewrite(url, order, |_| Ok(true))?)))
        },
    ),
    Function {
        name: "filtersep",
        about: "The separator of names in the lists of `filter` and `filter_except`.",
        returns: Type::String,
        params: &[],
        from: Subs::ALL,
        call: |_, _| Ok(owned(SEPARATOR)),
    },
    function(
        "filter",
        "The URL without the query parameters with these names, separated by `filtersep()`.",
        BY_NAMES,
        |_, args| kept(args, |param| Ok(!is_listed(args.bytes(1), query::name(param)))),
    ),
    function(
        "filter_except",
        "The URL with only the query parameters with these names, separated by `filtersep()`.",
        BY_NAMES,
        |_, args| kept(args, |param| Ok(is_listed(args.bytes(1), query::name(param)))),
    ),
    function(
        "regfilter",
        "The URL without the query parameters whose names match.",
        BY_REGEX,
        |ctx, args| {
            let regex = regex(ctx, args)?;
            kept(args, |param| Ok(!regex.is_match(query::name(param))?))
        },
    ),
    function(
        "regfilter_except",
        "The URL with only the query parameters whose names match.",
        BY_REGEX,
        |ctx, args| {
            let regex = regex(ctx, args)?;
            kept(args, |param| regex.is_match(query::name(param)))
        },
    ),
    function(
        "globfilter",
        "The URL without the query parameters whose names match a pattern with `*`, `?` and \
         `[...]`.",
        BY_GLOB,
        |_, args| kept(args, |param| Ok(!is_glob(args.bytes(1), query::name(param)))),
    ),
    function(
        "globfilter_except",
        "The URL with only the query parameters whose names match a pattern with `*`, `?` and \
         `[...]`.",
        BY_GLOB,
        |_, args| kept(args, |param| Ok(is_glob(args.bytes(1), query::name(param)))),
    ),
];

fn regex<'a>(ctx: &Ctx<'a>, args: &[Value]) -> Result<&'a Regex, ProgramFailure> {
    let number = args.regex(1).ok_or_else(|| ProgramFailure::new("querystring: no pattern"))?;
    Ok(ctx.instance.regex(number))
}

fn is_listed(list: &[u8], name: &[u8]) -> bool {
    list.split(|b| *b == SEPARATOR.as_bytes()[0]).any(|listed| listed == name)
}

/// Returns true if the shell pattern matches all of `text`.
fn is_glob(pattern: &[u8], text: &[u8]) -> bool {
    fnmatch(pattern, text, Options::default())
}

/// Order of the parameters.
#[derive(Clone, Copy, Debug)]
struct Sorting {
    is_sorted: bool,
    /// True if equal parameters are written once; in order, only neighbours are equal.
    is_unique: bool,
}

const AS_THEY_STAND: Sorting = Sorting { is_sorted: false, is_unique: false };

/// The URL in the first argument with the parameters that `keep` accepts.
fn kept(
    args: &[Value],
    keep: impl FnMut(&[u8]) -> Result<bool, ProgramFailure>,
) -> Result<Value, ProgramFailure> {
    match args.string(0) {
        Some(url) => Ok(Value::String(Some(rewrite(url, AS_THEY_STAND, keep)?))),
        None => Ok(Value::String(None)),
    }
}

/// `url` with the parameters that `keep` accepts, in this order.
fn rewrite(
    url: &Bytes,
    order: Sorting,
    mut keep: impl FnMut(&[u8]) -> Result<bool, ProgramFailure>,
) -> Result<Bytes, ProgramFailure> {
    let Some(mark) = memchr::memchr(b'?', url) else { return Ok(url.clone()) };
    let mut params = Vec::new();
    for param in query::params(&url[mark + 1..]).filter(|param| !param.is_empty()) {
        if keep(param)? {
            params.push(param);
        }
    }
    if order.is_sorted {
        params.sort_unstable();
    }
    if order.is_unique {
        params.dedup();
    }
    if params.is_empty() {
        return Ok(url.slice(..mark));
    }
    let mut written = url[..=mark].to_vec();
    written.extend_from_slice(&params.join(&b'&'));
    Ok(written.into())
}

const ADD: &[Parameter] = &[required_parameter("", Type::String)];

const fn adding(name: &'static str, about: &'static str, call: MethodCall) -> Method {
    Method { name, about, returns: Type::Void, params: ADD, from: Subs::HOUSEKEEPING, call }
}

const CLASS: Class = Class {
    name: "filter",
    about: "A list of query parameters to drop or keep, created in `vcl_init`. `match` selects \
            whether the list is compared with a parameter's name or with the whole parameter. \
            `sort` sorts the remaining parameters, and `uniq` removes duplicates.",
    params: &[
        truth("sort", false),
        truth("uniq", false),
        enumeration("match", &["name", "param"], "name"),
    ],
    construct: |_, _, args| {
        let order = Sorting {
            is_sorted: args.truth(0).unwrap_or(false),
            is_unique: args.truth(1).unwrap_or(false),
        };
        let by_name = args.enum_value(2) != Some("param");
        Ok(Arc::new(Filter { order, by_name, rules: RwLock::default() }))
    },
    methods: &[
        adding("add_string", "Adds a string to compare for equality.", |_, object, args| {
            this::<Filter>(object)?.add(FilterRule::Text(Bytes::copy_from_slice(args.bytes(0))))
        }),
        adding(
            "add_glob",
            "Adds a pattern with `*`, `?` and `[...]`, which must match completely.",
            |_, object, args| {
                this::<Filter>(object)?.add(FilterRule::Glob(Bytes::copy_from_slice(args.bytes(0))))
            },
        ),
        adding(
            "add_regex",
            "Adds a regular expression. Fails if it is invalid.",
            |_, object, args| {
                let pattern = String::from_utf8_lossy(args.bytes(0)).into_owned();
                let regex = Regex::new(&pattern, Limits::default()).map_err(|error| {
                    ProgramFailure::new(format!("querystring: {pattern}: {}", error.message))
                })?;
                this::<Filter>(object)?.add(FilterRule::Regex(regex))
            },
        ),
        Method {
            name: "apply",
            about: "The URL without the listed query parameters, or with only them.",
            returns: Type::String,
            params: &[URL, enumeration("mode", &["keep", "drop"], "drop")],
            from: Subs::ALL,
            call: |_, object, args| {
                let Some(url) = args.string(0) else { return Ok(Value::String(None)) };
                let keeps = args.enum_value(1) == Some("keep");
                Ok(Value::String(Some(this::<Filter>(object)?.apply(url, keeps)?)))
            },
        },
    ],
};

/// Most rules of one filter: each is tried for each parameter.
const RULES_MAX: usize = 1000;

#[derive(Debug)]
enum FilterRule {
    Text(Bytes),
    Glob(Bytes),
    Regex(Regex),
}

#[derive(Debug)]
struct Filter {
    order: Sorting,
    by_name: bool,
    rules: RwLock<Vec<FilterRule>>,
}

impl Object for Filter {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Filter {
    fn add(&self, rule: FilterRule) -> Result<Value, ProgramFailure> {
        let mut rules = self.rules.write();
        if rules.len() >= RULES_MAX {
            let why = format!("querystring: a filter has at most {RULES_MAX} rules");
            return Err(ProgramFailure::new(why));
        }
        rules.push(rule);
        Ok(Value::Void)
    }

    fn apply(&self, url: &Bytes, keeps: bool) -> Result<Bytes, ProgramFailure> {
        let rules = self.rules.read();
        rewrite(url, self.order, |param| {
            let subject = if self.by_name { query::name(param) } else { param };
            for rule in rules.iter() {
                let is_match = match rule {
                    FilterRule::Text(text) => text == subject,
                    FilterRule::Glob(pattern) => is_glob(pattern, subject),
                    FilterRule::Regex(regex) => regex.is_match(subject)?,
                };
                if is_match {
                    return Ok(keeps);
                }
            }
            Ok(!keeps)
        })
    }
}

#[cfg(test)]
mod tests;
