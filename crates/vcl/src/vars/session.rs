//! Session variables: the client's connection, its session, the server, and the time. Only timeouts
//! and `client.identity` can be set.

use std::net::SocketAddr;

use bytes::Bytes;

use super::var::{Var, number, text};
use crate::failure::ProgramFailure;
use crate::state::ctx::{ConnectionTimeouts, Ctx};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;

/// Variables of `local`, `server`, `remote` and `client`.
pub(super) const CONNECTION: &[Var] = &[
    Var::read(
        "client.identity",
        Type::String,
        Subs::BOTH,
        |ctx| Value::String(Some(identity(ctx))),
        "The identity of the client, for directors that select by it. The default is the address \
         in `client.ip`.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        ctx.session.identity = Some(value.into_bytes().unwrap_or_default());
        Ok(())
    }),
    Var::read(
        "client.ip",
        Type::Ip,
        Subs::BOTH,
        |ctx| Value::Ip(ctx.session.client),
        "The address of the client, from the connection or the PROXY header.",
    ),
    text!(
        "server.hostname",
        Subs::ALL,
        |ctx| Some(ctx.environment.hostname().as_bytes()),
        "The host name of the machine, from gethostname(3).",
    ),
    text!(
        "server.identity",
        Subs::ALL,
        |ctx| Some(ctx.environment.identity().as_bytes()),
        "The name of this instance. The default is the host name.",
    ),
    Var::read(
        "server.ip",
        Type::Ip,
        Subs::BOTH,
        |ctx| Value::Ip(ctx.session.server),
        "The address that the client connected to, from the listener or the PROXY header.",
    ),
    Var::read(
        "remote.ip",
        Type::Ip,
        Subs::BOTH,
        |ctx| Value::Ip(ctx.session.remote),
        "The remote address of the TCP connection: the client, or a proxy in front of Larder.",
    ),
    text!(
        "local.endpoint",
        Subs::BOTH,
        |ctx| Some(ctx.session.endpoint.as_bytes()),
        "The address of the listener as configured. For example, `:81` with `-a foo=:81`.",
    )
    .since_41(),
    Var::read(
        "local.ip",
        Type::Ip,
        Subs::BOTH,
        |ctx| Value::Ip(ctx.session.local),
        "The local address of the TCP connection.",
    ),
    text!(
        "local.socket",
        Subs::BOTH,
        |ctx| Some(ctx.session.socket.as_bytes()),
        "The name of the listener. For example, `foo` with `-a foo=:81`. Unnamed listeners are \
         `a0`, `a1`, ...",
    )
    .since_41(),
];

/// Variables of no message.
pub(super) const SPECIAL: &[Var] = &[Var::read(
    "now",
    Type::Time,
    Subs::ALL,
    |ctx| Value::Time(ctx.now),
    "The current time. It does not change while a subroutine runs.",
)];

/// Variables of `sess`.
pub(super) const SESS: &[Var] = &[
    Var::read(
        "sess.idle_send_timeout",
        Type::Duration,
        Subs::CLIENT,
        |ctx| timeout(ctx, |times| times.idle_send, "idle_send_timeout"),
        "Maximum time for which the client may read no bytes of a response. 0: no limit.",
    )
    .set(Subs::CLIENT, |ctx, value| set_timeout(ctx, value, |times| &mut times.idle_send))
    .unset(Subs::CLIENT, |ctx| change(ctx, |times| times.idle_send = None)),
    Var::read(
        "sess.send_timeout",
        Type::Duration,
        Subs::CLIENT,
        |ctx| timeout(ctx, |times| times.send, "send_timeout"),
        "Maximum time for sending a whole response over HTTP/1.",
    )
    .set(Subs::CLIENT, |ctx, value| set_timeout(ctx, value, |times| &mut times.send))
    .unset(Subs::CLIENT, |ctx| change(ctx, |times| times.send = None)),
    Var::read(
        "sess.timeout_idle",
        Type::Duration,
        Subs::CLIENT,
        |ctx| timeout(ctx, |times| times.idle, "timeout_idle"),
        "Maximum idle time of the connection between requests.",
    )
    .set(Subs::CLIENT, |ctx, value| set_timeout(ctx, value, |times| &mut times.idle))
    .unset(Subs::CLIENT, |ctx| change(ctx, |times| times.idle = None)),
    Var::read(
        "sess.timeout_linger",
        Type::Duration,
        Subs::CLIENT,
        |ctx| timeout(ctx, |times| times.linger, "timeout_linger"),
        "Time for which Varnish keeps a thread with an idle connection. The value has no effect, \
         as Larder has no such threads.",
    )
    .set(Subs::CLIENT, |ctx, value| set_timeout(ctx, value, |times| &mut times.linger))
    .unset(Subs::CLIENT, |ctx| change(ctx, |times| times.linger = None)),
    Var::read(
        "sess.xid",
        Type::Int,
        Subs::BOTH,
        |ctx| number(ctx.session.xid),
        "The session number.",
    )
    .since_41(),
];

/// `client.identity`.
pub(crate) fn identity(ctx: &Ctx<'_>) -> Bytes {
    if let Some(identity) = &ctx.session.identity {
        return identity.clone();
    }
    let text = |client: SocketAddr| client.ip().to_canonical().to_string().into();
    // Varnish's value for a unix socket.
    ctx.session.client.map_or_else(|| Bytes::from_static(b"0.0.0.0"), text)
}

fn timeout(ctx: &Ctx<'_>, of: fn(&ConnectionTimeouts) -> Option<f64>, param: &str) -> Value {
    let set = ctx.session.control.as_ref().and_then(|control| of(&control.times()));
    Value::Duration(set.or_else(|| ctx.environment.param(param)).unwrap_or_default())
}

fn set_timeout(
    ctx: &Ctx<'_>,
    value: Value,
    field: fn(&mut ConnectionTimeouts) -> &mut Option<f64>,
) -> Result<(), ProgramFailure> {
    change(ctx, |times| *field(times) = Some(value.seconds().max(0.0)));
    Ok(())
}

/// Changes timeouts of the connection, if there is one.
fn change(ctx: &Ctx<'_>, how: impl FnOnce(&mut ConnectionTimeouts)) {
    if let Some(control) = &ctx.session.control {
        let mut times = control.times();
        how(&mut times);
        control.set_times(times);
    }
}
