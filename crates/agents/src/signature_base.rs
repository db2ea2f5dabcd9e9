//! Signature base: the text that a signature of a request is made over (RFC 9421 2.5), built anew
//! from the request in canonical form.
//!
//! Must never guess: a component that the canonical form does not have exactly as it was sent is
//! [`BaseFault::Unsupported`].

use message::sf::{BareItem, InnerList, Item, Parameters, parse_dictionary};
use message::{Method, Request, Scheme};

use crate::structured_text::{write_item, write_list, write_value};

/// Most components of a signature: more than a request has fields.
const COMPONENTS_MAX: usize = 64;
/// Longest base, in bytes: a little more than the head of a request may have by default.
const BASE_MAX: usize = 64 * 1024;

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
    let mut base = Vec::with_capacity(512);
    for (at, component) in components.members().enumerate() {
        // RFC 9421 2.5: no component may occur twice.
        if at >= COMPONENTS_MAX || components.members().take(at).any(|own| own == component) {
            return Err(BaseFault::Unsupported);
        }
        write_item(component, &mut base).ok_or(BaseFault::Unsupported)?;
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
    // Of OPTIONS *, which has no path.
    if !target.starts_with(b"/") || request.method == Method::Connect {
        return Err(BaseFault::Unsupported);
    }
    let query_at = target.iter().position(|b| *b == b'?').unwrap_or(target.len());
    match name {
        b"@method" => out.extend_from_slice(request.method.token()),
        b"@authority" => write_authority(request, scheme, out),
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
            write_authority(request, scheme, out);
            out.extend_from_slice(target);
        }
        _ => return Err(BaseFault::Unsupported),
    }
    Ok(())
}

/// Appends the host, and the port unless it is the scheme's default (RFC 9421 2.2.3).
fn write_authority(request: &Request, scheme: Scheme, out: &mut Vec<u8>) {
    out.extend_from_slice(&request.host);
    if let Some(port) = request.port.filter(|port| *port != scheme.default_port()) {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
}

/// The lines of a field as they were sent.
pub(crate) fn lines<'a>(
    request: &'a Request,
    name: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + Clone {
    request.headers.values_named(name).map(<[u8]>::trim_ascii)
}

/// Appends the lines of a field, with commas between them (RFC 9421 2.1).
fn write_field(request: &Request, name: &[u8], out: &mut Vec<u8>) -> Result<(), BaseFault> {
    if name.iter().any(|b| b.is_ascii_uppercase() || *b == b'\\') {
        return Err(BaseFault::Unsupported);
    }
    let mut lines = lines(request, name).peekable();
    if lines.peek().is_none() {
        return Err(BaseFault::Missing);
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
    let mut found = None;
    parse_dictionary(lines(request, name), |member| {
        if member.key == key {
            found = Some(member);
        }
    })
    .map_err(|_| BaseFault::Unsupported)?;
    let member = found.ok_or(BaseFault::Missing)?;
    write_value(member.value, member.parameters, out).ok_or(BaseFault::Unsupported)
}

#[cfg(test)]
mod tests {
    use message::sf::{Member, Value};
    use message::{HeaderId, Scheme};

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
        ] {
            let base = base_of(&request, &format!("s=({component})"));
            assert_eq!(base, Err(BaseFault::Unsupported), "{component}");
        }
        for component in ["\"x-other\"", "\"x-dict\";key=\"d\""] {
            let base = base_of(&request, &format!("s=({component})"));
            assert_eq!(base, Err(BaseFault::Missing), "{component}");
        }
        let many: String = (0..=COMPONENTS_MAX).map(|n| format!("\"x-{n}\" ")).collect();
        assert!(base_of(&request, &format!("s=({many})")).is_err());
        request.headers.push(HeaderId::Cookie, "a".repeat(BASE_MAX).as_bytes());
        assert_eq!(base_of(&request, "s=(\"cookie\")"), Err(BaseFault::Unsupported));
        request.target = b"*".to_vec();
        assert_eq!(base_of(&request, "s=(\"@path\")"), Err(BaseFault::Unsupported));
    }
}
