//! The `larder.toml` that is being made: tables and their keys, each with the directives that it
//! comes from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Beginning of the file, behind the name of the other server.
const HEAD: &str = "by `larder import`. Above each setting stands the line that it comes from.";

/// Value of a key, in TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TomlValue {
    /// As it is written.
    Plain(String),
    /// A list, to which other directives may add.
    List(Vec<String>),
}

/// A key of a table, with dots where it belongs to a table within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: TomlValue,
    /// Numbers of the directives.
    pub(crate) from: Vec<usize>,
}

/// The keys of a table, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings(pub(crate) Vec<Setting>);

impl Settings {
    /// Sets a key to what is written so, in place of what it was.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<String>, from: &[usize]) {
        self.set(key, TomlValue::Plain(value.into()), from);
    }

    /// Sets a key to a text.
    pub(crate) fn text(&mut self, key: &str, text: &str, from: &[usize]) {
        self.put(key, quote(text), from);
    }

    fn set(&mut self, key: &str, value: TomlValue, from: &[usize]) {
        match self.0.iter_mut().find(|setting| setting.key == key) {
            Some(setting) => {
                setting.value = value;
                add_new(&mut setting.from, from);
            }
            None => self.0.push(Setting { key: key.to_owned(), value, from: from.to_vec() }),
        }
    }

    /// Adds texts to a list.
    pub(crate) fn add<'a>(
        &mut self,
        key: &str,
        texts: impl IntoIterator<Item = &'a str>,
        from: &[usize],
    ) {
        let texts = texts.into_iter().map(quote);
        self.add_written(key, texts, from);
    }

    /// Adds values to a list, as they are written.
    pub(crate) fn add_written(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = String>,
        from: &[usize],
    ) {
        let at = self.0.iter().position(|setting| setting.key == key).unwrap_or_else(|| {
            let value = TomlValue::List(Vec::new());
            self.0.push(Setting { key: key.to_owned(), value, from: Vec::new() });
            self.0.len() - 1
        });
        add_new(&mut self.0[at].from, from);
        if let TomlValue::List(list) = &mut self.0[at].value {
            add_new(list, &values.into_iter().collect::<Vec<_>>());
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Setting> {
        self.0.iter_mut().find(|setting| setting.key == key)
    }

    /// A list of texts.
    pub(crate) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> TomlValue {
        TomlValue::List(texts.into_iter().map(quote).collect())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Tells whether there is the key, or one of a table that it names.
    pub(crate) fn has_any(&self, key: &str) -> bool {
        self.0.iter().any(|setting| first_part(&setting.key) == key)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Setting> {
        let at = self.0.iter().position(|setting| setting.key == key)?;
        Some(self.0.remove(at))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn add_new<T: Clone + PartialEq>(to: &mut Vec<T>, new: &[T]) {
    for one in new {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}

/// The name before the first dot.
pub(crate) fn first_part(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

/// A table of a list: an origin, a site or a route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) settings: Settings,
    /// Directives that the table itself stands for.
    pub(crate) from: Vec<usize>,
}

/// A site and its routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteBlock {
    pub(crate) site: Block,
    pub(crate) routes: Vec<Block>,
}

/// The whole file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    /// The server whose configuration is translated.
    pub(crate) server: &'static str,
    pub(crate) top: Settings,
    /// Tables at the top, by name.
    pub(crate) tables: BTreeMap<&'static str, Settings>,
    pub(crate) origins: Vec<Block>,
    pub(crate) sites: Vec<SiteBlock>,
}

/// One line of the file, by the table and key that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenLine {
    pub(crate) text: String,
    pub(crate) table: TablePlace,
    /// The setting's number in the table; `None` for the header of a table.
    pub(crate) setting: Option<usize>,
}

/// A table of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TablePlace {
    Top,
    Named(&'static str),
    Origin(usize),
    Site(usize),
    Route { site: usize, route: usize },
}

impl Document {
    /// The settings of a table.
    pub(crate) fn settings_mut(&mut self, place: TablePlace) -> Option<&mut Settings> {
        Some(match place {
            TablePlace::Top => &mut self.top,
            TablePlace::Named(name) => self.tables.get_mut(name)?,
            TablePlace::Origin(at) => &mut self.origins.get_mut(at)?.settings,
            TablePlace::Site(at) => &mut self.sites.get_mut(at)?.site.settings,
            TablePlace::Route { site, route } => {
                &mut self.sites.get_mut(site)?.routes.get_mut(route)?.settings
            }
        })
    }

    /// Takes a whole table away. Returns the directives that it and its settings came from.
    pub(crate) fn remove_table(&mut self, place: TablePlace) -> Vec<usize> {
        let blocks = match place {
            TablePlace::Top => return Vec::new(),
            TablePlace::Named(name) => {
                let settings = self.tables.remove(name).unwrap_or_default();
                vec![Block { settings, from: Vec::new() }]
            }
            TablePlace::Origin(at) => vec![self.origins.remove(at)],
            TablePlace::Site(at) => {
                let SiteBlock { site, mut routes } = self.sites.remove(at);
                routes.push(site);
                routes
            }
            TablePlace::Route { site, route } => vec![self.sites[site].routes.remove(route)],
        };
        let own = blocks.iter().flat_map(|block| {
            let settings = block.settings.0.iter().flat_map(|setting| &setting.from);
            settings.chain(&block.from)
        });
        own.copied().collect()
    }

    /// The tables in the order of the file.
    fn places(&self) -> Vec<TablePlace> {
        let mut places = vec![TablePlace::Top];
        places.extend(self.tables.keys().map(|name| TablePlace::Named(name)));
        places.extend((0..self.origins.len()).map(TablePlace::Origin));
        for (site, block) in self.sites.iter().enumerate() {
            places.push(TablePlace::Site(site));
            let routes = 0..block.routes.len();
            places.extend(routes.map(|route| TablePlace::Route { site, route }));
        }
        places
    }

    /// All settings with the tables that they are in.
    pub(crate) fn written_from(&self) -> Vec<(TablePlace, &[usize], Option<&Setting>)> {
        let mut all: Vec<(TablePlace, &[usize], Option<&Setting>)> = Vec::new();
        for place in self.places() {
            let (settings, from) = self.table(place);
            all.push((place, from, None));
            let own = settings.0.iter();
            all.extend(own.map(|setting| (place, setting.from.as_slice(), Some(setting))));
        }
        all
    }

    fn table(&self, place: TablePlace) -> (&Settings, &[usize]) {
        match place {
            TablePlace::Top => (&self.top, &[]),
            TablePlace::Named(name) => (&self.tables[name], &[]),
            TablePlace::Origin(at) => (&self.origins[at].settings, &self.origins[at].from),
            TablePlace::Site(at) => {
                let site = &self.sites[at].site;
                (&site.settings, &site.from)
            }
            TablePlace::Route { site, route } => {
                let route = &self.sites[site].routes[route];
                (&route.settings, &route.from)
            }
        }
    }

    /// The lines of the file; `told` has the comment for a directive.
    pub(crate) fn lines(&self, told: &dyn Fn(usize) -> String) -> Vec<WrittenLine> {
        let head = format!("# Translated from a configuration of {} {HEAD}", self.server);
        let mut lines = vec![WrittenLine { text: head, table: TablePlace::Top, setting: None }];
        for place in self.places() {
            let (settings, from) = self.table(place);
            let mut push = |text: String, setting| {
                lines.push(WrittenLine { text, table: place, setting });
            };
            if place == TablePlace::Top && settings.is_empty() {
                continue;
            }
            push(String::new(), None);
            from.iter().for_each(|id| push(format!("# {}", told(*id)), None));
            match place {
                TablePlace::Top => {}
                TablePlace::Named(name) => push(format!("[{name}]"), None),
                TablePlace::Origin(_) => push("[[origin]]".to_owned(), None),
                TablePlace::Site(_) => push("[[site]]".to_owned(), None),
                TablePlace::Route { .. } => push("[[site.route]]".to_owned(), None),
            }
            for (at, Setting { key, value, from }) in settings.0.iter().enumerate() {
                for id in from {
                    push(format!("# {}", told(*id)), Some(at));
                }
                push(format!("{key} = {}", written(value)), Some(at));
            }
        }
        lines
    }
}

/// A value in TOML: a list of one as the one.
pub(crate) fn written(value: &TomlValue) -> String {
    match value {
        TomlValue::Plain(text) => text.clone(),
        TomlValue::List(list) if list.len() == 1 => list[0].clone(),
        TomlValue::List(list) => format!("[{}]", list.join(", ")),
    }
}

/// A text in TOML: without escapes where it can be.
pub(crate) fn quote(text: &str) -> String {
    let is_literal = text.contains('\\') && !text.contains('\'');
    if is_literal && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A key in TOML.
pub(crate) fn quote_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quote(key) }
}
