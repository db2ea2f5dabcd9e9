//! The reader: typed access to a TOML document. It goes on after a fault, so that one run reports
//! all.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use base::units;
use policy::SettingLocation;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Severity, SourceText};
use crate::keys::{Key, Section};
use crate::model::{self, NamedHost, NamedPath, PlacedPath};
use crate::origin_table::Origins;
use crate::suggestions;

/// A range of the text, in bytes.
pub(crate) type TextRange = Range<usize>;

/// Longest duration: a hundred years. Sums of a few of them are far from overflow.
const DURATION_MAX_MS: u64 = 100 * 365 * 24 * 3_600_000;

/// Reads values and collects diagnostics.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) source: Arc<SourceText>,
    /// The section of every kind of table, for help with a key in the wrong one.
    top: &'static Section,
    pub(crate) found: Vec<Diagnostic>,
    /// Settings that need a disk cache.
    pub(crate) disk_uses: Vec<TextRange>,
    /// Directories in settings.
    pub(crate) folders: Vec<NamedPath>,
    /// Sockets of origins.
    pub(crate) sockets: Vec<NamedPath>,
    /// Servers of origins with a host name.
    pub(crate) hosts: Vec<NamedHost>,
    /// Origins.
    pub(crate) origins: Origins,
    /// The preset that is read, if it is one.
    preset: Option<&'static str>,
    /// A further file, whose spans start behind this byte.
    further: Option<(usize, Arc<SourceText>)>,
    /// More comes from another file, which is not read now: a missing key may be there.
    pub(crate) is_partial: bool,
}

/// A table of a known kind.
#[derive(Clone, Debug)]
pub(crate) struct TomlTable<'a> {
    section: &'static Section,
    map: &'a DeTable<'a>,
    pub(crate) span: TextRange,
}

/// A value: of a key, or an element of a key's list.
#[derive(Clone, Debug)]
pub(crate) struct SettingValue<'a> {
    /// The key's name.
    pub(crate) name: &'a str,
    /// Accepted values, for messages.
    takes: &'static str,
    pub(crate) value: &'a DeValue<'a>,
    pub(crate) span: TextRange,
    /// The table that the key stands in.
    pub(crate) table: TomlTable<'a>,
}

impl<'a> TomlTable<'a> {
    /// A whole document.
    pub(crate) fn whole(document: &'a Spanned<DeTable<'a>>, section: &'static Section) -> Self {
        Self { section, map: document.get_ref(), span: document.span() }
    }

    /// The value of `name`, which must be in the section's table of keys.
    pub(crate) fn item(&self, name: &'static str) -> Option<SettingValue<'a>> {
        debug_assert!(
            self.section.key(name).is_some(),
            "a key that is read is in the table: {name}"
        );
        self.known(name)
    }

    /// The value of `name`, if the section's table of keys has it.
    pub(crate) fn known(&self, name: &'static str) -> Option<SettingValue<'a>> {
        let value = self.map.get(name)?;
        let takes = self.section.key(name)?.takes;
        let table = self.clone();
        Some(SettingValue { name, takes, value: value.get_ref(), span: value.span(), table })
    }

    /// The keys in the table, each with its span.
    pub(crate) fn names(&self) -> Vec<(&'a str, TextRange)> {
        self.map.iter().map(|(name, _)| (name.get_ref().as_ref(), name.span())).collect()
    }
}

impl<'a> SettingValue<'a> {
    /// The elements of a list; another value counts as a list of one.
    pub(crate) fn each(&self) -> Vec<Self> {
        match self.value {
            DeValue::Array(array) => array.iter().map(|v| self.with(v)).collect(),
            _ => vec![self.clone()],
        }
    }

    /// Names and values of a table with free names, in the order of the file; `None` for other
    /// values.
    pub(crate) fn pairs(&self) -> Option<Vec<(&'a str, TextRange, Self)>> {
        let mut pairs: Vec<_> = self
            .value
            .as_table()?
            .iter()
            .map(|(name, value)| (name.get_ref().as_ref(), name.span(), self.with(value)))
            .collect();
        pairs.sort_by_key(|(_, span, _)| span.start);
        Some(pairs)
    }

    /// The value of `key` in a table; `None` for other values.
    pub(crate) fn key(&self, key: &str) -> Option<Self> {
        self.value.as_table()?.get(key).map(|value| self.with(value))
    }

    /// Returns true for `false`.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.value, DeValue::Boolean(false))
    }

    fn with(&self, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { value: value.get_ref(), span: value.span(), ..self.clone() }
    }
}

impl Reader {
    pub(crate) fn new(source: Arc<SourceText>, top: &'static Section) -> Self {
        Self {
            source,
            top,
            found: Vec::new(),
            disk_uses: Vec::new(),
            folders: Vec::new(),
            sockets: Vec::new(),
            hosts: Vec::new(),
            origins: Origins::default(),
            preset: None,
            further: None,
            is_partial: false,
        }
    }

