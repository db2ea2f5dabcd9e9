//! Arguments of `larder bench`, and the settings made from them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::settings::{Background, Load, MeasurementEnd, Protocol, Settings, Tls, Visit};
use bench::target::TargetServer;
use bench::urls::{List, RequestOrder};
use clap::{Args, ValueEnum};

/// Default number of connections of an open loop.
const OPEN_CONNECTIONS: usize = 256;
/// Default number of concurrent sessions.
const SESSIONS: usize = 10_000;
/// Default number of connections of a closed loop.
const CLOSED_CONNECTIONS: f64 = 10.0;

/// Requests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct AskArgs {
    /// URLs; with a list of paths, the servers to send them to.
    #[arg(value_name = "URL")]
    pub(crate) url: Vec<String>,
    /// File of URLs or paths, one in a line: `[METHOD] URL [BODY]`, with variables as siege has
    /// them; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sitemap", "log"])]
    pub(crate) urls: Option<PathBuf>,
    /// Sitemap whose pages are requested, by file or URL; indexes are followed.
    #[arg(long, value_name = "FILE|URL", conflicts_with = "log")]
    sitemap: Option<String>,
    /// Access log (combined, common, or Larder's JSON) whose requests are repeated.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Order of the list.
    #[arg(long, value_enum, default_value = "sequence")]
    order: OrderArg,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Method of URLs on the command line.
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Header field, `Name: value`; repeatable.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    header: Vec<String>,
    /// Cookie, `name=value`; repeatable.
    #[arg(long, value_name = "PAIR")]
    cookie: Vec<String>,
    /// Body of URLs on the command line.
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// File with the body of URLs on the command line.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    body_file: Option<PathBuf>,
    /// Accept compressed responses, as browsers do.
    #[arg(long)]
    compressed: bool,
    /// Make requests conditional: with the validator of the last response to the same request, if
    /// it had one (RFC 9110 13.1).
    #[arg(long)]
    conditional: bool,
    /// Request a range of each response, such as `0-1023`.
    #[arg(long, value_name = "RANGE")]
    range: Option<String>,
}

/// The load.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Connections; each sends its next request after a response. A number, or several, as in
    /// `1,2,5,10..400` (a range takes the steps 1, 2, 5, 10; `10..50/10` names the step). With
    /// --rate, the maximum.
    #[arg(short = 'c', long, value_name = "LIST")]
    connections: Option<String>,
    /// Requests a second, independent of responses; each is timed from when it was due; a number or
    /// several.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["ramp", "sessions", "replay"])]
    rate: Option<String>,
    /// Intervals between the requests of --rate.
    #[arg(long, value_enum, default_value = "even")]
    arrivals: ArrivalsArg,
    /// Increase the connections over the duration, as in `1..1000`.
    #[arg(long, value_name = "A..B", conflicts_with_all = ["sessions", "replay"])]
    ramp: Option<String>,
    /// Sessions that begin in a second, each over a connection of its own.
    #[arg(long, value_name = "LIST", conflicts_with = "replay")]
    sessions: Option<String>,
    /// Bursts of requests in a session.
    #[arg(long, value_name = "N", default_value_t = 10)]
    bursts: usize,
    /// Requests in a burst, one after another.
    #[arg(long, value_name = "N", default_value_t = 1)]
    calls: usize,
    /// Time between the bursts of a session.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    think: Duration,
    /// Replay the list at its recorded times, by this factor faster; the list must be a log.
    #[arg(long, value_name = "SPEED")]
    replay: Option<String>,
    /// Duration of a round; 10 s, or 0.5 s of a comparison, if not given.
    #[arg(short = 'd', long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Requests (or sessions) of a round, in place of its duration.
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["duration", "ramp"])]
    requests: Option<u64>,
    /// Warm-up: time under load before a round, which is not counted; 1 s, or 0.1 s of a
    /// comparison, if not given.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    warm_up: Option<Duration>,
    /// Rounds at each value, interleaved; 1, or 40 of a comparison, if not given.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// Timeout of a response.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// Threads; by default one for each core.
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Additional idle connections.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "http2")]
    idle: usize,
    /// Additional slow readers: connections that repeat requests and read slowly.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "http2")]
    slow: usize,
    /// Bytes a second that each slow reader reads.
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    slow_rate: usize,
}

