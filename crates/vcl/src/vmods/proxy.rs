//! VMOD `proxy`: TLS between client and balancer by the PROXY header, or TLS of Larder's own
//! listener. It only reads.

use crate::failure::ProgramFailure;
use crate::state::ctx::{Ctx, TlsFacts};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::owned;

/// The module.
pub static MODULE: Module = Module {
    name: "proxy",
    about: "TLS on the client connection, from the balancer's PROXY header (version 2) or Larder's \
            own listener. Unknown values are no string, false, or 0.",
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
    function("alpn", "The protocol that ALPN selected.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.alpn.as_deref())
    }),
    function(
        "authority",
        "The host name that the client requested (SNI).",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.authority.as_deref()),
    ),
    function("is_ssl", "Whether the client connection uses TLS.", Type::Bool, |ctx, _| {
        truth(ctx, |tls| tls.is_tls)
    }),
    function(
        "client_has_cert_sess",
        "Whether the client has sent a certificate in this TLS session.",
        Type::Bool,
        |ctx, _| truth(ctx, |tls| tls.has_cert_session),
    ),
    function(
        "client_has_cert_conn",
        "Whether the client has sent a certificate on this connection.",
        Type::Bool,
        |ctx, _| truth(ctx, |tls| tls.has_cert_connection),
    ),
    function(
        "ssl_verify_result",
        "The result of verifying the client's certificate. 0: valid.",
        Type::Int,
        |ctx, _| Ok(Value::Int(ctx.session.tls.as_ref().map_or(0, |tls| tls.verify_result))),
    ),
    function("ssl_version", "The TLS version, for example `TLSv1.3`.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.version.as_deref())
    }),
    function(
        "client_cert_cn",
        "The common name of the client's certificate.",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.client_cert_cn.as_deref()),
    ),
    function("ssl_cipher", "The cipher suite.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cipher.as_deref())
    }),
    function(
        "cert_sign",
        "The signature algorithm of the server's certificate.",
        Type::String,
        |ctx, _| text(ctx, |tls| tls.cert_sign.as_deref()),
    ),
    function("cert_key", "The key type of the server's certificate.", Type::String, |ctx, _| {
        text(ctx, |tls| tls.cert_key.as_deref())
    }),
];

fn text(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> Option<&str>) -> Result<Value, ProgramFailure> {
    let text = ctx.session.tls.as_deref().and_then(of);
    Ok(text.map_or(Value::String(None), |text| owned(text.as_bytes().to_vec())))
}

fn truth(ctx: &Ctx<'_>, of: fn(&TlsFacts) -> bool) -> Result<Value, ProgramFailure> {
    Ok(Value::Bool(ctx.session.tls.as_deref().is_some_and(of)))
}
