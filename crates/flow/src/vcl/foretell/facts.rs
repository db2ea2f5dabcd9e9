//! Facts of a forecast about stored objects and backends.

use cache::Object;
use message::Response;
use policy::DecisionStep;
use vcl::backend::{Backend, Leaf};
use vcl::ctx::BereqState;
use vcl::params::Param;
use vcl::parse::BUILTIN_NAME;
use vcl::program::Program;
use vcl::rules::lifetime;

use super::rehearsal::RehearsalContext;
use crate::forecast::words::duration;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::vcl::ProgramRequest;
use crate::stored_heads::stored_head;
use crate::vcl::backend_request;

/// Program lines that are reported as possible causes.
const LINES_TOLD: usize = 5;

/// Reports how fresh `object` is and the source of its times: its stored head, or the program.
pub(super) fn freshness(
    turn: &ProgramRequest,
    env: &RehearsalContext<'_>,
    object: &Object,
) -> DecisionStep {
    let (live, now_ms) = (env.live, env.now.mono_ms);
    let status = object.status();
    let head = stored_head(object).unwrap_or_else(|| Response::new(status));
    let status = status.code();
    let born = env.time() - object.age_ms(now_ms) as f64 / 1000.0;
    let planned = lifetime::of(status, &head.headers, born, &live.vcl.params);
    let program = turn.instance.program();
    let is_planned = |ms: u64, planned: f64| (ms as f64 - planned.max(0.0) * 1000.0).abs() < 1000.0;
    let by_program = "set by the program, or by parameters that have changed since";
    let is_own = !is_planned(object.lifetime_ms(), planned.ttl);
    let from = match is_own {
        true => by_program.to_owned(),
        false => lifetime::source(status, &head.headers, born, &live.vcl.params),
    };
    let over_ms = i64::try_from(now_ms).unwrap_or(i64::MAX) - object.fresh_until_ms();
    let left = duration(over_ms.unsigned_abs());
    let left = if over_ms < 0 { format!("fresh for {left}") } else { format!("stale for {left}") };
    let (ttl, age) = (duration(object.lifetime_ms()), duration(object.age_ms(now_ms)));
    let mut step = DecisionStep::new("freshness", format!("ttl {ttl}: {from}; age {age}; {left}"));
    if is_own {
        step = lines_with(program, "beresp.ttl", step);
    }
    let is_named = planned.grace != live.vcl.params.seconds(Param::DefaultGrace);
    for (name, ms, planned, field) in [
        ("grace", object.grace_ms(), planned.grace, "beresp.grace"),
        ("keep", object.stale_if_error_ms(), planned.keep, "beresp.keep"),
    ] {
        let own = !is_planned(ms, planned);
        let from = match (own, name) {
            (true, _) => by_program,
            (false, "grace") if is_named => "`stale-while-revalidate` of Cache-Control",
            (false, "grace") => "parameter `default_grace`",
            (false, _) => "parameter `default_keep`",
        };
        step = step.fact(name, format!("{}: {from}", duration(ms)));
        if own {
            step = lines_with(program, field, step);
        }
    }
    let asked = |name: &str, own: Option<f64>| {
        own.map(|own| format!("{name} is {own} s for this request")).unwrap_or_default()
    };
    step.fact("req.grace", asked("it", turn.state.grace))
        .fact("req.ttl", asked("it", turn.state.ttl))
}

/// Adds the lines of `program` that set `name`, without those of the builtin VCL.
fn lines_with(program: &Program, name: &'static str, step: DecisionStep) -> DecisionStep {
    let files = program.sources().files().iter().filter(|file| &*file.name != BUILTIN_NAME);
    let lines = files.flat_map(|file| {
        let lines = file.text.split(|byte| *byte == b'\n').enumerate();
        lines.filter_map(move |(number, line)| {
            let line = line.trim_ascii();
            let sets = line.starts_with(b"#") || line.starts_with(b"//");
            let at = memchr::memmem::find(line, name.as_bytes()).filter(|_| !sets)?;
            let is_set = line[..at].trim_ascii_end().ends_with(b"set");
            let text = String::from_utf8_lossy(line);
            is_set.then(|| format!("{}:{}: {text}", file.name, number + 1))
        })
    });
    lines.take(LINES_TOLD).fold(step, |step, line| step.fact("may be from", line))
}

/// Reports the backend that would be asked.
pub(super) fn backend(live: &LiveConfiguration, state: &BereqState, how: &str) -> DecisionStep {
    match &state.backend {
        Backend::None => DecisionStep::new(
            "backend",
            "there is none: the fetch fails, and vcl_backend_error answers",
        ),
        Backend::Leaf(leaf) => {
            let place = place_of(leaf);
            let why = match leaf.is_healthy() {
                true => format!("`{}` ({place}) would be {how}", leaf.name),
                false => format!(
                    "`{}` ({place}) is unhealthy: it is not asked, and vcl_backend_error answers",
                    leaf.name
                ),
            };
            DecisionStep::new("backend", why).fact("timeouts", timeouts(live, state, Some(leaf)))
        }
        Backend::Director(director) => {
            let members = director.members();
            let healthy = members.iter().filter(|member| member.health().is_healthy).count();
            let (name, kind) = (director.name(), director.kind());
            let why = match director.health().is_healthy {
                true => format!("one of director `{name}` ({kind}) would be {how}"),
                false => format!(
                    "director `{name}` ({kind}) has no healthy backend: vcl_backend_error answers"
                ),
            };
            let names = members.iter().map(|member| match member.health().is_healthy {
                true => member.name().to_owned(),
                false => format!("{} (sick)", member.name()),
            });
            DecisionStep::new("backend", why)
                .fact("healthy", format!("{healthy} of {}", members.len()))
                .fact("members", names.collect::<Vec<_>>().join(", "))
                .fact("timeouts", timeouts(live, state, None))
        }
    }
}

fn place_of(leaf: &Leaf) -> String {
    let spec = &leaf.spec;
    match &spec.path {
        Some(path) => path.to_string(),
        None => format!("{}:{}", spec.host, spec.port),
    }
}

fn timeouts(live: &LiveConfiguration, state: &BereqState, leaf: Option<&Leaf>) -> String {
    let spec = leaf.map(|leaf| &leaf.spec);
    let [connect, first, between] = backend_request::timeouts(&live.vcl.params, state, spec);
    format!("connect {connect} s, first byte {first} s, between bytes {between} s")
}

/// Reports which responses would be stored.
pub(super) fn storing(live: &LiveConfiguration, private: bool) -> DecisionStep {
    if private {
        let why = "never: what goes past the cache is for this client alone";
        return DecisionStep::new("storing", why);
    }
    let why = "vcl_backend_response decides when the answer is there";
    let seconds = |param| format!("{} s", live.vcl.params.seconds(param));
    DecisionStep::new("storing", why)
        .fact("default_ttl", seconds(Param::DefaultTtl))
        .fact("default_grace", seconds(Param::DefaultGrace))
        .fact("default_keep", seconds(Param::DefaultKeep))
}
