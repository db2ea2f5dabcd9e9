//! larder.toml(5): every table and key, as the reference page has them.

use roff::{Inline, Roff, bold, italic, roman};
use tools::{Section, SettingsReference};

use crate::document::{BOOK, Edition};

/// Makes the page.
pub(crate) fn page(settings: &SettingsReference, edition: Edition<'_>) -> String {
    let mut page = Roff::new();
    page.control("TH", ["larder.toml", "5", edition.date, edition.source, BOOK]);
    page.control("SH", ["NAME"]);
    page.text([roman("larder.toml - what larder(1) serves, from where, and by which rules")]);
    page.control("SH", ["SYNOPSIS"]).text([bold("/etc/larder/larder.toml")]);
    page.control("SH", ["DESCRIPTION"]).text(marked(&settings.introduction));
    for section in &settings.sections {
        add(&mut page, section);
    }
    page.control("SH", ["FILES"]).control("TP", []);
    page.text([bold("/etc/larder/larder.toml")]);
    page.text([roman("The file that is read where no other is named.")]);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("larder"), roman("(1), "), bold("larder-check"), roman("(1), ")]);
    page.text([bold("larder-preset"), roman("(1), "), bold("larder-reload"), roman("(1)")]);
    page.to_roff()
}

fn add(page: &mut Roff, section: &Section) {
    let title = if section.title.is_empty() { "TOP OF THE FILE" } else { &section.title };
    page.control("SH", [title]).text(marked(&section.about));
    for key in &section.keys {
        page.control("TP", []);
        page.text([bold(&key.name), roman(" = "), italic(key.takes.replace('`', ""))]);
        page.text(marked(&key.about));
        let mut default = vec![roman("Default: ")];
        default.extend(marked(&key.default));
        default.push(roman("."));
        page.control("br", []).text(default);
    }
}

/// Turns the code of Markdown, the only mark that the tables have, into bold text.
fn marked(text: &str) -> Vec<Inline> {
    let joined = text.trim_end().replace('\n', " ");
    let parts = joined.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { roman(part) } else { bold(part) }).collect()
}