    /// Adds a further file: spans from `behind` on are in it.
    pub(crate) fn continue_with_file(&mut self, behind: usize, source: Arc<SourceText>) {
        self.further = Some((behind, source));
    }

    /// Returns true if no further file was added.
    pub(crate) fn is_one_file(&self) -> bool {
        self.further.is_none()
    }

    /// The span of the bytes `part` of `text`, the value of `item`. With escapes in the value it is
    /// the span of the whole value.
    pub(crate) fn place_within(
        &self,
        item: &SettingValue<'_>,
        text: &str,
        part: &TextRange,
    ) -> TextRange {
        let (source, span) = self.located(&item.span);
        let written = source.text.get(span).unwrap_or_default();
        let (before, part) = (text.get(..part.start), text.get(part.clone()));
        let found = before.zip(part).and_then(|(before, part)| {
            let earlier = before.matches(part).count();
            let (at, _) = written.match_indices(part).nth(earlier)?;
            let from = item.span.start + at;
            Some(from..from + part.len())
        });
        found.unwrap_or_else(|| item.span.clone())
    }

    /// The file of a span, and the span in that file.
    fn located(&self, span: &TextRange) -> (&Arc<SourceText>, TextRange) {
        match &self.further {
            Some((behind, source)) if span.start >= *behind => {
                (source, span.start - behind..span.end.saturating_sub(*behind))
            }
            _ => (&self.source, span.clone()),
        }
    }

    /// The location of a span, for faults that show only in use.
    pub(crate) fn location(&self, span: &TextRange) -> model::ConfigLocation {
        let (file, span) = self.located(span);
        model::ConfigLocation { file: Arc::clone(file), span }
    }

    /// The span that [`Reader::location`] was made from.
    pub(crate) fn span_of(&self, place: &model::ConfigLocation) -> TextRange {
        match &self.further {
            Some((behind, source)) if Arc::ptr_eq(source, &place.file) => {
                place.span.start + behind..place.span.end + behind
            }
            _ => place.span.clone(),
        }
    }

