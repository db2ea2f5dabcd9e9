//! VMOD `cookie`: the cookies of a request, parsed once and kept for the task. Two behaviours of
//! Varnish's VMOD are kept for existing policies: a name extends to the next `=`, even past a `;`,
//! and a cookie with an empty value is dropped. A cookie is never decoded.

use bytes::Bytes;
use message::date::HttpDate;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, owned, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "cookie",
    about: "The cookies of a request: parse, read, change and format. Parsed cookies are kept \
            until the end of the request or backend request.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "clean",
        about: "Removes all cookies.",
        returns: Type::Void,
        params: &[],
        from: Subs::ALL,
        call: |ctx, _| {
            jar(ctx).cookies.clear();
            Ok(Value::Void)
        },
    },
    Function {
        name: "delete",
        about: "Removes the cookie with this name, if there is one.",
        returns: Type::Void,
        params: &[required_parameter("cookiename", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| {
            let name = args.bytes(0);
            jar(ctx).retain(|cookie| cookie != name);
            Ok(Value::Void)
        },
    },
    Function {
        name: "filter",
        about: "Removes the cookies in a comma-separated list of names.",
        returns: Type::Void,
        params: &[required_parameter("filterstring", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| {
            let list = args.bytes(0);
            jar(ctx).retain(|name| !names(list).any(|listed| listed == name));
            Ok(Value::Void)
        },
    },
    Function {
        name: "filter_re",
        about: "Removes the cookies whose names match.",
        returns: Type::Void,
        params: &[required_parameter("expression", Type::Regex)],
        from: Subs::ALL,
        call: |ctx, args| {
            let Some(regex) = regex(ctx, args) else { return Ok(Value::Void) };
            jar(ctx).try_retain(|name| Ok(!regex.is_match(name)?))
        },
    },
    Function {
        name: "keep",
        about: "Removes all cookies except those in a comma-separated list of names.",
        returns: Type::Void,
        params: &[required_parameter("filterstring", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| {
            let list = args.bytes(0);
            jar(ctx).retain(|name| names(list).any(|listed| listed == name));
            Ok(Value::Void)
        },
    },
    Function {
        name: "keep_re",
        about: "Removes all cookies except those whose names match.",
        returns: Type::Void,
        params: &[required_parameter("expression", Type::Regex)],
        from: Subs::ALL,
        call: |ctx, args| {
            let Some(regex) = regex(ctx, args) else { return Ok(Value::Void) };
            jar(ctx).try_retain(|name| regex.is_match(name))
        },
    },
    Function {
        name: "format_date",
        about: "Formats a time plus a duration as a date for `Expires` in `Set-Cookie`.",
        returns: Type::String,
        params: &[
            required_parameter("now", Type::Time),
            required_parameter("timedelta", Type::Duration),
        ],
        from: Subs::ALL,
        call: format_date,
    },
    Function {
        name: "format_rfc1123",
        about: "The old name of `format_date`.",
        returns: Type::String,
        params: &[
            required_parameter("now", Type::Time),
            required_parameter("timedelta", Type::Duration),
        ],
        from: Subs::ALL,
        call: format_date,
    },
    Function {
        name: "get",
        about: "The value of the cookie with this name. No string if there is none.",
        returns: Type::String,
        params: &[required_parameter("cookiename", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| Ok(Value::String(jar(ctx).get(args.bytes(0)).cloned())),
    },
    Function {
        name: "get_re",
        about: "The value of the first cookie whose name matches. No string if none matches.",
        returns: Type::String,
        params: &[required_parameter("expression", Type::Regex)],
        from: Subs::ALL,
        call: |ctx, args| {
            let Some(regex) = regex(ctx, args) else { return Ok(Value::String(None)) };
            for cookie in &jar(ctx).cookies {
                if regex.is_match(&cookie.name)? {
                    return Ok(Value::String(Some(cookie.value.clone())));
                }
            }
            Ok(Value::String(None))
        },
    },
    Function {
        name: "get_string",
        about: "Formats all cookies as a `Cookie` header value. Each is followed by `;`, and \
                spaces separate them. Empty if there are none.",
        returns: Type::String,
        params: &[],
        from: Subs::ALL,
        call: |ctx, _| Ok(owned(jar(ctx).write())),
    },
    Function {
        name: "isset",
        about: "Whether a cookie with this name exists.",
        returns: Type::Bool,
        params: &[required_parameter("cookiename", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| Ok(Value::Bool(jar(ctx).get(args.bytes(0)).is_some())),
    },
    Function {
        name: "parse",
        about: "Parses a `Cookie` header value and replaces all earlier cookies. An empty string \
                changes nothing. Cookies without a name or value are left out. If a name occurs \
                twice, the last value counts.",
        returns: Type::Void,
        params: &[required_parameter("cookieheader", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| {
            if let Some(header) = args.string(0).filter(|header| !header.is_empty()) {
                jar(ctx).parse(header);
            }
            Ok(Value::Void)
        },
    },
    Function {
        name: "set",
        about: "Sets the cookie with this name. An empty name or value changes nothing.",
        returns: Type::Void,
        params: &[
            required_parameter("cookiename", Type::String),
            required_parameter("value", Type::String),
        ],
        from: Subs::ALL,
        call: |ctx, args| {
            if let (Some(name), Some(value)) = (args.string(0), args.string(1)) {
                jar(ctx).set(name.clone(), value.clone());
            }
            Ok(Value::Void)
        },
    },
];

/// Cookies of a task, in the order in which they were first set.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Bytes,
    value: Bytes,
}

impl Jar {
    /// Parses `header`, and replaces all cookies.
    pub(crate) fn parse(&mut self, header: &Bytes) {
        self.cookies.clear();
        let mut at = 0;
        loop {
            at += header[at..].iter().take_while(|b| is_space(**b)).count();
            let Some(equals) = memchr::memchr(b'=', &header[at..]) else { break };
            let name = at..at + equals;
            let rest = name.end + 1;
            let end = memchr::memchr(b';', &header[rest..]).map_or(header.len(), |n| rest + n);
            self.set(header.slice(name), header.slice(rest..end));
            if end == header.len() {
                break;
            }
            at = end + 1;
        }
    }

    /// Sets a cookie, unless name or value is empty.
    pub(crate) fn set(&mut self, name: Bytes, value: Bytes) {
        if name.is_empty() || value.is_empty() {
            return;
        }
        match self.cookies.iter_mut().find(|cookie| cookie.name == name) {
            Some(cookie) => cookie.value = value,
            None => self.cookies.push(Cookie { name, value }),
        }
    }

    fn get(&self, name: &[u8]) -> Option<&Bytes> {
        self.cookies.iter().find(|cookie| cookie.name == name).map(|cookie| &cookie.value)
    }

    fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        self.cookies.retain(|cookie| keep(&cookie.name));
    }

    /// Keeps the cookies for which `keep` returns true; those for which it fails stay too.
    fn try_retain(
        &mut self,
        mut keep: impl FnMut(&[u8]) -> Result<bool, ProgramFailure>,
    ) -> Result<Value, ProgramFailure> {
        let mut done = Ok(Value::Void);
        self.retain(|name| {
            keep(name).unwrap_or_else(|why| {
                done = Err(why);
                true
            })
        });
        done
    }

    /// All cookies as one string.
    pub(crate) fn write(&self) -> Vec<u8> {
        let bytes = self.cookies.iter().map(|c| c.name.len() + c.value.len() + 3).sum();
        let mut out = Vec::with_capacity(bytes);
        for cookie in &self.cookies {
            if !out.is_empty() {
                out.push(b' ');
            }
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
            out.push(b';');
        }
        out
    }
}

/// Returns true for the white space of C's `isspace`.
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

/// The names of a list, each without leading white space.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| *b == b',')
        .map(|name| &name[name.iter().take_while(|b| is_space(**b)).count()..])
        .filter(|name| !name.is_empty())
}

fn jar<'a>(ctx: &'a mut Ctx<'_>) -> &'a mut Jar {
    ctx.task.keep("cookie", 0)
}

fn regex<'a>(ctx: &Ctx<'a>, args: &[Value]) -> Option<&'a crate::regex::Regex> {
    args.regex(0).map(|number| ctx.instance.regex(number))
}

fn format_date(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (Some(now), Some(delta)) = (args.real(0), args.real(1)) else {
        return Ok(Value::String(None));
    };
    let date = HttpDate::new((now + delta).max(0.0) as u64);
    Ok(owned(date.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(header: &'static str) -> Jar {
        let mut jar = Jar::default();
        jar.parse(&Bytes::from_static(header.as_bytes()));
        jar
    }

    fn text(jar: &Jar) -> String {
        String::from_utf8_lossy(&jar.write()).into_owned()
    }

    // Results of Varnish 7.1.1 for these headers.
    #[test]
    fn a_header_is_taken_apart_as_varnish_does() {
        let jar = parsed("a=1; b = 2 ;c=;d; e=5;=6; a=7;  f=x=y; G=8;g=9;h");
        assert_eq!(text(&jar), "a=7; b = 2 ; d; e=5; f=x=y; G=8; g=9;");
        assert_eq!(jar.get(b"b ").map(|v| &v[..]), Some(&b" 2 "[..]));
        assert_eq!(jar.get(b"c"), None);
    }

    #[test]
    fn a_new_value_stays_where_the_old_one_was() {
        let mut jar = parsed("a=1;b=2");
        jar.set(Bytes::from_static(b"a"), Bytes::from_static(b"3"));
        assert_eq!(text(&jar), "a=3; b=2;");
        jar.retain(|name| name != b"a");
        jar.set(Bytes::from_static(b"a"), Bytes::from_static(b"4"));
        assert_eq!(text(&jar), "b=2; a=4;");
    }

    #[test]
    fn empty_names_and_values_are_not_set() {
        let mut jar = parsed("a=1");
        jar.set(Bytes::new(), Bytes::from_static(b"x"));
        jar.set(Bytes::from_static(b"a"), Bytes::new());
        assert_eq!(text(&jar), "a=1;");
    }

    #[test]
    fn names_of_a_list_lose_the_blanks_before_them_only() {
        let list: Vec<&[u8]> = names(b"a, c ,,\td").collect();
        assert_eq!(list, [&b"a"[..], b"c ", b"d"]);
    }

    proptest! {
        #[test]
        fn what_was_written_reads_the_same(header in "[a-c=; \\t]{0,40}") {
            let mut jar = Jar::default();
            jar.parse(&Bytes::from(header));
            let written = Bytes::from(jar.write());
            let mut again = Jar::default();
            again.parse(&written);
            prop_assert_eq!(Bytes::from(again.write()), written);
        }

        #[test]
        fn any_bytes_are_taken(header in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut jar = Jar::default();
            jar.parse(&Bytes::from(header));
            jar.write();
        }
    }
}
