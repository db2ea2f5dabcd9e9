//! hitch's configuration files (hitch.conf(5)), for `-A` of Varnish 9: certificates, and TLS
//! listeners.

use std::path::{Path, PathBuf};

/// The used settings of such a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hitch {
    /// Certificate files, each with that of its key.
    pub(crate) pairs: Vec<(PathBuf, PathBuf)>,
    /// Addresses, in the form of `-a`.
    pub(crate) endpoints: Vec<String>,
    /// Settings without effect here.
    pub(crate) idle: Vec<String>,
    /// The folder with more certificates, until it is read.
    folder: Option<String>,
    /// The suffix of the files in it that are read.
    suffix: String,
}

/// Settings about running hitch, or with no choice here.
const IDLE: &[&str] = &[
    "alpn-protos",
    "backlog",
    "backend",
    "chroot",
    "ciphers",
    "ciphersuites",
    "client-verify",
    "client-verify-ca",
    "daemon",
    "dh-group",
    "ecdh-curve",
    "group",
    "keepalive",
    "log-filename",
    "log-level",
    "ocsp-connect-tmo",
    "ocsp-dir",
    "ocsp-refresh-interval",
    "ocsp-resp-tmo",
    "ocsp-verify-staple",
    "pidfile",
    "prefer-server-ciphers",
    "proxy-proxy",
    "quiet",
    "recv-bufsize",
    "ring-data-len",
    "ring-slots",
    "send-bufsize",
    "session-cache",
    "shared-cache",
    "sni-nomatch-abort",
    "ssl-engine",
    "ssl-handshake-timeout",
    "syslog",
    "syslog-facility",
    "tcp-fastopen",
    "tls-protos",
    "user",
    "verify-depth",
    "workers",
    "write-ip",
    "write-proxy",
    "write-proxy-v1",
    "write-proxy-v2",
];

/// A word, a string, or one of `=`, `{`, `}`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Sign(char),
}

/// Reads the file's `text`.
///
/// # Errors
/// What is wrong, with its line.
pub(crate) fn read(text: &str) -> Result<Hitch, String> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let mut hitch = Hitch::default();
    while let Some((line, token)) = tokens.next() {
        let wrong = |what: &str| format!("line {line}: {what}");
        let Token::Text(key) = token else { return Err(wrong("a setting begins with its name")) };
        if tokens.next_if(|(_, next)| *next == Token::Sign('=')).is_none() {
            return Err(wrong(&format!("`{key}`: a `=` is missing")));
        }
        let value = match tokens.next() {
            Some((_, Token::Text(value))) => Value::Text(value),
            Some((_, Token::Sign('{'))) => Value::Block(block(&mut tokens).map_err(|w| wrong(&w))?),
            _ => return Err(wrong(&format!("`{key}`: a value is missing"))),
        };
        hitch.set(&key, value).map_err(|why| wrong(&format!("`{key}`: {why}")))?;
    }
    // The suffix may follow the folder in the file.
    hitch.read_folder()?;
    Ok(hitch)
}

/// The value of a setting.
enum Value {
    Text(String),
    Block(Vec<(String, String)>),
}

/// The settings up to a `}`.
fn block(
    tokens: &mut impl Iterator<Item = (usize, Token)>,
) -> Result<Vec<(String, String)>, String> {
    let mut settings = Vec::new();
    loop {
        let key = match tokens.next() {
            Some((_, Token::Sign('}'))) => return Ok(settings),
            Some((_, Token::Text(key))) => key,
            _ => return Err("a `}` is missing".to_owned()),
        };
        match (tokens.next(), tokens.next()) {
            (Some((_, Token::Sign('='))), Some((_, Token::Text(value)))) => {
                settings.push((key, value));
            }
            _ => return Err(format!("`{key}`: a `=` and a value are missing")),
        }
    }
}

