//! Signature base: the text that a signature of a request is made over (RFC 9421 2.5), built anew
//! from the request in canonical form.
//!
//! Must never guess: a component that the canonical form does not have exactly as it was sent is
//! [`BaseFault::Unsupported`].

use std::ops::Range;

use message::sf::{BareItem, InnerList, Item, Parameters, parse_dictionary};
use message::{HeaderId, Method, Request, Scheme};

use crate::structured_text::{write_item, write_list, write_value};

/// Most components of a signature: more than a request has fields.
const COMPONENTS_MAX: usize = 64;
/// Longest base, in bytes: a little more than the head of a request may have by default.
const BASE_MAX: usize = 64 * 1024;
/// Most components that are members of a dictionary: agents cover one, that of Signature-Agent.
const MEMBERS_MAX: usize = 8;
/// Longest field that is read as a dictionary, in bytes: it is read once for each such component.
const DICTIONARY_MAX: usize = 8 * 1024;

/// The reason why there is no base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseFault {
    /// A component is covered that cannot be rebuilt.
    Unsupported,
    /// A field is covered that the request lacks.
    Missing,
}

/// Builds the base of a signature with these covered components and parameters. `scheme` is the one
/// that the client used, perhaps towards a balancer.
pub(crate) fn signature_base(
    request: &Request,
    scheme: Scheme,
    components: InnerList<'_>,
    parameters: Parameters<'_>,
) -> Result<Vec<u8>, BaseFault> {
    if components.members().nth(COMPONENTS_MAX).is_some() {
        return Err(BaseFault::Unsupported);
    }
    let mut base = Vec::with_capacity(512);
    let mut identifiers: Vec<Range<usize>> = Vec::new();
    let mut members = 0;
    for component in components.members() {
        let from = base.len();
        write_item(component, &mut base).ok_or(BaseFault::Unsupported)?;
        let identifier = from..base.len();
        // RFC 9421 2.5: no component may occur twice.
        let is_repeated =
            identifiers.iter().any(|own| base[own.clone()] == base[identifier.clone()]);
        members += usize::from(component.parameters.iter().next().is_some());
        if is_repeated || members > MEMBERS_MAX {
            return Err(BaseFault::Unsupported);
        }
        identifiers.push(identifier);
        base.extend_from_slice(b": ");
        write_component(request, scheme, component, &mut base)?;
        base.push(b'\n');
        if base.len() > BASE_MAX {
            return Err(BaseFault::Unsupported);
        }
    }
    base.extend_from_slice(b"\"@signature-params\": ");
    write_list(components, parameters, &mut base).ok_or(BaseFault::Unsupported)?;
    Ok(base)
}

/// Appends the value of a component.
fn write_component(
    request: &Request,
    scheme: Scheme,
    component: Item<'_>,
    out: &mut Vec<u8>,
) -> Result<(), BaseFault> {
    let BareItem::String(name) = component.bare else { return Err(BaseFault::Unsupported) };
    if name.iter().any(|b| b.is_ascii_uppercase() || *b == b'\\') {
        return Err(BaseFault::Unsupported);
    }
    match (name, component.parameters.iter().next()) {
        ([b'@', ..], None) => write_derived(request, scheme, name, out),
        ([b'@', ..], Some(_)) => Err(BaseFault::Unsupported),
        (_, None) => write_field(request, name, out),
        (_, Some((b"key", BareItem::String(key)))) if component.parameters.iter().count() == 1 => {
            write_member(request, name, key, out)
        }
        (_, Some(_)) => Err(BaseFault::Unsupported),
    }
}

