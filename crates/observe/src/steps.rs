//! Steps of a VCL program in a record: one line for each subroutine that ran, and one for each line
//! that it logged.

use std::io::{self, Write};

use crate::text::{Printable, json_text};

/// A line of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VclTraceLine<'a> {
    /// A subroutine that ran.
    Ran {
        /// The subroutine's name without `vcl_`.
        sub: &'a [u8],
        /// File and line of the `return`; `-` if unknown.
        at: &'a [u8],
        /// The returned action.
        verb: &'a [u8],
    },
    /// A line logged by the subroutine that comes next.
    Logged {
        /// The tag, as in `varnishlog`: `VCL_Log`, `VCL_Error`, `FetchError`, `VCL_acl`,
        /// `Timestamp`, `Debug`.
        tag: &'a [u8],
        /// The text.
        text: &'a [u8],
    },
}

impl<'a> VclTraceLine<'a> {
    fn of(line: &'a [u8]) -> Self {
        let first = memchr::memchr(b' ', line).unwrap_or(line.len());
        let (word, rest) = line.split_at(first);
        let rest = rest.get(1..).unwrap_or_default();
        // File names may contain blanks. A line that was cut off is kept as it is.
        match memchr::memrchr(b' ', rest) {
            Some(last) if word.first().is_some_and(u8::is_ascii_lowercase) => {
                Self::Ran { sub: word, at: &rest[..last], verb: &rest[last + 1..] }
            }
            _ => Self::Logged { tag: word, text: rest },
        }
    }

    /// Returns the label and the text of a line of `larder log --detail`.
    pub(crate) fn line(self) -> (String, String) {
        match self {
            Self::Ran { sub, at, verb } => {
                let (sub, at, verb) = (Printable(sub), Printable(at), Printable(verb));
                ("vcl".to_owned(), format!("{sub}  {at}  {verb}"))
            }
            Self::Logged { tag, text } => (Printable(tag).to_string(), Printable(text).to_string()),
        }
    }
}

/// Iterates over the trace lines of [`Record::vcl`](crate::Record::vcl).
pub fn steps(vcl: &[u8]) -> impl Iterator<Item = VclTraceLine<'_>> {
    lines(vcl).map(VclTraceLine::of)
}

/// Iterates over the unparsed lines.
pub(crate) fn lines(vcl: &[u8]) -> impl Iterator<Item = &[u8]> {
    vcl.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Appends the trace as a JSON member, unless it is empty.
pub(crate) fn json(vcl: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let each = steps(vcl).map(|step| match step {
        VclTraceLine::Ran { sub, at, verb } => vec![("sub", sub), ("at", at), ("return", verb)],
        VclTraceLine::Logged { tag, text } => vec![("tag", tag), ("text", text)],
    });
    list("vcl", each, out, |members, out| {
        out.push(b'{');
        for (number, (name, value)) in members.into_iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, "{comma}\"{name}\":")?;
            string(value, out);
        }
        out.push(b'}');
        Ok(())
    })
}

/// Appends the texts of `std.log` as a JSON member, unless there are none.
pub(crate) fn json_of_log(vcl: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let texts = steps(vcl).filter_map(|step| match step {
        VclTraceLine::Logged { tag: b"VCL_Log", text } => Some(text),
        _ => None,
    });
    list("vcl_log", texts, out, |text, out| {
        string(text, out);
        Ok(())
    })
}

fn list<T>(
    name: &str,
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(());
    }
    write!(out, ",\"{name}\":")?;
    let mut before = b'[';
    for item in items {
        out.push(before);
        write(item, out)?;
        before = b',';
    }
    out.push(b']');
    Ok(())
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    json_text(out, text);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const VCL: &[u8] = b"VCL_Log a \"b\" c\nrecv my file.vcl:14 hash\nhash - fail\nVCL_Err";

    #[test]
    fn lines_are_taken_apart_and_what_was_cut_off_is_no_subroutine() {
        let found: Vec<_> = steps(VCL).collect();
        assert_eq!(
            found,
            [
                VclTraceLine::Logged { tag: b"VCL_Log", text: b"a \"b\" c" },
                VclTraceLine::Ran { sub: b"recv", at: b"my file.vcl:14", verb: b"hash" },
                VclTraceLine::Ran { sub: b"hash", at: b"-", verb: b"fail" },
                VclTraceLine::Logged { tag: b"VCL_Err", text: b"" },
            ]
        );
        assert_eq!(steps(b"").next(), None);
        assert_eq!(steps(b"recv").next(), Some(VclTraceLine::Logged { tag: b"recv", text: b"" }));
    }

    #[test]
    fn json_has_each_line_and_nothing_where_there_is_none() {
        let of = |show: fn(&[u8], &mut Vec<u8>) -> io::Result<()>, vcl: &[u8]| {
            let mut out = b"{\"a\":0".to_vec();
            show(vcl, &mut out).expect("memory can be written to");
            out.push(b'}');
            serde_json::from_slice::<serde_json::Value>(&out).expect("JSON")
        };
        let all = of(json, VCL);
        assert_eq!(all["vcl"][0], serde_json::json!({"tag": "VCL_Log", "text": "a \"b\" c"}));
        let ran = serde_json::json!({"sub": "recv", "at": "my file.vcl:14", "return": "hash"});
        assert_eq!(all["vcl"][1], ran);
        assert_eq!(of(json_of_log, VCL)["vcl_log"], serde_json::json!(["a \"b\" c"]));
        assert_eq!(of(json, b"").get("vcl"), None);
        assert_eq!(of(json_of_log, b"recv a:1 hash").get("vcl_log"), None);
    }
}
