//! `tcp`: what is asked of the client's connection; the listener carries it out.

use crate::ctx::{Ctx, Tag};
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, must};

/// The module.
pub static MODULE: Module = Module {
    name: "tcp",
    about: "TCP on the client's connection. What the kernel has measured of it is not known to \
            Larder: there is no estimate of the round trip.",
    functions: FUNCTIONS,
    classes: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "congestion_algorithm",
        about: "Asks for this congestion control algorithm; 0, or -1 for what cannot be the name \
                of one. One that the kernel does not have changes nothing.",
        returns: Type::Int,
        params: &[must("algorithm", Type::String)],
        from: Subs::CLIENT,
        call: congestion,
    },
    Function {
        name: "dump_info",
        about: "Writes what is known of the connection to the log: its ends and what was asked \
                of it.",
        returns: Type::Void,
        params: &[],
        from: Subs::CLIENT,
        call: dump,
    },
    Function {
        name: "get_estimated_rtt",
        about: "The round trip time in milliseconds: always -1, not known.",
        returns: Type::Real,
        params: &[],
        from: Subs::CLIENT,
        call: |_, _| Ok(Value::Real(-1.0)),
    },
    Function {
        name: "set_socket_pace",
        about: "Asks for at most so many kilobytes per second.",
        returns: Type::Void,
        params: &[must("", Type::Int)],
        from: Subs::CLIENT,
        call: |ctx, args| {
            ctx.session.tcp.pace_kb = args.int(0).and_then(|n| u64::try_from(n).ok());
            Ok(Value::Void)
        },
    },
];

/// The longest name the kernel takes (`TCP_CA_NAME_MAX`, its end included).
const NAME_MAX: usize = 15;

fn congestion(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, Failure> {
    let name = std::str::from_utf8(args.bytes(0)).unwrap_or_default();
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_name) {
        return Ok(Value::Int(-1));
    }
    ctx.session.tcp.congestion = Some(name.into());
    Ok(Value::Int(0))
}

fn dump(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, Failure> {
    let session = &*ctx.session;
    let end = |end: Option<std::net::SocketAddr>| {
        end.map_or_else(|| "unix".to_string(), |end| end.to_string())
    };
    let line = format!(
        "tcpi: remote={} local={} congestion={} pace={}",
        end(session.remote),
        end(session.local),
        session.tcp.congestion.as_deref().unwrap_or("default"),
        session.tcp.pace_kb.map_or_else(|| "none".to_string(), |kb| format!("{kb}KB/s")),
    );
    ctx.world.log(Tag::Log, line.as_bytes());
    Ok(Value::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sub::Sub;
    use crate::testing::Bench;

    #[test]
    fn names_of_algorithms_are_handed_on() {
        let mut bench = Bench::bare();
        for (name, answer) in [("cubic", 0), ("", -1), ("a b", -1), ("far_too_long_to_be", -1)] {
            let args = [Value::String(Some(name.into()))];
            let answered = congestion(&mut bench.ctx(Sub::Recv), &args);
            assert!(matches!(answered, Ok(Value::Int(n)) if n == answer), "{name}");
        }
        assert_eq!(bench.session.tcp.congestion.as_deref(), Some("cubic"));
        dump(&mut bench.ctx(Sub::Recv), &[]).expect("it can be written");
        let line = String::from_utf8(bench.world.log.borrow()[0].1.clone()).expect("text");
        assert!(line.contains("remote=192.0.2.7:40000") && line.contains("congestion=cubic"));
    }
}