/// Appends a derived component (RFC 9421 2.2).
fn write_derived(
    request: &Request,
    scheme: Scheme,
    name: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BaseFault> {
    let target = request.sent_target();
    // OPTIONS * has no path. An absolute target is not what agents sign, and replaces Host.
    if !target.starts_with(b"/") || request.method == Method::Connect {
        return Err(BaseFault::Unsupported);
    }
    // Not every signer escapes what is beyond ASCII.
    if !target.is_ascii() && !matches!(name, b"@method" | b"@authority" | b"@scheme") {
        return Err(BaseFault::Unsupported);
    }
    let query_at = target.iter().position(|b| *b == b'?').unwrap_or(target.len());
    match name {
        b"@method" => out.extend_from_slice(request.method.token()),
        b"@authority" => write_authority(request, scheme, out)?,
        b"@scheme" => out.extend_from_slice(scheme.as_str().as_bytes()),
        b"@path" => out.extend_from_slice(&target[..query_at]),
        b"@query" => {
            out.push(b'?');
            out.extend_from_slice(target.get(query_at + 1..).unwrap_or_default());
        }
        b"@request-target" => out.extend_from_slice(target),
        b"@target-uri" => {
            out.extend_from_slice(scheme.as_str().as_bytes());
            out.extend_from_slice(b"://");
            write_authority(request, scheme, out)?;
            out.extend_from_slice(target);
        }
        _ => return Err(BaseFault::Unsupported),
    }
    Ok(())
}

/// Appends the host, and the port unless it is the scheme's default (RFC 9421 2.2.3).
fn write_authority(request: &Request, scheme: Scheme, out: &mut Vec<u8>) -> Result<(), BaseFault> {
    let from = out.len();
    out.extend_from_slice(&request.host);
    if let Some(port) = request.port.filter(|port| *port != scheme.default_port()) {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    let Some(sent) = request.headers.value(HeaderId::Host) else { return Ok(()) };
    let (sent, own) = (sent.to_ascii_lowercase(), &out[from..]);
    let default = format!(":{}", scheme.default_port());
    // It may end with a dot, or have the port that is the listener's default but not the client's.
    match sent == own || sent.strip_suffix(default.as_bytes()) == Some(own) {
        true => Ok(()),
        false => Err(BaseFault::Unsupported),
    }
}

/// The lines of a field as they were sent.
pub(crate) fn lines<'a>(
    request: &'a Request,
    name: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + Clone {
    request.headers.values_named(name).map(<[u8]>::trim_ascii)
}

/// The lines of a field that is a dictionary; `None` if it is too long to be read as one.
pub(crate) fn dictionary_lines<'a>(
    request: &'a Request,
    name: &'a [u8],
) -> Option<impl Iterator<Item = &'a [u8]> + Clone> {
    let lines = lines(request, name);
    (lines.clone().map(<[u8]>::len).sum::<usize>() <= DICTIONARY_MAX).then_some(lines)
}

/// The fault of a field that is not there. One that Connection names was removed on arrival.
fn absence(request: &Request, name: &[u8]) -> BaseFault {
    let mut options =
        request.headers.values(HeaderId::Connection).flat_map(|value| value.split(|b| *b == b','));
    match options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name)) {
        true => BaseFault::Unsupported,
        false => BaseFault::Missing,
    }
}

/// Appends the lines of a field, with commas between them (RFC 9421 2.1).
fn write_field(request: &Request, name: &[u8], out: &mut Vec<u8>) -> Result<(), BaseFault> {
    let mut lines = lines(request, name).peekable();
    if lines.peek().is_none() {
        return Err(absence(request, name));
    }
    for (at, line) in lines.enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(line);
    }
    Ok(())
}

