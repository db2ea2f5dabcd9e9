//! `std`: strings, conversions, files, the log and the request's own affairs.

mod control;
mod convert;
pub(crate) mod fnmatch;
pub(crate) mod query;
mod strings;
#[cfg(test)]
mod tests;

pub use fnmatch::{Options, fnmatch};
pub use query::sorted as query_sorted;

use crate::sub::{Sub, Subs};
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{may, must, text, truth};

/// The module.
pub static MODULE: Module = Module {
    name: "std",
    about: "Strings, conversions, files, the log, and the request's own affairs.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// A function that may be called everywhere.
const fn function(
    name: &'static str,
    about: &'static str,
    returns: Type,
    params: &'static [Parameter],
    call: crate::vmod::Call,
) -> Function {
    Function { name, about, returns, params, from: Subs::ALL, call }
}

const FUNCTIONS: &[Function] = &[
    function(
        "random",
        "A random number from `lo` on and below `hi`.",
        Type::Real,
        &[must("lo", Type::Real), must("hi", Type::Real)],
        convert::random,
    ),
    function(
        "round",
        "The nearest whole number; a half goes away from zero.",
        Type::Real,
        &[must("r", Type::Real)],
        convert::round,
    ),
    function(
        "collect",
        "Makes one header of all of that name, with `sep` between the values. Fails for `obj`.",
        Type::Void,
        &[must("hdr", Type::Header), text("sep", ", ")],
        strings::collect,
    ),
    function(
        "querysort",
        "The URL with its query parameters sorted and empty ones left out.",
        Type::String,
        &[must("url", Type::String)],
        strings::querysort,
    ),
    function(
        "toupper",
        "The string in upper case. ASCII only.",
        Type::String,
        &[must("s", Type::String)],
        strings::toupper,
    ),
    function(
        "tolower",
        "The string in lower case. ASCII only.",
        Type::String,
        &[must("s", Type::String)],
        strings::tolower,
    ),
    function(
        "strstr",
        "`s1` from where `s2` is first found in it; no string where it is not.",
        Type::String,
        &[must("s1", Type::String), must("s2", Type::String)],
        strings::strstr,
    ),
    function(
        "fnmatch",
        "Whether the shell pattern matches the whole subject: `*`, `?`, `[...]`. With `pathname`, \
         only a `/` matches a `/`. With `noescape`, a backslash is one. With `period`, only a `.` \
         matches a `.` at the beginning. Fails without pattern or subject.",
        Type::Bool,
        &[
            must("pattern", Type::String),
            must("subject", Type::String),
            truth("pathname", true),
            truth("noescape", false),
            truth("period", false),
        ],
        strings::matches,
    ),
    function(
        "fileread",
        "A file's content, read once and kept; no string where it cannot be read.",
        Type::String,
        &[must("path", Type::String)],
        control::fileread,
    ),
    function(
        "blobread",
        "A file's content as a blob, read once and kept.",
        Type::Blob,
        &[must("path", Type::String)],
        control::blobread,
    ),
    function(
        "file_exists",
        "Whether the path leads to something.",
        Type::Bool,
        &[must("path", Type::String)],
        control::file_exists,
    ),
    function(
        "healthy",
        "Whether requests may go to the backend or director.",
        Type::Bool,
        &[must("be", Type::Backend)],
        control::healthy,
    ),
    function(
        "port",
        "The port of an address; 0 where there is none.",
        Type::Int,
        &[must("ip", Type::Ip)],
        convert::port,
    ),
    function(
        "duration",
        "A duration from a string like `1.5h`, or from seconds. Exactly one of `s`, `real` and \
         `integer` must be given. Without a fallback, a string that is none fails.",
        Type::Duration,
        &[
            may("s", Type::String),
            may("fallback", Type::Duration),
            may("real", Type::Real),
            may("integer", Type::Int),
        ],
        convert::duration,
    ),
    function(
        "bytes",
        "A number of bytes from a string like `1.5k`, or from a number, cut to whole bytes. \
         Exactly one of `s`, `real` and `integer` must be given. Without a fallback, a string \
         that is none fails, and so does what is negative.",
        Type::Bytes,
        &[
            may("s", Type::String),
            may("fallback", Type::Bytes),
            may("real", Type::Real),
            may("integer", Type::Int),
        ],
        convert::bytes,
    ),
    function(
        "integer",
        "A whole number from a string or another number, cut towards zero. Exactly one of `s`, \
         `bool`, `bytes`, `duration`, `real` and `time` must be given. Without a fallback, a \
         string that is none fails, and so does what is too large.",
        Type::Int,
        &[
            may("s", Type::String),
            may("fallback", Type::Int),
            may("bool", Type::Bool),
            may("bytes", Type::Bytes),
            may("duration", Type::Duration),
            may("real", Type::Real),
            may("time", Type::Time),
        ],
        convert::integer,
    ),
    function(
        "ip",
        "An address from a string: `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]:80`, \
         `192.0.2.1 80`, or, with `resolve`, a host name. `p` is the port where the string has \
         none; 80 without. Without a fallback, a string that is none fails.",
        Type::Ip,
        &[
            must("s", Type::String),
            may("fallback", Type::Ip),
            truth("resolve", true),
            may("p", Type::String),
        ],
        convert::ip,
    ),
    function(
        "real",
        "A number from a string or another number. Exactly one of `s`, `integer`, `bool`, \
         `bytes`, `duration` and `time` must be given. Without a fallback, a string that is none \
         fails.",
        Type::Real,
        &[
            may("s", Type::String),
            may("fallback", Type::Real),
            may("integer", Type::Int),
            may("bool", Type::Bool),
            may("bytes", Type::Bytes),
            may("duration", Type::Duration),
            may("time", Type::Time),
        ],
        convert::real,
    ),
    function(
        "time",
        "A time from a string (a date as HTTP has them, `1994-11-06T08:49:37`, or seconds since \
         1970), or from seconds. Exactly one of `s`, `real` and `integer` must be given. Without \
         a fallback, a string that is none fails.",
        Type::Time,
        &[
            may("s", Type::String),
            may("fallback", Type::Time),
            may("real", Type::Real),
            may("integer", Type::Int),
        ],
        convert::time,
    ),
    function(
        "strftime",
        "The time in UTC, written as strftime(3) does in the C locale.",
        Type::String,
        &[must("time", Type::Time), must("format", Type::String)],
        strings::strftime,
    ),
    function(
        "log",
        "Writes a line to the log, with the tag `VCL_Log`.",
        Type::Void,
        &[must("s", Type::String)],
        control::log,
    ),
    function(
        "syslog",
        "Writes a line to the system's log; the priority is facility and level of syslog(3) \
         added up.",
        Type::Void,
        &[must("priority", Type::Int), must("s", Type::String)],
        control::syslog,
    ),
    function(
        "timestamp",
        "Writes a timestamp to the log, with this label.",
        Type::Void,
        &[must("s", Type::String)],
        control::timestamp,
    ),
    function(
        "syntax",
        "Whether the program is written in this version of VCL or a later one.",
        Type::Bool,
        &[must("version", Type::Real)],
        control::syntax,
    ),
    function(
        "getenv",
        "An environment variable of the daemon; `fallback` where there is none.",
        Type::String,
        &[must("name", Type::String), may("fallback", Type::String)],
        control::getenv,
    ),
    Function {
        name: "cache_req_body",
        about: "Keeps the request's body if it has no more than `size`, so that it can be sent \
                again; whether it could be kept.",
        returns: Type::Bool,
        params: &[must("size", Type::Bytes)],
        from: Sub::Recv.only(),
        call: control::cache_req_body,
    },
    Function {
        name: "late_100_continue",
        about: "Whether a client that waits for a 100 gets it only when the body is read, not \
                already after `vcl_recv`.",
        returns: Type::Void,
        params: &[must("late", Type::Bool)],
        from: Sub::Recv.only(),
        call: control::late_100_continue,
    },
    Function {
        name: "set_ip_tos",
        about: "Sets the type of service or traffic class of the client's connection.",
        returns: Type::Void,
        params: &[must("tos", Type::Int)],
        from: Subs::CLIENT,
        call: control::set_ip_tos,
    },
    Function {
        name: "rollback",
        about: "Makes `req` or `bereq` again what it was in the beginning.",
        returns: Type::Void,
        params: &[must("h", Type::Http)],
        from: Subs::BOTH,
        call: control::rollback,
    },
    function(
        "ban",
        "Bans the objects that the expression means; whether it is a good one.",
        Type::Bool,
        &[must("ban", Type::String)],
        control::ban,
    ),
    function(
        "ban_error",
        "What was wrong with the last expression given to `std.ban`; empty where nothing was.",
        Type::String,
        &[],
        control::ban_error,
    ),
    function(
        "now",
        "The time at this moment, which `now` is at the beginning of a subroutine only. Since \
         Varnish 7.2.",
        Type::Time,
        &[],
        control::now,
    ),
    function(
        "timed_call",
        "Calls the subroutine, and says how long that took. Since Varnish 7.2.",
        Type::Duration,
        &[must("sub", Type::Sub)],
        control::timed_call,
    ),
    Function {
        name: "rfc_ttl",
        about: "Sets `beresp.ttl`, `beresp.grace` and `beresp.keep` to what status and headers \
                make of them now. Since Varnish 9.0.",
        returns: Type::Void,
        params: &[],
        from: Sub::BackendResponse.only().and(Sub::BackendRefresh.only()),
        call: control::rfc_ttl,
    },
    function(
        "real2integer",
        "The nearest whole number. Deprecated: `std.integer(real=std.round(...))`.",
        Type::Int,
        &[must("r", Type::Real), must("fallback", Type::Int)],
        convert::real2integer,
    ),
    function(
        "real2time",
        "Seconds since 1970 as a time. Deprecated: `std.time(real=...)`.",
        Type::Time,
        &[must("r", Type::Real), must("fallback", Type::Time)],
        convert::real2time,
    ),
    function(
        "time2integer",
        "A time in whole seconds since 1970. Deprecated: `std.integer(time=...)`.",
        Type::Int,
        &[must("t", Type::Time), must("fallback", Type::Int)],
        convert::time2integer,
    ),
    function(
        "time2real",
        "A time in seconds since 1970. Deprecated: `std.real(time=...)`.",
        Type::Real,
        &[must("t", Type::Time), must("fallback", Type::Real)],
        convert::time2real,
    ),
];
