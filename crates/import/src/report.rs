//! The account of a translation: what has become of each directive.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::syntax::Directive;

/// Fate of a directive. The later ones outweigh the earlier where a directive has several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Nothing here needs it, for this reason.
    NotNeeded(String),
    /// Larder does this without a setting.
    Default(String),
    /// A setting says it. The text is a remark on what differs, and mostly empty.
    Carried(String),
    /// No setting says it.
    Left {
        /// The reason.
        why: String,
        /// The remedy.
        instead: String,
    },
}

/// A directive and its fate.
#[derive(Clone, Debug)]
pub struct Entry {
    /// `file:line` of the directive.
    pub location: String,
    /// Its column.
    pub column: u32,
    /// The directive in one line.
    pub line: String,
    /// Its fate.
    pub fate: Fate,
}

/// Fates of all directives, in their order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One entry for each directive.
    pub entries: Vec<Entry>,
    /// Warnings of `larder check` on the result.
    pub warnings: Vec<String>,
}

/// Numbers of directives by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Directives that settings say.
    pub carried: usize,
    /// Those that are the default.
    pub default: usize,
    /// Those that nothing needs.
    pub not_needed: usize,
    /// Those that no setting says.
    pub left: usize,
}

impl AnswerCounts {
    /// All directives.
    pub fn total(&self) -> usize {
        self.carried + self.default + self.not_needed + self.left
    }

    /// Share of those that are not left, in percent, rounded down.
    pub fn percent(&self) -> usize {
        match self.total() {
            0 => 100,
            total => (total - self.left) * 100 / total,
        }
    }
}

impl Report {
    /// The numbers.
    pub fn counts(&self) -> AnswerCounts {
        let mut counts = AnswerCounts::default();
        for entry in &self.entries {
            match entry.fate {
                Fate::Carried(_) => counts.carried += 1,
                Fate::Default(_) => counts.default += 1,
                Fate::NotNeeded(_) => counts.not_needed += 1,
                Fate::Left { .. } => counts.left += 1,
            }
        }
        counts
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut group = |title: &str, told: &dyn Fn(&Fate) -> Option<String>| {
            let lines = self.entries.iter().filter_map(|entry| Some((entry, told(&entry.fate)?)));
            let lines: Vec<_> = lines.collect();
            if lines.is_empty() {
                return;
            }
            _ = writeln!(text, "{title}:");
            for (at, (entry, told)) in lines.iter().enumerate() {
                _ = writeln!(text, "  {}  {}", entry.location, entry.line);
                // Lines with the same reason have it once, behind the last of them.
                if lines.get(at + 1).is_some_and(|(_, next)| next == told) {
                    continue;
                }
                for line in told.lines().filter(|line| !line.is_empty()) {
                    _ = writeln!(text, "      {line}");
                }
            }
            text.push('\n');
        };
        group("Not carried over", &|fate| match fate {
            Fate::Left { why, instead } if instead.is_empty() => Some(why.clone()),
            Fate::Left { why, instead } => Some(format!("{why}\n-> {instead}")),
            _ => None,
        });
        group("Carried over with a difference", &|fate| match fate {
            Fate::Carried(remark) if !remark.is_empty() => Some(remark.clone()),
            _ => None,
        });
        group("Default here", &|fate| match fate {
            Fate::Default(why) => Some(why.clone()),
            _ => None,
        });
        group("Not needed here", &|fate| match fate {
            Fate::NotNeeded(why) => Some(why.clone()),
            _ => None,
        });
        for warning in &self.warnings {
            _ = writeln!(text, "{warning}\n");
        }
        let counts = self.counts();
        let AnswerCounts { carried, default, not_needed, left } = counts;
        _ = writeln!(
            text,
            "{} directives: {carried} carried over, {default} default here, {not_needed} not \
             needed, {left} not carried over ({}% answered)",
            counts.total(),
            counts.percent(),
        );
        text
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let entry = |entry: &Entry| {
            let (fate, text, instead) = match &entry.fate {
                Fate::Carried(remark) => ("carried", remark, ""),
                Fate::Default(why) => ("default", why, ""),
                Fate::NotNeeded(why) => ("not-needed", why, ""),
                Fate::Left { why, instead } => ("left", why, instead.as_str()),
            };
            json!({
                "place": entry.location,
                "column": entry.column,
                "directive": entry.line,
                "fate": fate,
                "why": text,
                "instead": instead,
            })
        };
        let counts = self.counts();
        json!({
            "directives": self.entries.iter().map(entry).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "counts": {
                "total": counts.total(),
                "carried": counts.carried,
                "default": counts.default,
                "not-needed": counts.not_needed,
                "left": counts.left,
                "percent": counts.percent(),
            },
        })
    }
}

/// The fates of directives while they are decided, by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Vec<Option<Fate>>);

impl Ledger {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    /// Decides about a directive. What was decided before stays if it weighs more.
    pub(crate) fn settle(&mut self, id: usize, fate: Fate) {
        let Some(own) = self.0.get_mut(id) else { return };
        if own.as_ref().is_none_or(|before| weight(before) <= weight(&fate)) {
            *own = Some(fate);
        }
    }

    pub(crate) fn carried(&mut self, id: usize, remark: &str) {
        let known = self.0.get(id).and_then(Option::as_ref);
        let has_remark = matches!(known, Some(Fate::Carried(known)) if !known.is_empty());
        if !has_remark {
            self.settle(id, Fate::Carried(remark.to_owned()));
        }
    }

    pub(crate) fn default(&mut self, id: usize, why: &str) {
        self.settle(id, Fate::Default(why.to_owned()));
    }

    pub(crate) fn not_needed(&mut self, id: usize, why: &str) {
        self.settle(id, Fate::NotNeeded(why.to_owned()));
    }

    pub(crate) fn left(&mut self, id: usize, why: &str, instead: &str) {
        self.settle(id, Fate::Left { why: why.to_owned(), instead: instead.to_owned() });
    }

    pub(crate) fn fate(&self, id: usize) -> Option<&Fate> {
        self.0.get(id).and_then(Option::as_ref)
    }

    pub(crate) fn is_open(&self, id: usize) -> bool {
        self.fate(id).is_none()
    }

    /// The entry of each directive; those without a decision are left.
    pub(crate) fn entries(&self, directives: &[Directive]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for directive in directives {
            directive.visit(&mut |directive| {
                let unknown = || Fate::Left {
                    why: format!("`{}` is not a directive that is known here", directive.name),
                    instead: String::new(),
                };
                entries.push(Entry {
                    location: directive.location(),
                    column: directive.place.column,
                    line: one_line(&directive.line()),
                    fate: self.fate(directive.id).cloned().unwrap_or_else(unknown),
                });
            });
        }
        entries
    }
}

fn weight(fate: &Fate) -> u8 {
    match fate {
        Fate::NotNeeded(_) => 0,
        Fate::Default(_) => 1,
        Fate::Carried(_) => 2,
        Fate::Left { .. } => 3,
    }
}

/// A text in one line of a comment or a report, and not too long.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 160;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(clean).collect();
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((at, _)) => format!("{} ...", &line[..at]),
    }
}
