//! The site listing: a configuration's sites in full, for people: presets applied, defaults filled
//! in, every rule in the order in which it decides, which is that of the rows.

use crate::keys::Key;
use crate::model::{Config, SiteConfig};
use crate::page::{SettingsPage, word};
use crate::parse::{PROFILES, SCOPE_ROWS, SETTINGS_ROWS, TOP, TOP_ROWS};
use crate::rows;

/// Shows one site in full, for readers other than the file's owner: fields added to requests for
/// origins are left out, since they may be secrets.
pub fn show_site(config: &Config, site: &SiteConfig) -> String {
    self::site(config, site, true)
}

/// Shows every site of `config` in full.
pub fn show(config: &Config) -> String {
    let sites: Vec<String> =
        config.sites.iter().map(|site| self::site(config, site, false)).collect();
    sites.join("\n")
}

/// A setting of the whole daemon in force.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key, behind those of its tables: `memory.size`.
    pub name: String,
    /// The key's row.
    pub key: Key,
    /// The value.
    pub value: String,
}

/// The settings of the whole daemon.
pub fn in_force(config: &Config) -> Vec<Setting> {
    let site = SiteConfig::default();
    let mut page = SettingsPage::new(config, &site, false);
    rows::show(&mut page, TOP_ROWS, config);
    let lines = page.lines.into_iter();
    lines
        .filter_map(|line| {
            let key = TOP.within(&line.name)?;
            Some(Setting { name: line.name, key, value: line.value })
        })
        .collect()
}

fn site(config: &Config, site: &SiteConfig, discreet: bool) -> String {
    let rules = &site.rules;
    let mut page = SettingsPage::new(config, site, discreet);
    page.line("site", site.hosts.join(", "));
    page.indent = 2;
    page.line(
        "presets",
        if site.presets.is_empty() { "none".into() } else { site.presets.join(", ") },
    );
    page.list("mode", site.observes.then_some("observe: every request goes to the origin"));
    page.line("profile", word(&PROFILES, &rules.profile));
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
    page.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of decision: admission, removal, passing, storing.
    #[test]
    fn a_site_is_shown_in_the_order_in_which_it_decides() {
        let text = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\nupgrade = []\n\
                    deny = \"192.0.2.1\"\nresponse_headers = { unset = \"X-A\" }\n\
                    cache = { ttl = { 200 = \"1m\" } }\nquery = { sort = true }\n\
                    cookies = { strip = \"a\", key = \"b\" }\nbypass = { path = \"/x\" }\n\
                    [[site.route]]\npath = \"/old\"\nredirect = \"/new\"\n\
                    [[site.route]]\npath = \"/files/*\"\nfiles = \"/srv\"\n";
        let (config, _) = crate::load_str(text, "larder.toml").expect("a configuration");
        insta::assert_snapshot!(show(&config), @r"
        site               *
          presets            none
          profile            safe
          route 1            /old
            path               /old
            deny               192.0.2.1/32
            answers            302 to /new
          route 2            /files/*
            path               /files/*
            deny               192.0.2.1/32
            files              /srv, without the /files before it
            to the client      without X-A
          other requests
            deny               192.0.2.1/32
            origin             http://127.0.0.1:1
            passed             methods other than GET and HEAD, requests with a body
            cookies removed    known tracking cookies
                               a
            key: cookies       b
            parameters removed known tracking parameters
            query              sorted by name
            passed: path       /x
            stored             200 for 1m where it names no lifetime
            heuristic          guess from Last-Modified, at most 1d, of HTML 10m
            stale: refreshing  10s
            stale: error       1d
            stale: unreachable 1d
            Set-Cookie         not stored
            client's wishes    ignored
            to the client      without X-A
        ");
    }
}
