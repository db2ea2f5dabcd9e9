//! A configuration's sites in full, for people: presets applied, defaults filled in, every rule in
//! the order in which it decides, which is that of the rows.

use policy::rules::Profile;

use crate::model::{Config, SiteConfig};
use crate::page::Page;
use crate::parse::{SCOPE_ROWS, SETTINGS_ROWS};
use crate::rows;

/// One of its sites in full, as text for others than the file's owner: what requests to origins are
/// given in header fields, which may be secrets, is left out.
pub fn show_site(config: &Config, site: &SiteConfig) -> String {
    self::site(config, site, true)
}

/// Every site of `config` in full, as text.
pub fn show(config: &Config) -> String {
    let sites: Vec<String> =
        config.sites.iter().map(|site| self::site(config, site, false)).collect();
    sites.join("\n")
}

fn site(config: &Config, site: &SiteConfig, discreet: bool) -> String {
    let rules = &site.rules;
    let mut page = Page { config, site, discreet, indent: 0, text: String::new() };
    page.line("site", site.hosts.join(", "));
    page.indent = 2;
    page.line(
        "presets",
        if site.presets.is_empty() { "none".into() } else { site.presets.join(", ") },
    );
    page.line("profile", if rules.profile == Profile::Safe { "safe" } else { "rfc" });
    page.list("trusted proxies", &rules.trusted_proxies);
    for (at, route) in rules.routes.iter().enumerate() {
        page.indent = 2;
        page.line(&format!("route {}", at + 1), &route.name);
        page.indent = 4;
        rows::show(&mut page, SCOPE_ROWS, route);
        rows::show(&mut page, SETTINGS_ROWS, &route.settings);
    }
    page.indent = 2;
    page.line(if rules.routes.is_empty() { "every request" } else { "other requests" }, "");
    page.indent = 4;
    rows::show(&mut page, SETTINGS_ROWS, &rules.settings);
    page.text
}
