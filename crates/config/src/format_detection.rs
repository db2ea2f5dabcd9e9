//! Format detection: whether a file is VCL, TOML, or another server's configuration, by its text.

/// First keywords of a program, including those of VCL 3.
const FIRST_WORDS: [&str; 9] =
    ["vcl", "backend", "director", "probe", "acl", "sub", "import", "include", "C{"];

/// Returns true for a program, false for a configuration, and `None` if the start of `text` fits
/// neither.
pub fn is_program(text: &str) -> Option<bool> {
    let text = after_comments(text.trim_start_matches('\u{feff}'));
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '=' | '.' | '['));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let next = rest.trim_start_matches([' ', '\t']).chars().next();
    match next {
        // A table, or a key and its value.
        Some('=' | '.') => Some(false),
        Some('[') if word.is_empty() => Some(false),
        _ if FIRST_WORDS.contains(&word) => Some(true),
        _ => None,
    }
}

/// A server, keywords at the start of its configuration's lines, and the guide's page on migrating
/// from it.
const SERVERS: [(&str, &[&str], &str); 5] = [
    (
        "nginx",
        &[
            "server",
            "location",
            "proxy_pass",
            "worker_processes",
            "events",
            "http",
            "upstream",
            "fastcgi_pass",
        ],
        "from-nginx",
    ),
    (
        "Caddy",
        &[
            "reverse_proxy",
            "php_fastcgi",
            "file_server",
            "encode",
            "handle",
            "handle_path",
            "handle_errors",
        ],
        "from-caddy",
    ),
    (
        "Squid",
        &["http_port", "cache_peer", "http_access", "cache_dir", "refresh_pattern", "acl"],
        "from-squid",
    ),
    (
        "HAProxy",
        &["frontend", "defaults", "backend", "use_backend", "default_backend"],
        "getting-started",
    ),
    (
        "Apache",
        &["<VirtualHost", "<Directory", "DocumentRoot", "ServerName", "ProxyPass", "LoadModule"],
        "getting-started",
    ),
];

/// The server whose configuration `text` is, and the page of the guide about it; `None` if unknown.
pub(crate) fn foreign_server(text: &str) -> Option<(&'static str, &'static str)> {
    let words: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let is_toml = |line: &str| line.trim_start().starts_with('[') || line.contains(" = ");
    if text.lines().any(is_toml) {
        return None;
    }
    let hits = |names: &[&str]| words.iter().filter(|word| names.contains(word)).count();
    let best = SERVERS.iter().map(|(name, names, page)| (hits(names), (*name, *page)));
    let (most, server) = best.max_by_key(|(hits, _)| *hits)?;
    (most > 0).then_some(server)
}

/// The text after white space and comments of either language.
fn after_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        text = if text.starts_with('#') || text.starts_with("//") {
            text.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(rest) = text.strip_prefix("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            return text;
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_other_servers_are_known() {
        let of = |text| foreign_server(text).map(|(name, _)| name);
        let nginx =
            "user www-data;\nhttp {\n  server {\n    location / { proxy_pass http://a; }\n  }\n}\n";
        for (text, name) in [
            (nginx, "nginx"),
            ("example.com {\n  reverse_proxy localhost:8080\n}\n", "Caddy"),
            ("http_port 80 accel\ncache_peer 127.0.0.1 parent 8080 0\nacl all src all\n", "Squid"),
            ("frontend web\n  bind :80\n  default_backend app\n", "HAProxy"),
            ("<VirtualHost *:80>\n  ServerName a\n</VirtualHost>\n", "Apache"),
        ] {
            assert_eq!(of(text), Some(name), "{text}");
        }
        for text in ["", "listen\n", "[server]\nlocation\n", "listen = \":80\"\nserver {\n"] {
            assert_eq!(of(text), None, "{text}");
        }
        let page =
            |page: &str| format!("{}/../../docs/guide/{page}.md", env!("CARGO_MANIFEST_DIR"));
        assert!(SERVERS.iter().all(|(.., own)| std::path::Path::new(&page(own)).is_file()));
    }

    #[test]
    fn the_first_word_that_is_no_comment_tells() {
        for program in [
            "vcl 4.1;",
            "# nothing\n// at = all\n/* [x] */ vcl 4.0;",
            "backend a { .host = \"b\"; }",
            "\u{feff}sub vcl_recv {}",
            "import std;",
            "vcl",
        ] {
            assert_eq!(is_program(program), Some(true), "{program}");
        }
        for configuration in
            ["listen = 80", "# vcl 4.1;\n[[site]]", "[cache]", "vcl = \"a.vcl\"", "acl.x = 1"]
        {
            assert_eq!(is_program(configuration), Some(false), "{configuration}");
        }
        for neither in ["", "# only\n", "/* open", "hello world"] {
            assert_eq!(is_program(neither), None, "{neither}");
        }
    }
}