    /// All diagnostics, in the order of the files, each with its own file.
    pub(crate) fn found_in_places(mut self) -> Vec<Diagnostic> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|d| d.span.as_ref().map(|span| span.start));
        for one in &mut found {
            let Some(span) = &one.span else { continue };
            let (file, span) = self.located(span);
            let related = one.related.take().map(|(also, label)| (self.located(&also), label));
            // A related location in another file cannot be shown.
            one.related = related.and_then(|((other, also), label)| {
                Arc::ptr_eq(other, file).then_some((also, label))
            });
            (one.file, one.span) = (Arc::clone(file), Some(span));
        }
        found
    }

    /// A reader of the file of the preset called `name`.
    pub(crate) fn of_preset(&self, source: Arc<SourceText>, name: &'static str) -> Self {
        Self { preset: Some(name), ..Self::new(source, self.top) }
    }

    /// The location of `span` in people's form, for explanations of decisions.
    pub(crate) fn place(&self, span: &TextRange) -> SettingLocation {
        let (source, span) = self.located(span);
        let before = source.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        match self.preset {
            Some(name) => format!("preset {name}: line {line}").into(),
            None => format!("{}:{line}", source.name).into(),
        }
    }

    fn report(
        &mut self,
        severity: Severity,
        span: Option<TextRange>,
        message: String,
    ) -> &mut Diagnostic {
        let file = Arc::clone(&self.source);
        self.found.push(Diagnostic { severity, message, span, related: None, help: None, file });
        self.found.last_mut().expect("just pushed")
    }

    /// The number of errors that were found.
    pub(crate) fn errors(&self) -> usize {
        self.found.iter().filter(|found| found.severity == Severity::Error).count()
    }

    /// Notes an error at `span`.
    pub(crate) fn error(&mut self, span: TextRange, message: impl Into<String>) -> &mut Diagnostic {
        self.report(Severity::Error, Some(span), message.into())
    }

    /// Notes a warning at `span`.
    pub(crate) fn warning(
        &mut self,
        span: TextRange,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.report(Severity::Warning, Some(span), message.into())
    }

    /// Notes an error without a location.
    pub(crate) fn error_nowhere(&mut self, message: impl Into<String>) -> &mut Diagnostic {
        self.report(Severity::Error, None, message.into())
    }

    /// The value of `result`, or an error at `item` with the key and the fault.
    pub(crate) fn check<T>(
        &mut self,
        item: &SettingValue<'_>,
        result: Result<T, impl fmt::Display>,
    ) -> Option<T> {
        result.map_err(|why| self.error(item.span.clone(), format!("`{}`: {why}", item.name))).ok()
    }

    /// The whole document as a table of kind `section`, its keys checked.
    pub(crate) fn document<'a>(
        &mut self,
        document: &'a Spanned<DeTable<'a>>,
        section: &'static Section,
    ) -> TomlTable<'a> {
        let table = TomlTable::whole(document, section);
        self.check_keys(&table);
        table
    }

    /// `item` as a table of kind `section`, its keys checked.
    pub(crate) fn table<'a>(
        &mut self,
        item: &SettingValue<'a>,
        section: &'static Section,
    ) -> Option<TomlTable<'a>> {
        let DeValue::Table(map) = item.value else {
            self.wrong_type(item);
            return None;
        };
        let table = TomlTable { section, map, span: item.span.clone() };
        self.check_keys(&table);
        Some(table)
    }

    /// The tables of a `[[list]]`, each of kind `section`.
    pub(crate) fn tables<'a>(
        &mut self,
        item: &SettingValue<'a>,
        section: &'static Section,
    ) -> Vec<TomlTable<'a>> {
        if !item.value.is_array() {
            self.wrong_type(item).help = Some(format!("write it as {}", section.title));
            return Vec::new();
        }
        item.each().iter().filter_map(|each| self.table(each, section)).collect()
    }

    /// Notes every key of `table` that its section lacks.
    pub(crate) fn check_keys(&mut self, table: &TomlTable<'_>) {
        let section = table.section;
        let keys = (section.keys)();
        for name in table.map.keys() {
            let (span, name) = (name.span(), name.get_ref().as_ref());
            if keys.iter().any(|key| key.name == name) {
                continue;
            }
            if let Some((_, instead)) = section.later.iter().find(|(later, _)| *later == name) {
                self.error(span, format!("this version does not have `{name}` yet")).help =
                    Some((*instead).to_owned());
                continue;
            }
            let help = self.help_for_unknown(table, name, &keys);
            self.error(span, format!("unknown key `{name}` {}", section.place())).help = Some(help);
        }
    }

    /// Notes that `item` is of the wrong type.
    pub(crate) fn wrong_type(&mut self, item: &SettingValue<'_>) -> &mut Diagnostic {
        let found = match item.value {
            DeValue::Integer(_) => "an integer",
            DeValue::Array(_) => "a list",
            DeValue::String(_) => "this string",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{}` takes {}, not {found}", item.name, item.takes);
        let port = item.value.as_integer().filter(|_| item.name == "listen");
        let found = self.error(item.span.clone(), message);
        found.help = port.map(|port| format!("did you mean \":{}\"?", port.as_str()));
        found
    }

    /// A string.
    pub(crate) fn text<'a>(&mut self, item: &SettingValue<'a>) -> Option<&'a str> {
        let text = item.value.as_str();
        if text.is_none() {
            self.wrong_type(item);
        }
        text
    }

    /// An owned string.
    pub(crate) fn string(&mut self, item: &SettingValue<'_>) -> Option<String> {
        self.text(item).map(str::to_owned)
    }

    /// An absolute path, and its location.
    pub(crate) fn path(&mut self, item: &SettingValue<'_>) -> Option<PlacedPath> {
        let text = self.text(item)?;
        if !text.starts_with('/') || text.contains('\0') {
            // A relative path would depend on the daemon's working directory.
            self.error(item.span.clone(), format!("`{}` takes an absolute path", item.name));
            return None;
        }
        Some(PlacedPath { path: text.into(), place: self.location(&item.span) })
    }

    /// An absolute path alone.
    pub(crate) fn bare_path(&mut self, item: &SettingValue<'_>) -> Option<PathBuf> {
        self.path(item).map(|file| file.path)
    }

    /// The strings of a list, or a single one.
    pub(crate) fn texts<'a>(
        &mut self,
        item: &SettingValue<'a>,
    ) -> Vec<(&'a str, SettingValue<'a>)> {
        item.each().into_iter().filter_map(|each| Some((self.text(&each)?, each))).collect()
    }

    /// Names and values of a table with free names, in the order of the file.
    pub(crate) fn pairs<'a>(
        &mut self,
        item: &SettingValue<'a>,
    ) -> Vec<(&'a str, TextRange, SettingValue<'a>)> {
        let pairs = item.pairs();
        if pairs.is_none() {
            self.wrong_type(item);
        }
        pairs.unwrap_or_default()
    }

    /// A boolean.
    pub(crate) fn boolean(&mut self, item: &SettingValue<'_>) -> Option<bool> {
        let value = item.value.as_bool();
        if value.is_none() {
            self.wrong_type(item);
        }
        value
    }

    /// A whole number of at least `least` and at most `most`.
    pub(crate) fn count(&mut self, item: &SettingValue<'_>, least: u64, most: u64) -> Option<u64> {
        let DeValue::Integer(integer) = item.value else {
            self.wrong_type(item);
            return None;
        };
        let value = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let value = value.filter(|v| (least..=most).contains(v));
        if value.is_none() {
            let range = match most {
                u64::MAX => format!("at least {least}"),
                _ => format!("from {least} to {most}"),
            };
            self.error(item.span.clone(), format!("`{}` must be {range}", item.name));
        }
        value
    }

    /// As [`Reader::count`], for 32 bits.
    pub(crate) fn count32(
        &mut self,
        item: &SettingValue<'_>,
        least: u32,
        most: u32,
    ) -> Option<u32> {
        self.count(item, u64::from(least), u64::from(most)).and_then(|v| v.try_into().ok())
    }

    /// A duration in milliseconds.
    pub(crate) fn duration(&mut self, item: &SettingValue<'_>) -> Option<u64> {
        let units = "durations need a unit: ms, s, m, h, d, w or y";
        let text = match item.value {
            DeValue::Integer(number) if number.as_str() == "0" => "0",
            DeValue::Integer(number) => {
                self.wrong_type(item).help = Some(format!("{units}; perhaps \"{number}s\""));
                return None;
            }
            _ => self.text(item)?,
        };
        let duration = units::parse_duration_ms(text).and_then(|ms| {
            if ms <= DURATION_MAX_MS { Ok(ms) } else { Err(units::Error::TooLarge) }
        });
        let problem = duration.err();
        let duration = self.check(item, duration);
        if let (Some(units::Error::Unit), Some(last)) = (problem, self.found.last_mut()) {
            let meant = units::duration_meant(text);
            last.help = Some(
                meant
                    .map_or_else(|| units.to_owned(), |meant| format!("did you mean \"{meant}\"?")),
            );
        }
        duration
    }

    /// A size in bytes.
    pub(crate) fn size(&mut self, item: &SettingValue<'_>) -> Option<u64> {
        let size = match item.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| units::Error::Number),
            _ => units::parse_size(self.text(item)?),
        };
        let problem = size.err();
        let size = self.check(item, size);
        if let (Some(units::Error::Unit), Some(last)) = (problem, self.found.last_mut()) {
            let meant = item.value.as_str().and_then(units::size_meant);
            last.help = Some(meant.map_or_else(
                || "units of size are KiB, MiB, GiB, TiB, and KB, MB, GB, TB".to_owned(),
                |meant| format!("did you mean \"{meant}\"?"),
            ));
        }
        size
    }

    /// One of a few keywords.
    pub(crate) fn word<T: Copy>(
        &mut self,
        item: &SettingValue<'_>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(item)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let close = suggestions::closest(text, words.iter().map(|(word, _)| *word));
            self.wrong_type(item).help = close.map(|word| format!("did you mean \"{word}\"?"));
        }
        found
    }

    /// Help for a key of `table` that its section lacks.
    fn help_for_unknown(&self, table: &TomlTable<'_>, name: &str, keys: &[Key]) -> String {
        let names = || keys.iter().map(|key| key.name);
        let has = |name: &str| keys.iter().any(|key| key.name == name);
        if has("set") && has("unset") {
            let value = table.map.iter().find(|(own, _)| own.get_ref() == name);
            let value = value.and_then(|(_, value)| value.get_ref().as_str()).unwrap_or("...");
            return format!("write `set = {{ {name} = \"{value}\" }}`, or `unset = \"{name}\"`");
        }
        if let Some(slip) = suggestions::slip(name, names()) {
            return format!("did you mean `{slip}`?");
        }
        let other = suggestions::of_others(name).iter().find(|own| has(own));
        if let Some(other) = other {
            return format!("it is called `{other}` here");
        }
        let of_another = suggestions::of_others(name).first().and_then(|own| self.elsewhere(own));
        let close =
            || suggestions::closest(name, names()).map(|close| format!("did you mean `{close}`?"));
        let all = || {
            format!("keys {} are {}", table.section.place(), names().collect::<Vec<_>>().join(", "))
        };
        self.elsewhere(name).or(of_another).or_else(close).unwrap_or_else(all)
    }

    /// The table in which a key called `name` would be right.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let all = self.top.all();
        let section = all.iter().find(|section| section.key(name).is_some())?;
        Some(format!("`{name}` stands {}", section.place()))
    }
}