/// The protocol.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protocol")]
pub(crate) struct ProtocolArgs {
    /// HTTP/1.0.
    #[arg(long, conflicts_with = "http2")]
    http10: bool,
    /// HTTP/2, with this number of concurrent streams on each connection.
    #[arg(long, value_name = "STREAMS", num_args = 0..=1, default_missing_value = "1")]
    http2: Option<usize>,
    /// Open a connection for every request.
    #[arg(long, conflicts_with_all = ["http2", "pipeline"])]
    no_keep_alive: bool,
    /// Requests sent on a connection before the first response is read.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "http2")]
    pipeline: usize,
    /// Unix socket of the server.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// File with the authorities that certificates are verified with, PEM; by default the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept every certificate.
    #[arg(short = 'k', long, conflicts_with = "ca")]
    insecure: bool,
    /// Do not resume TLS sessions.
    #[arg(long)]
    no_resume: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderArg {
    /// In the order of the list.
    Sequence,
    /// Shuffled.
    Shuffle,
    /// Each drawn independently.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsArg {
    /// Equal intervals.
    Even,
    /// Exponential intervals, as of independent clients.
    Random,
}

/// A duration on the command line.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    base::units::parse_duration_ms(text).map(Duration::from_millis).map_err(|error| {
        format!("{error}: a duration is a number and a unit, such as 500ms, 10s or 2m")
    })
}

/// The values of a list such as `1,2,5,10..400`.
fn values(text: &str) -> Result<Vec<f64>, String> {
    let wrong = |part: &str| {
        format!(
            "`{part}` of `{text}`: a value is a number above 0, or a range such as 10..400 or 10..50/10"
        )
    };
    let number = |part: &str| {
        part.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0)
    };
    let mut all: Vec<f64> = Vec::new();
    for part in text.split(',') {
        let Some((from, to)) = part.split_once("..") else {
            all.push(number(part).ok_or_else(|| wrong(part))?);
            continue;
        };
        let (to, step) = to.split_once('/').map_or((to, None), |(to, step)| (to, Some(step)));
        let (Some(from), Some(to)) = (number(from), number(to)) else {
            return Err(wrong(part));
        };
        let step = step.map(|step| number(step).ok_or_else(|| wrong(part))).transpose()?;
        if from > to || step.is_some_and(|step| (to - from) / step > 1000.0) {
            return Err(wrong(part));
        }
        all.extend(range(from, to, step));
    }
    all.dedup();
    Ok(all)
}

/// The values from `from` to `to`, both included: by `step`, or those of the series 1, 2, 5, 10.
fn range(from: f64, to: f64, step: Option<f64>) -> Vec<f64> {
    let mut all = vec![from];
    match step {
        Some(step) => {
            let steps = ((to - from) / step + 1e-9) as u32;
            all.extend((1..=steps).map(|nth| from + step * f64::from(nth)));
        }
        None => {
            let mut ten = 10_f64.powf(from.log10().floor());
            while ten <= to {
                let each = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * ten);
                all.extend(each.filter(|value| *value > from && *value < to));
                ten *= 10.0;
            }
        }
    }
    if all.last().is_none_or(|last| (to - last).abs() > 1e-9) {
        all.push(to);
    }
    all
}

impl AskArgs {
    /// The arguments for a single URL.
    pub(crate) fn of_one(&self, url: &str) -> Self {
        Self { url: vec![url.to_owned()], ..self.clone() }
    }

    /// The list of requests; unreadable lines are reported on standard error. If the command line
    /// names servers, the list's requests go to these.
    fn list(&self, tls: &Tls) -> Result<(Vec<TargetServer>, List), String> {
        let list = if let Some(path) = &self.urls {
            let (name, text) = read(path)?;
            bench::urls::from_text(&name, &text)
        } else if let Some(place) = &self.sitemap {
            sitemap(place, tls)?
        } else if let Some(path) = &self.log {
            let (name, text) = read(path)?;
            bench::urls::from_log(&name, &text)
        } else {
            return self.command_line().map(|list| (Vec::new(), list));
        };
        if list.faults.unread > 0 {
            base::say!("{}", list.faults.to_string().trim_end());
        }
        if list.is_empty() {
            return Err("the list of URLs is empty".to_owned());
        }
        if self.url.is_empty() {
            return Ok((Vec::new(), list));
        }
        let servers = self.url.iter().map(|url| TargetServer::parse(url).map(|(target, _)| target));
        Ok((servers.collect::<Result<_, _>>()?, list.into_paths()))
    }

