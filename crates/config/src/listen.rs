//! Listen addresses, as users write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::model::ListenSpec;

/// The reason why an address was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenError {
    /// Not `address:port`.
    Syntax,
    /// A port alone, or an address alone.
    NoPort,
    /// The host is a name.
    Name,
    /// A path without `unix:`, or one that no socket can have.
    Path,
    /// `fd:` without the name of a socket.
    NoSocketName,
    /// Invalid permissions.
    Mode,
    /// Permissions of something other than a file.
    NoFile,
    /// A keyword of a later version (`quic`).
    Later(String),
    /// nginx's keyword, and Larder's for it.
    Nginx(&'static str, &'static str),
    /// nginx's keyword for HTTP/2, which is a setting of its own here.
    Http2,
    /// `h2c` with TLS, which negotiates the protocol.
    H2cWithTls,
    /// An unknown option.
    UnknownOption(String),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("not an address to listen on"),
            Self::NoPort => f.write_str("an address to listen on needs both colon and port"),
            Self::Name => f.write_str("an address to listen on is an IP address, not a name"),
            Self::Path => {
                f.write_str("a unix socket is `unix:` and an absolute path of up to 107 bytes")
            }
            Self::NoSocketName => f.write_str("`fd:` is followed by the name of a socket"),
            Self::Mode => f.write_str("`mode` takes permissions such as 660 or 666"),
            Self::NoFile => f.write_str("`mode` is for unix sockets"),
            Self::Later(what) => write!(f, "this version does not have `{what}` listeners yet"),
            Self::Nginx(nginx, ours) => write!(f, "`{nginx}` is written `{ours}` here"),
            Self::Http2 => {
                f.write_str("TLS listeners speak HTTP/2 unless `http2 = false` says otherwise")
            }
            Self::H2cWithTls => f.write_str(
                "`h2c` is for listeners without `tls`, where nothing else agrees on HTTP/2",
            ),
            Self::UnknownOption(word) => write!(f, "`{word}` after the address means nothing"),
        }
    }
}

/// Accepted forms of an address, for help texts.
pub(crate) const EXPECTED: &str =
    "\":80\" for all addresses, \"127.0.0.1:80\" or \"[::1]:80\" for one; \":443 tls\" for TLS";

const LATER: [&str; 2] = ["quic", "http3"];

/// The default permissions of a unix socket: its owner and group.
const MODE: u32 = 0o660;

/// Longest path of a unix socket, in bytes (`sun_path` without the final zero).
const PATH_MAX: usize = 107;

/// The options behind an address.
#[derive(Default)]
struct AddressOptions {
    tls: bool,
    h2c: bool,
    proxy: bool,
    mode: Option<u32>,
}

impl AddressOptions {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, ListenError> {
        let mut found = Self::default();
        for word in words {
            let again = match word {
                "tls" => std::mem::replace(&mut found.tls, true),
                "h2c" => std::mem::replace(&mut found.h2c, true),
                "proxy" => std::mem::replace(&mut found.proxy, true),
                "proxy_protocol" => return Err(ListenError::Nginx("proxy_protocol", "proxy")),
                "ssl" => return Err(ListenError::Nginx("ssl", "tls")),
                "http2" => return Err(ListenError::Http2),
                later if LATER.contains(&later) => return Err(ListenError::Later(later.into())),
                other => match other.strip_prefix("mode=") {
                    Some(mode) => found.mode.replace(octal(mode)?).is_some(),
                    None => return Err(ListenError::UnknownOption(other.into())),
                },
            };
            if again {
                return Err(ListenError::UnknownOption(word.into()));
            }
        }
        if found.tls && found.h2c {
            return Err(ListenError::H2cWithTls);
        }
        Ok(found)
    }
}

/// Permissions as `chmod` takes them: `660`, `0666`.
pub(crate) fn octal(text: &str) -> Result<u32, ListenError> {
    let digits = (3..=4).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777);
    mode.ok_or(ListenError::Mode)
}

