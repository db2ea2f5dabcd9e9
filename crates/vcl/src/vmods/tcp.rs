//! VMOD `tcp`: the kernel's measurements of the client's connection, and settings of its socket. It
//! never touches backend connections.

use std::io;

use crate::failure::ProgramFailure;
use crate::state::ctx::{Connection, Ctx, TcpInfo};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "tcp",
    about: "TCP settings of the client connection. Over a Unix socket, or if the kernel refuses, \
            the log gets an error.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "congestion_algorithm",
        about: "Sets the congestion control algorithm of the connection. Returns 0, or -1 on \
                failure, usually because the kernel lacks the algorithm.",
        returns: Type::Int,
        params: &[required_parameter("algorithm", Type::String)],
        from: Subs::CLIENT,
        call: congestion,
    },
    Function {
        name: "dump_info",
        about: "Writes the kernel's measurements of the connection and its congestion control \
                algorithm to the log.",
        returns: Type::Void,
        params: &[],
        from: Subs::CLIENT,
        call: dump,
    },
    Function {
        name: "get_estimated_rtt",
        about: "The kernel's estimate of the round-trip time, in whole milliseconds. -1 if it is \
                unknown.",
        returns: Type::Real,
        params: &[],
        from: Subs::CLIENT,
        call: round_trip,
    },
    Function {
        name: "set_socket_pace",
        about: "Limits sending to this number of kilobytes (1024 bytes) per second from now on. 0 \
                or less: no limit. Larder itself enforces the rate, not the kernel.",
        returns: Type::Void,
        params: &[required_parameter("", Type::Int)],
        from: Subs::CLIENT,
        call: pace,
    },
];

/// Control over the connection; without one the error is that of a unix socket.
fn connection<'a>(ctx: &'a Ctx<'_>) -> io::Result<&'a dyn Connection> {
    ctx.session.control.as_deref().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn measured(ctx: &Ctx<'_>) -> io::Result<TcpInfo> {
    connection(ctx)?.measured()
}

fn log(ctx: &Ctx<'_>, tag: Tag, line: &str) {
    ctx.environment.log(tag, line.as_bytes());
}

fn congestion(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let name = String::from_utf8_lossy(args.bytes(0)).into_owned();
    let set = connection(ctx).and_then(|connection| connection.set_congestion(&name));
    if let Err(error) = &set {
        log(ctx, Tag::Error, &format!("tcp.congestion_algorithm(\"{name}\"): {error}"));
    }
    Ok(Value::Int(if set.is_ok() { 0 } else { -1 }))
}

fn dump(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    let algorithm = connection(ctx).and_then(|connection| connection.congestion());
    match measured(ctx).and_then(|measured| Ok((measured, algorithm?))) {
        Ok((m, algorithm)) => {
            let line = format!(
                "tcpi: snd_mss={} rcv_mss={} lost={} retrans={}",
                m.snd_mss, m.rcv_mss, m.lost, m.retrans
            );
            log(ctx, Tag::Log, &line);
            let line = format!(
                "tcpi2: pmtu={} rtt={} rttvar={} snd_cwnd={} advmss={} reordering={}",
                m.pmtu, m.rtt, m.rttvar, m.snd_cwnd, m.advmss, m.reordering
            );
            log(ctx, Tag::Log, &line);
            log(ctx, Tag::Log, &format!("congestion algorithm: {algorithm}"));
        }
        Err(error) => log(ctx, Tag::Error, &format!("tcp.dump_info(): {error}")),
    }
    Ok(Value::Void)
}

fn round_trip(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    let measured = measured(ctx);
    if let Err(error) = &measured {
        log(ctx, Tag::Error, &format!("tcp.get_estimated_rtt(): {error}"));
    }
    // Whole milliseconds, as in Varnish's VMOD.
    Ok(Value::Real(measured.map_or(-1.0, |measured| f64::from(measured.rtt / 1000))))
}

fn pace(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let kb = u64::try_from(args.int(0).unwrap_or_default()).unwrap_or_default();
    if let Some(control) = &ctx.session.control {
        control.set_pace(kb.saturating_mul(1024));
        log(ctx, Tag::Log, &format!("vmod-tcp: Socket paced to {kb} KB/s."));
    }
    Ok(Value::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sub::Sub;
    use crate::testing::SubroutineFixture;

    fn lines(fixture: &SubroutineFixture) -> Vec<String> {
        let log = fixture.environment.log.borrow();
        log.iter().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn an_algorithm_is_the_kernels_to_have() {
        let mut fixture = SubroutineFixture::bare();
        for (name, answer) in [("reno", 0), ("", -1), ("nope", -1)] {
            let args = [Value::String(Some(name.into()))];
            let answered = congestion(&mut fixture.ctx(Sub::Recv), &args);
            assert!(matches!(answered, Ok(Value::Int(n)) if n == answer), "{name}");
        }
        assert_eq!(*fixture.connection.congestion.borrow(), "reno");
        assert!(lines(&fixture)[1].starts_with("tcp.congestion_algorithm(\"nope\"): "));
    }

    // Lines of the VMOD for Varnish 7.1.1, except the last.
    #[test]
    fn measurements_of_the_kernel_are_logged() {
        let mut fixture = SubroutineFixture::bare();
        fixture.connection.measured.set(Some(TcpInfo {
            rtt: 2_700,
            pmtu: 65_535,
            ..Default::default()
        }));
        dump(&mut fixture.ctx(Sub::Recv), &[]).expect("it can be written");
        assert_eq!(
            lines(&fixture),
            [
                "tcpi: snd_mss=0 rcv_mss=0 lost=0 retrans=0",
                "tcpi2: pmtu=65535 rtt=2700 rttvar=0 snd_cwnd=0 advmss=0 reordering=0",
                "congestion algorithm: cubic",
            ]
        );
        let rtt = round_trip(&mut fixture.ctx(Sub::Recv), &[]);
        assert!(matches!(rtt, Ok(Value::Real(ms)) if ms == 2.0));
    }

    #[test]
    fn where_there_is_no_tcp_that_is_an_error_of_the_log() {
        let mut fixture = SubroutineFixture::bare();
        fixture.session.control = None;
        let name = [Value::String(Some("reno".into()))];
        let answered = congestion(&mut fixture.ctx(Sub::Recv), &name);
        assert!(matches!(answered, Ok(Value::Int(-1))));
        let rtt = round_trip(&mut fixture.ctx(Sub::Recv), &[]);
        assert!(matches!(rtt, Ok(Value::Real(ms)) if ms == -1.0));
        dump(&mut fixture.ctx(Sub::Recv), &[]).expect("it says so");
        assert_eq!(lines(&fixture).len(), 3);
    }
}
