//! `tls`: TLS on the client's connection, in the words of Varnish 9. Backends of programs are
//! spoken to without TLS, so of a backend's connection there is nothing to tell.

use crate::failure::Failure;
use crate::state::ctx::{Ctx, TlsFacts};
use crate::state::value::Value;
use crate::sub::{Side, Sub, Subs};
use crate::types::Type;
use crate::vmod::{Call, Function, Module};
use crate::vmods::args::owned;

/// The module.
pub static MODULE: Module = Module {
    name: "tls",
    about: "TLS on the client's connection: as our own listener has negotiated it, or as the \
            balancer's PROXY header (version 2) tells it. In `vcl_backend_response` it would tell \
            of the backend's connection, which never is TLS. Since Varnish 9.0.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// Where a connection can be asked about.
const PEERS: Subs = Subs::CLIENT.and(Sub::BackendResponse.only());

const fn fact(name: &'static str, about: &'static str, returns: Type, call: Call) -> Function {
    Function { name, about, returns, params: &[], from: PEERS, call }
}

/// A fingerprint, which Varnish has only where a parameter asks for it. None is made here.
const fn fingerprint(name: &'static str) -> Function {
    const ABOUT: &str = "No string: fingerprints of clients are not taken, as in Varnish while the \
                         parameters `tls_ja3` and `tls_ja4` are off.";
    let call: Call = |_, _| Ok(Value::String(None));
    Function { name, about: ABOUT, returns: Type::String, params: &[], from: Subs::ALL, call }
}

const FUNCTIONS: &[Function] = &[
    fact("is_tls", "Whether the connection is TLS.", Type::Bool, |ctx, _| {
        Ok(Value::Bool(facts(ctx).is_some_and(|tls| tls.is_tls)))
    }),
    fact("version", "The version of TLS: `TLSv1.3`.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.version.as_deref())
    }),
    fingerprint("ja3"),
    fingerprint("ja4"),
    fingerprint("ja4_r"),
    fingerprint("ja4_o"),
    fingerprint("ja4_ro"),
    fact("cipher", "The cipher suite.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cipher.as_deref())
    }),
    fact("authority", "The host name that the client asked for (SNI).", Type::String, |ctx, _| {
        text(ctx, |tls| tls.authority.as_deref())
    }),
    fact("alpn", "The protocol that ALPN has chosen.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.alpn.as_deref())
    }),
    fact("cert_sign", "How the server's certificate is signed.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_sign.as_deref())
    }),
    fact("cert_key", "The kind of key of the server's certificate.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_key.as_deref())
    }),
];

/// TLS of the connection that the subroutine would tell of.
fn facts<'c>(ctx: &'c Ctx<'_>) -> Option<&'c TlsFacts> {
    let is_clients = ctx.sub.side() == Side::Client;
    ctx.session.tls.as_deref().filter(|tls| is_clients && tls.is_tls)
}

fn text(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> Option<&str>) -> Result<Value, Failure> {
    let text = facts(ctx).and_then(of);
    Ok(text.map_or(Value::String(None), |text| owned(text.as_bytes().to_vec())))
}
