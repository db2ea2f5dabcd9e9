//! Parameters as variables: `param` of Varnish 8.0. Each read gives the current value, never a
//! cached one.

use super::var::{Var, param};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;

/// Defines the table: each variable reads the parameter of its name.
macro_rules! params {
    ($($name:literal $kind:ident;)*) => {
        &[$(Var::read(
            concat!("param.", $name),
            Type::$kind,
            Subs::ALL,
            |ctx| params!(@value $kind, param(ctx, $name)),
            concat!("The parameter `", $name, "`."),
        )),*]
    };
    (@value Duration, $value:expr) => { Value::Duration($value) };
    (@value $kind:ident, $value:expr) => { Value::$kind($value as i64) };
}

/// Variables of `param`.
pub(super) const PARAM: &[Var] = params! {
    "backend_idle_timeout" Duration;
    "backend_wait_limit" Int;
    "backend_wait_timeout" Duration;
    "between_bytes_timeout" Duration;
    "connect_timeout" Duration;
    "default_grace" Duration;
    "default_keep" Duration;
    "default_ttl" Duration;
    "first_byte_timeout" Duration;
    "idle_send_timeout" Duration;
    "max_esi_depth" Int;
    "max_restarts" Int;
    "max_retries" Int;
    "pipe_task_deadline" Duration;
    "pipe_timeout" Duration;
    "send_timeout" Duration;
    "shortlived" Duration;
    "timeout_idle" Duration;
    "transit_buffer" Bytes;
    "uncacheable_ttl" Duration;
};
