//! VMOD `tls`: TLS on the client's connection, as in Varnish 9. Backends of programs are connected
//! without TLS, so their connection has none to report.

use crate::failure::ProgramFailure;
use crate::state::ctx::{Ctx, TlsFacts};
use crate::state::value::Value;
use crate::sub::{Sub, Subs, TaskSide};
use crate::types::Type;
use crate::vmod::{Call, Function, Module};
use crate::vmods::args::owned;

/// The module.
pub static MODULE: Module = Module {
    name: "tls",
    about: "TLS on the client connection, from Larder's own listener or the balancer's PROXY \
            header (version 2). In `vcl_backend_response`, it describes the backend connection, \
            which never uses TLS. Since Varnish 9.0.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// Subroutines with a connection to report on.
const PEERS: Subs = Subs::CLIENT.and(Sub::BackendResponse.only());

const fn fact(name: &'static str, about: &'static str, returns: Type, call: Call) -> Function {
    Function { name, about, returns, params: &[], from: PEERS, call }
}

/// A fingerprint, which Varnish has only with a parameter; not supported here.
const fn fingerprint(name: &'static str) -> Function {
    const ABOUT: &str = "Always no string: Larder takes no fingerprints of clients, like Varnish \
                         with the parameters `tls_ja3` and `tls_ja4` off.";
    let call: Call = |_, _| Ok(Value::String(None));
    Function { name, about: ABOUT, returns: Type::String, params: &[], from: Subs::ALL, call }
}

const FUNCTIONS: &[Function] = &[
    fact("is_tls", "Whether the connection uses TLS.", Type::Bool, |ctx, _| {
        Ok(Value::Bool(facts(ctx).is_some_and(|tls| tls.is_tls)))
    }),
    fact("version", "The TLS version, for example `TLSv1.3`.", Type::String, |ctx, _| {
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
    fact("authority", "The host name that the client requested (SNI).", Type::String, |ctx, _| {
        text(ctx, |tls| tls.authority.as_deref())
    }),
    fact("alpn", "The protocol that ALPN selected.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.alpn.as_deref())
    }),
    fact(
        "cert_sign",
        "The signature algorithm of the server's certificate.",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.cert_sign.as_deref()),
    ),
    fact("cert_key", "The key type of the server's certificate.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_key.as_deref())
    }),
];

/// TLS of the subroutine's connection.
fn facts<'c>(ctx: &'c Ctx<'_>) -> Option<&'c TlsFacts> {
    let is_clients = ctx.sub.side() == TaskSide::Client;
    ctx.session.tls.as_deref().filter(|tls| is_clients && tls.is_tls)
}

fn text(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> Option<&str>) -> Result<Value, ProgramFailure> {
    let text = facts(ctx).and_then(of);
    Ok(text.map_or(Value::String(None), |text| owned(text.as_bytes().to_vec())))
}