    /// The list that the command line itself describes.
    fn command_line(&self) -> Result<List, String> {
        if self.url.is_empty() {
            return Err(
                "no requests: name a URL, or a list by --urls, --sitemap or --log".to_owned()
            );
        }
        let body = match (&self.body, &self.body_file) {
            (Some(text), _) => bench::urls::Body::Text(text.clone()),
            (None, Some(path)) => bench::urls::Body::File(path.clone()),
            (None, None) => bench::urls::Body::None,
        };
        let list = List::from_asks(self.url.iter().map(|url| bench::urls::ListedRequest {
            method: self.method.clone(),
            url: url.clone(),
            body: body.clone(),
        }));
        if list.faults.unread > 0 {
            return Err(list.faults.to_string().trim_end().to_owned());
        }
        Ok(list)
    }

    fn headers(&self) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        for field in &self.header {
            let (name, value) = field
                .split_once(':')
                .ok_or_else(|| format!("-H '{field}': a field is `Name: value`"))?;
            let value = value.trim();
            if !message::header::is_token(name.as_bytes()) || value.contains(['\r', '\n', '\0']) {
                return Err(format!("-H '{field}': a field is `Name: value`"));
            }
            headers.push((name.to_owned(), value.to_owned()));
        }
        if !self.cookie.is_empty() {
            headers.push(("Cookie".to_owned(), self.cookie.join("; ")));
        }
        if self.compressed {
            headers.push(("Accept-Encoding".to_owned(), "gzip, deflate, br, zstd".to_owned()));
        }
        if let Some(range) = &self.range {
            headers.push(("Range".to_owned(), format!("bytes={range}")));
        }
        Ok(headers)
    }
}

/// The pages of a sitemap, by its file or its URL.
pub(crate) fn sitemap(place: &str, tls: &Tls) -> Result<List, String> {
    let mut fetch = |url: &str| bench::load::fetch(url, tls);
    let first = if place.contains("://") {
        fetch(place).map_err(|error| format!("{place}: {error}"))?
    } else {
        read(Path::new(place))?.1
    };
    Ok(bench::urls::from_sitemap(place, &first, &mut fetch))
}

/// A file, or standard input, with its name in messages.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), String> {
    if path.as_os_str() == "-" {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text)
            .map_err(|error| format!("standard input: {error}"))?;
        return Ok(("standard input".to_owned(), text));
    }
    let name = path.display().to_string();
    std::fs::read(path).map(|text| (name.clone(), text)).map_err(|error| format!("{name}: {error}"))
}

impl LoadArgs {
    /// The load, and the values of the sweep.
    fn load(&self) -> Result<(Load, Vec<f64>), String> {
        let most = |default: usize| -> Result<usize, String> {
            let Some(text) = &self.connections else {
                return Ok(default);
            };
            match values(text)?.as_slice() {
                [one] => Ok(*one as usize),
                _ => Err(format!("-c {text}: here it is the most connections, a single number")),
            }
        };
        if let Some(ramp) = &self.ramp {
            let (from, to) = ramp
                .split_once("..")
                .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)))
                .filter(|(from, to)| from < to)
                .ok_or_else(|| format!("--ramp {ramp}: a ramp is `A..B`, such as 1..1000"))?;
            return Ok((Load::Ramp { from, to }, vec![to as f64]));
        }
        if let Some(rates) = &self.rate {
            let random = self.arrivals == ArrivalsArg::Random;
            let connections = most(OPEN_CONNECTIONS)?;
            return Ok((Load::Open { rate: 1.0, random, connections }, values(rates)?));
        }
        if let Some(rates) = &self.sessions {
            let (bursts, calls) = (self.bursts.max(1), self.calls.max(1));
            let visit = Visit { bursts, calls, think: self.think };
            let connections = most(SESSIONS.min(bench::machine::connections_possible()))?;
            let load = Load::Sessions { rate: 1.0, visit, connections };
            return Ok((load, values(rates)?));
        }
        if let Some(speeds) = &self.replay {
            let connections = most(OPEN_CONNECTIONS)?;
            return Ok((Load::Replay { speed: 1.0, connections }, values(speeds)?));
        }
        let connections = match &self.connections {
            Some(text) => values(text)?,
            None => vec![CLOSED_CONNECTIONS],
        };
        match connections.iter().find(|value| value.fract() != 0.0) {
            Some(part) => Err(format!("-c {part}: connections are whole")),
            None => Ok((Load::Closed { connections: 1 }, connections)),
        }
    }
}

