//! Tags of `-i` and `-x`, which select lines of `larder log --detail` by their names or by
//! `varnishlog`'s tags.

/// Tags of `varnishlog`, with the names of the equivalent lines.
const TAGS: &[(&str, &[&str])] = &[
    ("Begin", &["client", "caused by", "xid"]),
    ("ReqStart", &["client"]),
    ("ReqMethod", &["request"]),
    ("ReqURL", &["request"]),
    ("ReqProtocol", &["client"]),
    ("ReqHeader", &["req", "field"]),
    ("ReqAcct", &["client", "response"]),
    ("VCL_call", &["vcl"]),
    ("VCL_return", &["vcl"]),
    ("VCL_trace", &["vcl"]),
    ("Hit", &["cache"]),
    ("HitMiss", &["cache"]),
    ("HitPass", &["cache"]),
    ("BereqMethod", &["bereq"]),
    ("BereqURL", &["bereq"]),
    ("BereqHeader", &["bereq"]),
    ("BackendOpen", &["origin"]),
    ("BackendReuse", &["origin"]),
    ("BerespStatus", &["beresp", "origin"]),
    ("BerespHeader", &["beresp"]),
    ("RespStatus", &["response"]),
    ("RespHeader", &["resp"]),
    ("Timestamp", &["time", "Timestamp"]),
];

/// A selection of lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags {
    /// The names of the shown lines; empty for all.
    shown: Vec<String>,
    hidden: Vec<String>,
}

impl Tags {
    /// Selects the lines called one of `shown` (all if it is empty), except those called one of
    /// `hidden`.
    pub(crate) fn new(shown: &[String], hidden: &[String]) -> Self {
        Self { shown: names(shown), hidden: names(hidden) }
    }

    /// The lines of `detail` that are selected. The first line of a transaction always is.
    pub(crate) fn of<'a>(&'a self, detail: &'a str) -> impl Iterator<Item = &'a str> {
        detail.split_inclusive('\n').filter(|line| match line.strip_prefix("-   ") {
            Some(rest) => self.shows(name(rest)),
            None => true,
        })
    }

    fn shows(&self, name: &str) -> bool {
        let is = |own: &String| own.eq_ignore_ascii_case(name);
        (self.shown.is_empty() || self.shown.iter().any(is)) && !self.hidden.iter().any(is)
    }
}

/// The name at the beginning of a line.
fn name(line: &str) -> &str {
    // `caused by` is the only name of two words.
    match line.starts_with("caused by ") {
        true => "caused by",
        false => line.split(' ').next().unwrap_or_default(),
    }
}

/// The names of the lines that `words` select.
fn names(words: &[String]) -> Vec<String> {
    let of = |word: &String| {
        let tag = TAGS.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(word));
        match tag {
            Some((_, lines)) => lines.iter().map(|line| (*line).to_owned()).collect(),
            None => vec![word.clone()],
        }
    };
    words.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETAIL: &str = "* 1  MISS 200\n-   request    GET /\n-   caused by  request 2\n\
                          -   req        Host: a\n-   VCL_Log    a\n-   time       1\n\n";

    fn shown(include: &[&str], exclude: &[&str]) -> String {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Tags::new(&own(include), &own(exclude)).of(DETAIL).collect()
    }

    #[test]
    fn lines_are_chosen_by_their_names_and_by_those_of_varnishlog() {
        assert_eq!(shown(&[], &[]), DETAIL);
        assert_eq!(
            shown(&["ReqHeader", "vcl_log"], &[]),
            "* 1  MISS 200\n-   req        Host: a\n-   VCL_Log    a\n\n"
        );
        assert_eq!(
            shown(&["Begin", "time"], &["Timestamp"]),
            "* 1  MISS 200\n-   caused by  request 2\n\n"
        );
        assert!(!shown(&[], &["request"]).contains("GET"));
    }
}