/// Parses `:80`, `*:80`, `192.0.2.1:80`, `[2001:db8::1]:80` or `localhost:80`, optionally followed
/// by `tls` or `proxy`; or `unix:/path`, optionally with `mode=660`, too; or `fd:name`.
pub(crate) fn parse_listen(text: &str) -> Result<ListenSpec, ListenError> {
    let mut words = text.split_ascii_whitespace();
    let address = words.next().ok_or(ListenError::Syntax)?;
    let AddressOptions { tls, h2c, proxy, mode } = AddressOptions::parse(words)?;
    let text = text.trim().to_owned();
    if address.starts_with("unix:") || address.starts_with('/') {
        let path = address.strip_prefix("unix:").filter(|path| path.starts_with('/'));
        let path = path.filter(|path| path.len() <= PATH_MAX && !path.contains('\0'));
        let path = Some((path.ok_or(ListenError::Path)?.into(), mode.unwrap_or(MODE)));
        let (addresses, given) = (Vec::new(), None);
        return Ok(ListenSpec { text, addresses, path, given, tls, h2c, proxy, name: None });
    }
    if mode.is_some() {
        return Err(ListenError::NoFile);
    }
    if let Some(name) = address.strip_prefix("fd:") {
        let given = Some(name.to_owned()).filter(|name| !name.is_empty() && !name.contains(':'));
        let (addresses, given) = (Vec::new(), Some(given.ok_or(ListenError::NoSocketName)?));
        return Ok(ListenSpec { text, addresses, path: None, given, tls, h2c, proxy, name: None });
    }
    let spec = |addresses| {
        Ok(ListenSpec { text, addresses, path: None, given: None, tls, h2c, proxy, name: None })
    };
    if let Ok(one) = address.parse::<SocketAddr>() {
        return spec(vec![one]);
    }
    if address.parse::<IpAddr>().is_ok() || address.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ListenError::NoPort);
    }
    let (host, port) = address.rsplit_once(':').ok_or(ListenError::Syntax)?;
    if port.is_empty() {
        return Err(ListenError::NoPort);
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ListenError::Syntax);
    }
    let port = port.parse().map_err(|_| ListenError::Syntax)?;
    let both =
        |v4, v6| vec![SocketAddr::new(IpAddr::V4(v4), port), SocketAddr::new(IpAddr::V6(v6), port)];
    match host {
        "" | "*" => spec(both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED)),
        "localhost" => spec(both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)),
        name if policy::hosts::canonical(name).is_some() => Err(ListenError::Name),
        _ => Err(ListenError::Syntax),
    }
}

/// The default listeners.
pub(crate) fn default_listen(acme: bool) -> Vec<ListenSpec> {
    let secure = acme.then_some(":443 tls");
    [":80"].into_iter().chain(secure).filter_map(|text| parse_listen(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<String> {
        let spec = parse_listen(text).expect("an address");
        spec.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_stand_for_sockets() {
        assert_eq!(addresses(":80"), ["0.0.0.0:80", "[::]:80"]);
        assert_eq!(addresses("*:80"), ["0.0.0.0:80", "[::]:80"]);
        assert_eq!(addresses("localhost:0"), ["127.0.0.1:0", "[::1]:0"]);
        assert_eq!(addresses("127.0.0.1:8080"), ["127.0.0.1:8080"]);
        assert!(parse_listen(":443 tls").is_ok_and(|spec| spec.tls));
        assert!(parse_listen(":443").is_ok_and(|spec| !spec.tls && !spec.proxy));
        assert!(parse_listen(":443 proxy tls").is_ok_and(|spec| spec.tls && spec.proxy));
        assert_eq!(addresses(" [2001:db8::1]:80 "), ["[2001:db8::1]:80"]);
    }

    #[test]
    fn a_path_stands_for_a_unix_socket() {
        let path = |text| parse_listen(text).expect("a socket").path.expect("a path");
        assert_eq!(path("unix:/run/a.sock"), ("/run/a.sock".into(), 0o660));
        assert_eq!(path("unix:/run/a.sock mode=0666 tls"), ("/run/a.sock".into(), 0o666));
        assert!(addresses("unix:/run/a.sock proxy").is_empty());
        let long = format!("unix:/{}", "x".repeat(107));
        assert_eq!(parse_listen(&long), Err(ListenError::Path));
        assert!(parse_listen(&long[..long.len() - 1]).is_ok());
        let given = parse_listen("fd:web tls").expect("a socket");
        assert_eq!((given.given.as_deref(), given.tls), (Some("web"), true));
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, error) in [
            ("", ListenError::Syntax),
            ("80", ListenError::NoPort),
            ("127.0.0.1", ListenError::NoPort),
            ("::1", ListenError::NoPort),
            (":", ListenError::NoPort),
            (":http", ListenError::Syntax),
            (":+80", ListenError::Syntax),
            (":65536", ListenError::Syntax),
            ("::1:80x", ListenError::Syntax),
            ("example.com:80", ListenError::Name),
            (":443 tls tls", ListenError::UnknownOption("tls".to_owned())),
            (":443 tls quic", ListenError::Later("quic".to_owned())),
            ("unix:run/larder.sock", ListenError::Path),
            ("unix:", ListenError::Path),
            ("fd:", ListenError::NoSocketName),
            ("fd:a:b", ListenError::NoSocketName),
            ("fd:a mode=660", ListenError::NoFile),
            ("/run/larder.sock", ListenError::Path),
            ("unix:/run/larder.sock mode=rw", ListenError::Mode),
            ("unix:/run/larder.sock mode=1777", ListenError::Mode),
            (":80 mode=660", ListenError::NoFile),
            (":443 ssl", ListenError::Nginx("ssl", "tls")),
            (":80 proxy_protocol", ListenError::Nginx("proxy_protocol", "proxy")),
            (":80 proxy proxy", ListenError::UnknownOption("proxy".to_owned())),
            (":443 tls http2", ListenError::Http2),
            (":443 tls h2c", ListenError::H2cWithTls),
            (":80 h2c h2c", ListenError::UnknownOption("h2c".to_owned())),
        ] {
            assert_eq!(parse_listen(text), Err(error), "{text}");
        }
    }
}