impl Hitch {
    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            ("pem-file", Value::Text(file)) => self.pair(&file, None),
            ("pem-file", Value::Block(settings)) => {
                let of = |name: &str| settings.iter().find(|(key, _)| key == name);
                let (_, cert) = of("cert").ok_or("it has no `cert`")?;
                self.pair(cert, of("private-key").map(|(_, key)| key.as_str()));
            }
            ("pem-dir", Value::Text(folder)) => self.folder = Some(folder),
            ("pem-dir-glob", Value::Text(glob)) => {
                let suffix = glob.strip_prefix('*').ok_or("only `*` and an ending are known")?;
                suffix.clone_into(&mut self.suffix);
            }
            ("frontend", Value::Text(at)) => self.frontend(&at),
            ("frontend", Value::Block(settings)) => {
                let of = |name: &str| settings.iter().find(|(key, _)| key == name);
                let host = of("host").map_or("*", |(_, host)| host.as_str());
                let port = of("port").map_or("443", |(_, port)| port.as_str());
                self.frontend(&format!("[{host}]:{port}"));
                for (key, file) in &settings {
                    match key.as_str() {
                        "pem-file" => self.pair(file, None),
                        "host" | "port" => {}
                        other => self.idle.push(other.to_owned()),
                    }
                }
            }
            (other, _) if IDLE.contains(&other) => self.idle.push(other.to_owned()),
            _ => return Err("there is no such setting".to_owned()),
        }
        Ok(())
    }

    fn pair(&mut self, cert: &str, key: Option<&str>) {
        // Such a file has certificates followed by the key.
        self.pairs.push((PathBuf::from(cert), PathBuf::from(key.unwrap_or(cert))));
    }

    /// Adds the files of `pem-dir`, in the order of their names.
    fn read_folder(&mut self) -> Result<(), String> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() && path.to_string_lossy().ends_with(&self.suffix))
            .collect();
        files.sort();
        self.pairs.extend(files.into_iter().map(|file| (file.clone(), file)));
        Ok(())
    }

    /// Adds an address in hitch's form: `[HOST]:PORT`, `*` for all.
    fn frontend(&mut self, at: &str) {
        let (host, port) = at.rsplit_once(':').unwrap_or((at, "443"));
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare {
            "*" | "" => String::new(),
            six if six.contains(':') => format!("[{six}]"),
            other => other.to_owned(),
        };
        self.endpoints.push(format!("{host}:{port},https"));
    }
}

/// Splits the file into tokens, each with its line.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let taken = match first {
                '#' => break,
                '=' | '{' | '}' => {
                    tokens.push((number, Token::Sign(first)));
                    1
                }
                '"' => {
                    let end = rest[1..].find('"');
                    let end = end.ok_or_else(|| format!("line {number}: a `\"` is missing"))?;
                    tokens.push((number, Token::Text(rest[1..=end].to_owned())));
                    end + 2
                }
                _ => {
                    let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | '{' | '}' | '#');
                    let end = rest.find(is_end).unwrap_or(rest.len());
                    tokens.push((number, Token::Text(rest[..end].to_owned())));
                    end
                }
            };
            rest = rest[taken..].trim_start();
        }
    }
    Ok(several_as_one(tokens))
}

/// Joins several values in one line: `tls-protos = TLSv1.2 TLSv1.3`.
fn several_as_one(tokens: Vec<(usize, Token)>) -> Vec<(usize, Token)> {
    let mut joined: Vec<(usize, Token)> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some((line, token)) = tokens.next() {
        let is_value = matches!(&joined[..], [.., (_, Token::Sign('=')), (_, Token::Text(_))]);
        // The name of the next setting is no value.
        let is_value = is_value && tokens.peek().is_none_or(|(_, next)| *next != Token::Sign('='));
        match (joined.last_mut(), token) {
            (Some((last, Token::Text(value))), Token::Text(more)) if is_value && *last == line => {
                value.push(' ');
                value.push_str(&more);
            }
            (_, token) => joined.push((line, token)),
        }
    }
    joined
}

/// Reads the file `path`.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn read_file(path: &Path) -> Result<Hitch, String> {
    let failed = |why: String| format!("larder: -A {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    read(&text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_and_addresses_are_taken_from_the_file() {
        let hitch = read(
            "# Varnish's example\n\
             frontend = {\n    host = \"*\"\n    port = \"8443\"\n    pem-file = \"/own.pem\"\n}\n\
             frontend = \"[::1]:443\"\n\
             pem-file = \"/etc/a.pem\"  # both in one\n\
             pem-file = { cert = \"/etc/b.crt\" private-key = \"/etc/b.key\" }\n\
             tls-protos = TLSv1.2 TLSv1.3\nworkers = 4\n",
        )
        .expect("a good file");
        let pair = |cert: &str, key: &str| (PathBuf::from(cert), PathBuf::from(key));
        assert_eq!(
            hitch.pairs,
            [
                pair("/own.pem", "/own.pem"),
                pair("/etc/a.pem", "/etc/a.pem"),
                pair("/etc/b.crt", "/etc/b.key"),
            ]
        );
        assert_eq!(hitch.endpoints, [":8443,https", "[::1]:443,https"]);
        assert_eq!(hitch.idle, ["tls-protos", "workers"]);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, why) in [
            ("\npem-fil = \"/a\"", "line 2: `pem-fil`: there is no such setting"),
            ("pem-file \"/a\"", "line 1: `pem-file`: a `=` is missing"),
            ("pem-file =", "line 1: `pem-file`: a value is missing"),
            ("pem-file = \"/a", "line 1: a `\"` is missing"),
            ("pem-file = { private-key = \"/k\" }", "line 1: `pem-file`: it has no `cert`"),
            ("frontend = { host = \"*\"", "line 1: a `}` is missing"),
            ("= x", "line 1: a setting begins with its name"),
        ] {
            assert_eq!(read(text), Err(why.to_owned()), "{text}");
        }
    }
}