/// The default duration and warm-up of a round.
pub(crate) type RoundTimes = (Duration, Duration);

/// The settings, and the values of the sweep.
pub(crate) fn settings(
    ask: &AskArgs,
    load: &LoadArgs,
    protocol: &ProtocolArgs,
    times: RoundTimes,
) -> Result<(Settings, Vec<f64>), String> {
    let tls = protocol.tls()?;
    let (mut targets, list) = ask.list(&tls)?;
    let order = match ask.order {
        OrderArg::Sequence => RequestOrder::Sequence,
        OrderArg::Shuffle => RequestOrder::Shuffle(ask.seed),
        OrderArg::Random => RequestOrder::Random(ask.seed),
    };
    if let Some(path) = &protocol.unix_socket {
        if targets.is_empty() {
            for url in list.asks().iter().filter(|ask| !ask.url.starts_with('/')) {
                let target = TargetServer::parse(&url.url)?.0;
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        targets.iter_mut().for_each(|target| target.unix_socket = Some(path.clone()));
    }
    let (kind, values) = load.load()?;
    if matches!(kind, Load::Replay { .. }) && list.due().is_empty() {
        return Err("--replay needs a list with times: an access log".to_owned());
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let most = values.iter().fold(1.0_f64, |most, value| most.max(*value)) as usize;
    let threads = match kind {
        Load::Closed { .. } => load.threads.unwrap_or(cores).min(most),
        _ => load.threads.unwrap_or(cores),
    };
    let until = load.requests.map_or_else(
        || MeasurementEnd::Time(load.duration.unwrap_or(times.0)),
        MeasurementEnd::Count,
    );
    let settings = Settings {
        targets,
        list,
        order,
        headers: ask.headers()?,
        protocol: protocol.protocol(),
        conditional: ask.conditional,
        tls,
        load: kind,
        until,
        warm_up: load.warm_up.unwrap_or(times.1),
        timeout: load.timeout,
        threads: threads.max(1),
        background: Background { idle: load.idle, slow: load.slow, slow_rate: load.slow_rate },
    };
    Ok((settings, values))
}

impl ProtocolArgs {
    pub(crate) fn protocol(&self) -> Protocol {
        match self.http2 {
            Some(streams) => Protocol::Http2 { streams: streams.max(1) },
            None => Protocol::Http1 {
                old: self.http10,
                keep_alive: !self.no_keep_alive,
                pipeline: self.pipeline.max(1),
            },
        }
    }

    /// The TLS settings.
    pub(crate) fn tls(&self) -> Result<Tls, String> {
        let authorities = match (&self.ca, self.insecure) {
            (Some(path), _) => {
                Some(std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?)
            }
            (None, true) => None,
            (None, false) => Some(base::system_authorities().unwrap_or_default()),
        };
        Ok(Tls { authorities, resume: !self.no_resume })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_values_are_numbers_and_ranges() {
        assert_eq!(
            values("1,2,5,10..400"),
            Ok(vec![1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0])
        );
        assert_eq!(values("10..45/10"), Ok(vec![10.0, 20.0, 30.0, 40.0, 45.0]));
        assert_eq!(values("0.5"), Ok(vec![0.5]));
        assert_eq!(values("7..7"), Ok(vec![7.0]));
        for wrong in ["", "a", "0", "-1", "5..1", "1..2/0", "1..1000000/1", "1,,2"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }
}