/// Appends a member of a field that is a dictionary (RFC 9421 2.1.2).
fn write_member(
    request: &Request,
    name: &[u8],
    key: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BaseFault> {
    let lines = dictionary_lines(request, name).ok_or(BaseFault::Unsupported)?;
    let mut found = None;
    parse_dictionary(lines, |member| {
        if member.key == key {
            found = Some(member);
        }
    })
    .map_err(|_| BaseFault::Unsupported)?;
    let member = found.ok_or_else(|| absence(request, name))?;
    write_value(member.value, member.parameters, out).ok_or(BaseFault::Unsupported)
}

#[cfg(test)]
mod tests {
    use message::sf::{Member, Value};
    use message::{Scheme, target};

    use super::*;

    /// The request of RFC 9421 B.2.
    fn request() -> Request {
        let mut request = Request::new();
        request.method = Method::Post;
        request.scheme = Scheme::Https;
        request.host = b"example.com".to_vec();
        request.target = b"/foo?param=Value&Pet=dog".to_vec();
        for (name, value) in [
            ("Host", "example.com"),
            ("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("Content-Type", "application/json"),
            ("X-Empty", ""),
            ("X-List", "a"),
            ("Content-Length", "18"),
            ("X-LIST", "b"),
            ("X-Dict", "a=1, b=2;x"),
            ("X-Dict", "c=(a  b), b=3"),
        ] {
            request.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn base_of(request: &Request, input: &str) -> Result<String, BaseFault> {
        let mut found: Option<Member<'_>> = None;
        let lines = std::iter::once(input.as_bytes());
        parse_dictionary(lines, |member| found = Some(member)).expect("a dictionary");
        let member = found.expect("a member");
        let Value::List(list) = member.value else { panic!("an inner list") };
        let base = signature_base(request, request.scheme, list, member.parameters)?;
        Ok(String::from_utf8(base).expect("text"))
    }

    #[test]
    fn the_base_is_that_of_the_rfcs_example() {
        let input = "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \
                     \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
        let expected = "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\
            \"@path\": /foo\n\"@authority\": example.com\n\"content-type\": application/json\n\
            \"content-length\": 18\n\"@signature-params\": (\"date\" \"@method\" \"@path\" \
            \"@authority\" \"content-type\" \"content-length\");created=1618884473;\
            keyid=\"test-key-ed25519\"";
        assert_eq!(base_of(&request(), input).as_deref(), Ok(expected));
    }

    #[test]
    fn each_component_has_its_value() {
        let mut request = request();
        request.port = Some(8443);
        request.headers.set(HeaderId::Host, b"example.com:8443");
        for (component, value) in [
            ("\"@target-uri\"", "https://example.com:8443/foo?param=Value&Pet=dog"),
            ("\"@scheme\"", "https"),
            ("\"@query\"", "?param=Value&Pet=dog"),
            ("\"@request-target\"", "/foo?param=Value&Pet=dog"),
            ("\"@authority\"", "example.com:8443"),
            ("\"x-empty\"", ""),
            ("\"x-list\"", "a, b"),
            ("\"x-dict\"", "a=1, b=2;x, c=(a  b), b=3"),
            ("\"x-dict\";key=\"b\"", "3"),
            ("\"x-dict\";key=\"c\"", "(a b)"),
        ] {
            let base = base_of(&request, &format!("s=({component})"));
            let expected = format!("{component}: {value}\n\"@signature-params\": ({component})");
            assert_eq!(base, Ok(expected));
        }
        request.target = b"/~a/%C3%A9".to_vec();
        request.respelt = b"/%7ea/%c3%a9".to_vec();
        for (component, value) in [("@query", "?"), ("@path", "/%7ea/%c3%a9")] {
            let base = base_of(&request, &format!("s=(\"{component}\")")).expect("a base");
            assert!(base.starts_with(&format!("\"{component}\": {value}\n")), "{base}");
        }
    }

    #[test]
    fn what_cannot_be_rebuilt_has_no_base() {
        let mut request = request();
        for component in [
            "\"@status\"",
            "\"@query-param\";name=\"Pet\"",
            "\"@method\";req",
            "\"date\";bs",
            "\"x-dict\";sf",
            "\"x-dict\";key=\"b\";req",
            "\"x-dict\";key=b",
            "\"date\";key=\"a\"",
            "\"Date\"",
            "date",
            "\"date\" \"@path\" \"date\"",
            "\"x-dict\";key=\"b\" \"x-dict\"; key=\"b\"",
            "\"X-Dict\";key=\"b\"",
        ] {
            let base = base_of(&request, &format!("s=({component})"));
            assert_eq!(base, Err(BaseFault::Unsupported), "{component}");
        }
        for component in ["\"x-other\"", "\"x-dict\";key=\"d\""] {
            let base = base_of(&request, &format!("s=({component})"));
            assert_eq!(base, Err(BaseFault::Missing), "{component}");
        }
        request.headers.push(HeaderId::Cookie, "a".repeat(BASE_MAX).as_bytes());
        assert_eq!(base_of(&request, "s=(\"cookie\")"), Err(BaseFault::Unsupported));
        request.target = b"*".to_vec();
        assert_eq!(base_of(&request, "s=(\"@path\")"), Err(BaseFault::Unsupported));
    }

    #[test]
    fn work_is_bounded() {
        let mut request = request();
        let base_with = |request: &Request, components: &[String]| {
            base_of(request, &format!("s=({})", components.join(" "))).map(|_| ())
        };
        let fields = |count| (0..count).map(|n| format!("\"x-{n}\"")).collect::<Vec<_>>();
        let members = |count| (0..count).map(|n| format!("\"d\";key=\"k{n}\"")).collect::<Vec<_>>();
        for n in 0..=COMPONENTS_MAX {
            request.headers.push_named(format!("X-{n}").as_bytes(), b"");
            request.headers.push_named(b"D", format!("k{n}").as_bytes());
        }
        assert_eq!(base_with(&request, &fields(COMPONENTS_MAX)), Ok(()));
        let many = base_with(&request, &fields(COMPONENTS_MAX + 1));
        assert_eq!(many, Err(BaseFault::Unsupported));
        assert_eq!(base_with(&request, &members(MEMBERS_MAX)), Ok(()));
        let many = base_with(&request, &members(MEMBERS_MAX + 1));
        assert_eq!(many, Err(BaseFault::Unsupported));
        request
            .headers
            .push_named(b"D", format!("l=\"{}\"", "x".repeat(DICTIONARY_MAX)).as_bytes());
        assert_eq!(base_with(&request, &members(1)), Err(BaseFault::Unsupported));
    }

    #[test]
    fn what_differs_from_what_was_sent_has_no_base() {
        let base_with = |request: &Request, component: &str| {
            base_of(request, &format!("s=(\"{component}\")")).map(|_| ())
        };
        let unsupported = Err(BaseFault::Unsupported);
        for (host, known) in [
            ("Example.com", Ok(())),
            ("example.com:443", Ok(())),
            ("example.com.", unsupported),
            // Over HTTP it is the default port, and is gone. The client has used HTTPS.
            ("example.com:80", unsupported),
        ] {
            let mut request = request();
            request.headers.set(HeaderId::Host, host.as_bytes());
            assert_eq!(base_with(&request, "@authority"), known, "{host}");
            assert_eq!(base_with(&request, "@target-uri"), known, "{host}");
        }
        let mut named = request();
        named.headers.push(HeaderId::Connection, b"close, X-Gone");
        assert_eq!(base_with(&named, "x-gone"), unsupported);
        assert_eq!(base_with(&named, "x-other"), Err(BaseFault::Missing));
        for (sent, authority) in [("https://example.com/a", unsupported), ("/\u{e9}", Ok(()))] {
            let mut request = request();
            target::read(sent.as_bytes(), Scheme::Https, &mut request).expect("a target");
            target::canonical(&mut request);
            assert_eq!(base_with(&request, "@authority"), authority, "{sent}");
            for component in ["@path", "@query", "@request-target", "@target-uri"] {
                assert_eq!(base_with(&request, component), unsupported, "{sent}");
            }
        }
    }
}
