//! `proxy`: what the PROXY header tells of TLS between the client and the balancer; where the TLS
//! is ours, the same of that.

use crate::failure::Failure;
use crate::state::ctx::{Ctx, TlsFacts};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::owned;

/// The module.
pub static MODULE: Module = Module {
    name: "proxy",
    about: "TLS on the client's connection: as the balancer's PROXY header (version 2) tells it, \
            or as our own listener has negotiated it. What is not known is no string, no, or 0.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const fn function(
    name: &'static str,
    about: &'static str,
    returns: Type,
    call: crate::vmod::Call,
) -> Function {
    Function { name, about, returns, params: &[], from: Subs::CLIENT, call }
}

const FUNCTIONS: &[Function] = &[
    function("alpn", "The protocol that ALPN has chosen.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.alpn.as_deref())
    }),
    function(
        "authority",
        "The host name that the client asked for (SNI).",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.authority.as_deref()),
    ),
    function("is_ssl", "Whether the client's connection is TLS.", Type::Bool, |ctx, _| {
        truth(ctx, |tls| tls.is_tls)
    }),
    function(
        "client_has_cert_sess",
        "Whether the client has shown a certificate in this TLS session.",
        Type::Bool,
        |ctx, _| truth(ctx, |tls| tls.has_cert_session),
    ),
    function(
        "client_has_cert_conn",
        "Whether the client has shown a certificate on this connection.",
        Type::Bool,
        |ctx, _| truth(ctx, |tls| tls.has_cert_connection),
    ),
    function(
        "ssl_verify_result",
        "What checking the client's certificate came to: 0 when it is good.",
        Type::Int,
        |ctx, _| Ok(Value::Int(ctx.session.tls.as_ref().map_or(0, |tls| tls.verify_result))),
    ),
    function("ssl_version", "The version of TLS: `TLSv1.3`.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.version.as_deref())
    }),
    function(
        "client_cert_cn",
        "Common name of the client's certificate.",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.client_cert_cn.as_deref()),
    ),
    function("ssl_cipher", "The cipher suite.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cipher.as_deref())
    }),
    function("cert_sign", "How the server's certificate is signed.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_sign.as_deref())
    }),
    function("cert_key", "The kind of key of the server's certificate.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_key.as_deref())
    }),
];

fn text(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> Option<&str>) -> Result<Value, Failure> {
    let text = ctx.session.tls.as_deref().and_then(of);
    Ok(text.map_or(Value::String(None), |text| owned(text.as_bytes().to_vec())))
}

fn truth(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> bool) -> Result<Value, Failure> {
    Ok(Value::Bool(ctx.session.tls.as_deref().is_some_and(of)))
}
