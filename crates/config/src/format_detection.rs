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
        _ if FIRST_WORDS.contains(&word) => is_declaration(word, rest).then_some(true),
        _ => None,
    }
}

/// Returns false for what follows a word that other servers' configurations begin with, too, if it
/// is theirs: nginx's `include /path;`, HAProxy's `backend name`, Squid's `acl name type`.
fn is_declaration(word: &str, rest: &str) -> bool {
    let rest = rest.trim_start();
    match word {
        "include" => rest.is_empty() || rest.starts_with('"'),
        "backend" | "acl" => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let behind = rest.trim_start_matches(is_name).trim_start();
            behind.is_empty() || behind.starts_with('{') || behind.starts_with("none")
        }
        _ => true,
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
pub fn foreign_server(text: &str) -> Option<(&'static str, &'static str)> {
    let words: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if text.lines().any(is_toml) {
        return None;
    }
    let hits = |names: &[&str]| words.iter().filter(|word| names.contains(word)).count();
    let best = SERVERS.iter().map(|(name, names, page)| (hits(names), (*name, *page)));
    let (most, server) = best.max_by_key(|(hits, _)| *hits)?;
    (most > 0).then_some(server)
}

/// Returns true for the header of a table, and for a key with a value: other servers have `=`
/// elsewhere (nginx's `location = /path` and `if ($a = b)`).
fn is_toml(line: &str) -> bool {
    let line = line.trim_start();
    let Some((key, value)) = line.split_once('=') else { return line.starts_with('[') };
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"');
    let begins = |c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '[' | '{' | '+' | '-');
    let value = value.trim_start();
    let is_word = ["true", "false"].iter().any(|word| value.starts_with(word));
    line.starts_with('[')
        || key.trim_end().chars().all(is_key) && (value.starts_with(begins) || is_word)
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
        let with_marks =
            "server {\n  location = /x { return 204; }\n  if ($a = b) { return 403; }\n}\n";
        assert_eq!(of(with_marks), Some("nginx"));
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
        for neither in [
            "include /etc/nginx/modules/*.conf;\nhttp {}",
            "backend web\n  server a 127.0.0.1:80",
            "acl all src all",
        ] {
            assert_eq!(is_program(neither), None, "{neither}");
        }
        for neither in ["", "# only\n", "/* open", "hello world"] {
            assert_eq!(is_program(neither), None, "{neither}");
        }
    }
}
