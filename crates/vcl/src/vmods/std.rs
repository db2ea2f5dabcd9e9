//! VMOD `std`: strings, conversions, files, the log, and control of the request. No function waits.

mod control;
mod conversion;
pub(crate) mod query;
mod strings;
#[cfg(test)]
mod tests;

pub use query::sorted as query_sorted;

use crate::sub::{Sub, Subs};
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{optional_parameter, required_parameter, text, truth};

/// The module.
pub static MODULE: Module = Module {
    name: "std",
    about: "Strings, conversions, files, the log, and properties of the request.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// A function that all subroutines may call.
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
        "A random number, at least `lo` and less than `hi`.",
        Type::Real,
        &[required_parameter("lo", Type::Real), required_parameter("hi", Type::Real)],
        conversion::random,
    ),
    function(
        "round",
        "The nearest whole number. Halves are rounded away from zero.",
        Type::Real,
        &[required_parameter("r", Type::Real)],
        conversion::round,
    ),
    function(
        "collect",
        "Joins all header fields with this name into one, with `sep` between the values. Fails for \
         `obj`.",
        Type::Void,
        &[required_parameter("hdr", Type::Header), text("sep", ", ")],
        strings::collect,
    ),
    function(
        "querysort",
        "The URL with its query parameters sorted, without empty ones.",
        Type::String,
        &[required_parameter("url", Type::String)],
        strings::querysort,
    ),
    function(
        "toupper",
        "The string in upper case. ASCII only.",
        Type::String,
        &[required_parameter("s", Type::String)],
        strings::toupper,
    ),
    function(
        "tolower",
        "The string in lower case. ASCII only.",
        Type::String,
        &[required_parameter("s", Type::String)],
        strings::tolower,
    ),
    function(
        "strstr",
        "The part of `s1` from the first occurrence of `s2`. No string if `s2` does not occur.",
        Type::String,
        &[required_parameter("s1", Type::String), required_parameter("s2", Type::String)],
        strings::strstr,
    ),
    function(
        "fnmatch",
        "Whether the shell pattern (`*`, `?`, `[...]`) matches the whole subject. With `pathname`, \
         only a `/` matches a `/`. With `noescape`, a backslash is an ordinary character. With \
         `period`, only a `.` matches a leading `.`. Fails without pattern or subject.",
        Type::Bool,
        &[
            required_parameter("pattern", Type::String),
            required_parameter("subject", Type::String),
            truth("pathname", true),
            truth("noescape", false),
            truth("period", false),
        ],
        strings::matches,
    ),
    function(
        "fileread",
        "The content of a file, read once and kept. No string if the file cannot be read.",
        Type::String,
        &[required_parameter("path", Type::String)],
        control::fileread,
    ),
    function(
        "blobread",
        "The content of a file as a blob, read once and kept.",
        Type::Blob,
        &[required_parameter("path", Type::String)],
        control::blobread,
    ),
    function(
        "file_exists",
        "Whether the path exists.",
        Type::Bool,
        &[required_parameter("path", Type::String)],
        control::file_exists,
    ),
    function(
        "healthy",
        "Whether the backend or director is healthy.",
        Type::Bool,
        &[required_parameter("be", Type::Backend)],
        control::healthy,
    ),
    function(
        "port",
        "The port of an address. 0 if there is none.",
        Type::Int,
        &[required_parameter("ip", Type::Ip)],
        conversion::port,
    ),
    function(
        "duration",
        "Converts a string like `1.5h`, or seconds, to a duration. Exactly one of `s`, `real` and \
         `integer` must be given. An invalid string without a fallback is a failure.",
        Type::Duration,
        &[
            optional_parameter("s", Type::String),
            optional_parameter("fallback", Type::Duration),
            optional_parameter("real", Type::Real),
            optional_parameter("integer", Type::Int),
        ],
        conversion::duration,
    ),
    function(
        "bytes",
        "Converts a string like `1.5k`, or a number, to bytes, rounded down to whole bytes. \
         Exactly one of `s`, `real` and `integer` must be given. Without a fallback, invalid \
         strings and negative values fail.",
        Type::Bytes,
        &[
            optional_parameter("s", Type::String),
            optional_parameter("fallback", Type::Bytes),
            optional_parameter("real", Type::Real),
            optional_parameter("integer", Type::Int),
        ],
        conversion::bytes,
    ),
    function(
        "integer",
        "Converts a string or another number to an integer, rounded towards zero. Exactly one of \
         `s`, `bool`, `bytes`, `duration`, `real` and `time` must be given. Without a fallback, \
         invalid strings and too large values fail.",
        Type::Int,
        &[
            optional_parameter("s", Type::String),
            optional_parameter("fallback", Type::Int),
            optional_parameter("bool", Type::Bool),
            optional_parameter("bytes", Type::Bytes),
            optional_parameter("duration", Type::Duration),
            optional_parameter("real", Type::Real),
            optional_parameter("time", Type::Time),
        ],
        conversion::integer,
    ),
    function(
        "ip",
        "Converts a string to an address: `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]:80`, \
         `192.0.2.1 80`, or, with `resolve`, a host name. `p` is the port if the string has none; \
         the default is 80. An invalid string without a fallback is a failure.",
        Type::Ip,
        &[
            required_parameter("s", Type::String),
            optional_parameter("fallback", Type::Ip),
            truth("resolve", true),
            optional_parameter("p", Type::String),
        ],
        conversion::ip,
    ),
    function(
        "real",
        "Converts a string or another number to a real number. Exactly one of `s`, `integer`, \
         `bool`, `bytes`, `duration` and `time` must be given. An invalid string without a \
         fallback is a failure.",
        Type::Real,
        &[
            optional_parameter("s", Type::String),
            optional_parameter("fallback", Type::Real),
            optional_parameter("integer", Type::Int),
            optional_parameter("bool", Type::Bool),
            optional_parameter("bytes", Type::Bytes),
            optional_parameter("duration", Type::Duration),
            optional_parameter("time", Type::Time),
        ],
        conversion::real,
    ),
    function(
        "time",
        "Converts a string or seconds to a time. A string is an HTTP date, `1994-11-06T08:49:37`, \
         or seconds since 1970. Exactly one of `s`, `real` and `integer` must be given. An invalid \
         string without a fallback is a failure.",
        Type::Time,
        &[
            optional_parameter("s", Type::String),
            optional_parameter("fallback", Type::Time),
            optional_parameter("real", Type::Real),
            optional_parameter("integer", Type::Int),
        ],
        conversion::time,
    ),
    function(
        "strftime",
        "Formats a time in UTC as strftime(3) does in the C locale.",
        Type::String,
        &[required_parameter("time", Type::Time), required_parameter("format", Type::String)],
        strings::strftime,
    ),
    function(
        "log",
        "Writes a line to the log with the tag `VCL_Log`.",
        Type::Void,
        &[required_parameter("s", Type::String)],
        control::log,
    ),
    function(
        "syslog",
        "Writes a line to the system log. The priority is the sum of facility and level of \
         syslog(3).",
        Type::Void,
        &[required_parameter("priority", Type::Int), required_parameter("s", Type::String)],
        control::syslog,
    ),
    function(
        "timestamp",
        "Writes a timestamp with this label to the log.",
        Type::Void,
        &[required_parameter("s", Type::String)],
        control::timestamp,
    ),
    function(
        "syntax",
        "Whether the VCL version of the program is at least this one.",
        Type::Bool,
        &[required_parameter("version", Type::Real)],
        control::syntax,
    ),
    function(
        "getenv",
        "The value of an environment variable of the daemon, or `fallback`.",
        Type::String,
        &[required_parameter("name", Type::String), optional_parameter("fallback", Type::String)],
        control::getenv,
    ),
    Function {
        name: "cache_req_body",
        about: "Stores the request body if it has at most `size` bytes, so that it can be sent \
                again. Returns whether it was stored.",
        returns: Type::Bool,
        params: &[required_parameter("size", Type::Bytes)],
        from: Sub::Recv.only(),
        call: control::cache_req_body,
    },
    Function {
        name: "late_100_continue",
        about: "Whether `100 Continue` is sent only when the body is read, instead of after \
                `vcl_recv`.",
        returns: Type::Void,
        params: &[required_parameter("late", Type::Bool)],
        from: Sub::Recv.only(),
        call: control::late_100_continue,
    },
    Function {
        name: "set_ip_tos",
        about: "Sets the type of service or traffic class of the client connection.",
        returns: Type::Void,
        params: &[required_parameter("tos", Type::Int)],
        from: Subs::CLIENT,
        call: control::set_ip_tos,
    },
    Function {
        name: "rollback",
        about: "Restores `req` or `bereq` to its initial state.",
        returns: Type::Void,
        params: &[required_parameter("h", Type::Http)],
        from: Subs::BOTH,
        call: control::rollback,
    },
    function(
        "ban",
        "Bans the objects that match the expression. Returns whether the expression is valid.",
        Type::Bool,
        &[required_parameter("ban", Type::String)],
        control::ban,
    ),
    function(
        "ban_error",
        "The error of the last expression given to `std.ban`. Empty if it had none.",
        Type::String,
        &[],
        control::ban_error,
    ),
    function(
        "now",
        "The current time. Unlike `now`, it changes while a subroutine runs. Since Varnish 7.2.",
        Type::Time,
        &[],
        control::now,
    ),
    function(
        "timed_call",
        "Calls the subroutine and returns its duration. Since Varnish 7.2.",
        Type::Duration,
        &[required_parameter("sub", Type::Sub)],
        control::timed_call,
    ),
    Function {
        name: "rfc_ttl",
        about: "Recomputes `beresp.ttl`, `beresp.grace` and `beresp.keep` from the current status \
                and header fields. Since Varnish 9.0.",
        returns: Type::Void,
        params: &[],
        from: Sub::BackendResponse.only().and(Sub::BackendRefresh.only()),
        call: control::rfc_ttl,
    },
    function(
        "real2integer",
        "The nearest whole number. Deprecated: `std.integer(real=std.round(...))`.",
        Type::Int,
        &[required_parameter("r", Type::Real), required_parameter("fallback", Type::Int)],
        conversion::real2integer,
    ),
    function(
        "real2time",
        "Converts seconds since 1970 to a time. Deprecated: `std.time(real=...)`.",
        Type::Time,
        &[required_parameter("r", Type::Real), required_parameter("fallback", Type::Time)],
        conversion::real2time,
    ),
    function(
        "time2integer",
        "Converts a time to whole seconds since 1970. Deprecated: `std.integer(time=...)`.",
        Type::Int,
        &[required_parameter("t", Type::Time), required_parameter("fallback", Type::Int)],
        conversion::time2integer,
    ),
    function(
        "time2real",
        "Converts a time to seconds since 1970. Deprecated: `std.real(time=...)`.",
        Type::Real,
        &[required_parameter("t", Type::Time), required_parameter("fallback", Type::Real)],
        conversion::time2real,
    ),
];
