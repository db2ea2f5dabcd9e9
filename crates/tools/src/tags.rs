//! `-i` and `-x`: which lines of `larder log --detail` are shown, by their names or by those that
//! `varnishlog` has for the same.

/// Tags of `varnishlog`, each with the names of the lines that tell the same here.
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

/// Selects the lines that are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags {
    /// None of them means all.
    shown: Vec<String>,
    hidden: Vec<String>,
}

impl Tags {
    /// Lines called one of `shown`, or any where there are none, but for those called one of
    /// `hidden`.
    pub(crate) fn new(shown: &[String], hidden: &[String]) -> Self {
        Self { shown: names(shown), hidden: names(hidden) }
    }

    /// `detail` without the lines that are not shown. The first line of a transaction stays.
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

/// The name that a line begins with.
fn name(line: &str) -> &str {
    // `caused by` is the only one of two words.
    match line.starts_with("caused by ") {
        true => "caused by",
        false => line.split(' ').next().unwrap_or_default(),
    }
}

/// The names of lines behind `words`.
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
