//! `larder bench quick`: measures in a minute the capacity of a machine, and the cost of a page on
//! it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::load::{Runner, probe};
use bench::quick::{Disk, Effort, Figures, measure};
use bench::result::{Axis, Point, Round, Series};
use bench::settings::{Background, Load, MeasurementEnd, Protocol, Settings};
use bench::target::TargetServer;
use bench::urls::{Body, List, ListedRequest, RequestOrder};
use clap::Args;

use super::args::{ProtocolArgs, duration};
use super::{VerbError, figures::time, stopped_at_interrupt};

/// Most bytes that are written to the disk.
const DISK_BYTES: usize = 256 << 20;
/// Connections that request the cached page.
const CONNECTIONS: usize = 10;
/// Connections that request uncached pages.
const MAKERS: usize = 4;
/// Most uncached pages that are requested.
const FRESH: u64 = 500;
/// Size above which a response should be compressed: one packet.
const PACKET: u64 = 1400;
/// Time from which an uncached page counts as slow.
const SLOW: Duration = Duration::from_millis(500);
/// Time from which a synced write counts as slow.
const SLOW_SYNC: Duration = Duration::from_millis(10);
/// Fraction of all cores' work below which they slow each other down.
const TOGETHER: f64 = 0.7;

const AFTER_HELP: &str = "\
The machine: the speed of one core and of all together, memory, the disk, TLS handshakes. With a \
URL also the page: as it is made anew (asked with a query that no cache knows), as it comes from \
a cache, and what to do next. It takes less than a minute.

Examples:
  larder bench quick
  larder bench quick https://example.org/";

/// Measure in a minute the capacity of this machine, and the cost of a page.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct QuickArgs {
    /// Page.
    url: Option<String>,
    /// Folder whose disk is measured.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Time for each figure.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    time: Duration,
    #[command(flatten)]
    protocol: ProtocolArgs,
}

/// Measures, and prints.
pub(super) fn run(args: &QuickArgs) -> Result<ExitCode, VerbError> {
    let page = args.url.as_deref().map(|url| PageSettings::new(url, args)).transpose()?;
    if let Some(page) = &page {
        probe(&page.settings).map_err(VerbError::unmeasured)?;
    }
    let effort = Effort { time: args.time, disk_bytes: DISK_BYTES };
    let figures = measure(&args.folder, effort).map_err(VerbError::unmeasured)?;
    print_machine(&figures, &args.folder);
    let mut next = of_machine(&figures);
    if let Some(page) = page {
        let stop = stopped_at_interrupt()?;
        let measured = page.measure(&stop).map_err(VerbError::unmeasured)?;
        base::show!("");
        measured.print();
        next.splice(0..0, measured.advice());
    }
    if !next.is_empty() {
        base::show!("");
    }
    for line in next {
        base::show!("next        {line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn print_machine(figures: &Figures, folder: &Path) {
    let facts = bench::machine::describe();
    let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
    base::show!(
        "machine     {} cores, {}, some {:.1} GHz by what a core does; all together {:.2} times one",
        fact("cores"),
        fact("processor"),
        figures.one_core * 2.0 / 1e3,
        figures.all_cores / figures.one_core
    );
    base::show!(
        "memory      {}, {:.1} GB/s copied by one core",
        fact("memory"),
        figures.copied / 1e9
    );
    match &figures.disk {
        Ok(Disk { written, sync }) => base::show!(
            "disk        {:.0} MB/s written, {} until a small write is there ({})",
            written / 1e6,
            time(sync.as_secs_f64() * 1e6),
            folder.display()
        ),
        Err(why) => base::show!("disk        not measured: {why}"),
    }
    base::show!("handshakes  {:.0} a second and core (TLS 1.3, P-256)", figures.handshakes);
}

/// Advice about the machine.
fn of_machine(figures: &Figures) -> Vec<String> {
    let mut next = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let together = figures.all_cores / figures.one_core;
    if together < cores * TOGETHER {
        next.push(format!(
            "{cores:.0} cores do the work of {together:.1}: they share a core, or neighbours take \
             their time; look again at another hour, and ask the provider"
        ));
    }
    if let Ok(disk) = &figures.disk
        && disk.sync > SLOW_SYNC
    {
        next.push(format!(
            "a database on this disk waits {} for each commit: another disk, or fewer writes",
            time(disk.sync.as_secs_f64() * 1e6)
        ));
    }
    next
}

/// A page, and the settings to request it.
struct PageSettings {
    url: String,
    settings: Settings,
    time: Duration,
}

impl PageSettings {
    fn new(url: &str, args: &QuickArgs) -> Result<Self, String> {
        TargetServer::parse(url)?;
        let settings = Settings {
            targets: Vec::new(),
            list: list([url.to_owned()]),
            order: RequestOrder::Sequence,
            headers: vec![("Accept-Encoding".to_owned(), "gzip, deflate, br, zstd".to_owned())],
            protocol: args.protocol.protocol(),
            conditional: false,
            tls: args.protocol.tls()?,
            load: Load::Closed { connections: 1 },
            until: MeasurementEnd::Time(args.time),
            warm_up: Duration::ZERO,
            timeout: Duration::from_secs(30),
            threads: 1,
            background: Background::default(),
        };
        Ok(Self { url: url.to_owned(), settings, time: args.time })
    }

    /// Measures the page uncached and cached.
    fn measure(&self, stop: &Arc<AtomicBool>) -> Result<PageMeasurement, String> {
        let round = |settings: &Settings| {
            Runner::new(settings, Vec::new(), Arc::clone(stop))?.round(&mut |_| ())
        };
        let closed = |connections| Settings {
            load: Load::Closed { connections },
            threads: connections.min(2),
            ..self.settings.clone()
        };
        let mut number = 0;
        let mut made = |count: u64, connections: usize| {
            let urls: Vec<_> = (number..number + count).map(|nth| self.fresh(nth)).collect();
            number += count;
            let until = MeasurementEnd::Count(count);
            round(&Settings { list: list(urls), until, ..closed(connections) })
        };
        let first = made(3, 1)?;
        let each = first.elapsed_us.max(1) / first.completed.max(1);
        let time_us = u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX);
        let count = (time_us / each.max(1)).clamp(3, FRESH);
        let alone = made(count, 1)?;
        let many = made((count * MAKERS as u64).min(FRESH), MAKERS)?;
        round(&Settings { until: MeasurementEnd::Count(1), ..closed(1) })?;
        let cached_alone = round(&closed(1))?;
        let cached = round(&closed(CONNECTIONS))?;
        let secure = self.url.to_ascii_lowercase().starts_with("https:");
        let http2 = matches!(self.settings.protocol, Protocol::Http2 { .. });
        let tls = if secure && !http2 {
            let mut settings = closed(MAKERS);
            settings.protocol = Protocol::Http1 { old: false, keep_alive: false, pipeline: 1 };
            settings.tls.resume = false;
            Some(round(&settings)?)
        } else {
            None
        };
        Ok(PageMeasurement { url: self.url.clone(), alone, many, cached_alone, cached, tls })
    }

    /// The URL with a unique query, which no cache has stored.
    fn fresh(&self, number: u64) -> String {
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let url = self.url.split('#').next().unwrap_or_default();
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}larder-bench={moment:x}-{number}")
    }
}

fn list(urls: impl IntoIterator<Item = String>) -> List {
    List::from_asks(urls.into_iter().map(|url| ListedRequest {
        method: "GET".to_owned(),
        url,
        body: Body::None,
    }))
}

/// The measurements of a page.
struct PageMeasurement {
    url: String,
    /// Uncached, one at a time, and several at once.
    alone: Round,
    many: Round,
    /// Cached, if the page is stored.
    cached_alone: Round,
    cached: Round,
    /// With a new connection for each request.
    tls: Option<Round>,
}

impl PageMeasurement {
    fn print(&self) {
        let first = |round: &Round| {
            round.first_byte.as_ref().map_or_else(|| "-".to_owned(), |first| time(first.p50 as f64))
        };
        base::show!(
            "made anew   {:.0} pages/s by {MAKERS} at once; first byte after {}",
            self.many.rate(),
            first(&self.alone)
        );
        let hits = self.cached.hit_share();
        base::show!(
            "asked again {:.0} pages/s by {CONNECTIONS} at once; first byte after {}; {}",
            self.cached.rate(),
            first(&self.cached_alone),
            hits.map_or_else(
                || "no sign of a cache".to_owned(),
                |share| format!("{:.0}% from a cache", share * 100.0)
            )
        );
        if let Some(tls) = &self.tls {
            base::show!("TLS         {:.0} new connections a second", tls.rate());
        }
        base::show!("limit       {}", self.limit());
    }

    /// The limit of the cached page.
    fn limit(&self) -> String {
        let round = &self.cached;
        let threads = (round.elapsed_us.max(1) * round.generator_threads.max(1)) as f64;
        let busy = round.generator_cpu_us as f64 / threads;
        if round.completed == 0 {
            return "the server: it answered nothing".to_owned();
        }
        if round.idle < 0.1 {
            return format!(
                "the processor: {:.0}% of this machine is idle, and this tool itself takes {:.1} \
                 of its cores",
                round.idle * 100.0,
                round.generator_cpu_us as f64 / round.elapsed_us.max(1) as f64
            );
        }
        if busy > 0.9 {
            return "this tool: the server could serve more".to_owned();
        }
        format!(
            "the way to the server, or the server: {:.0}% of this machine is idle, at {:.1} MB/s",
            round.idle * 100.0,
            round.bytes_received as f64 / 1e6 / round.seconds()
        )
    }

    /// Advice, the most important first.
    fn advice(&self) -> Vec<String> {
        let mut next: Vec<String> = self.remarks().collect();
        let (made, again) = (self.many.rate(), self.cached.rate());
        let ratio = again / made.max(1e-9);
        let hits = self.cached.hit_share();
        let all = Round::merged([&self.alone, &self.cached]);
        let why = all.miss_reasons.iter().max_by_key(|(_, count)| **count);
        if hits.map_or(ratio < 2.0, |share| share < 0.5) {
            let why = why.map_or_else(String::new, |(reason, _)| format!(" ({reason})"));
            next.push(format!(
                "this page does not come from a cache{why}: put Larder in front of it; `larder \
                 explain {}` says which rule decides",
                self.url
            ));
        } else if self.alone.hit_share().is_some_and(|share| share > 0.5) {
            next.push(
                "the cache takes any query for the same page, so that nothing is known of the page \
                 as it is made"
                    .to_owned(),
            );
        } else {
            next.push(format!(
                "from the cache this page comes {ratio:.0} times as fast: what counts is how many \
                 visitors get it from there; `larder bench --log access.log {}` sends requests \
                 as yours do",
                self.url
            ));
        }
        let made = self.alone.first_byte.as_ref().map_or(0, |first| first.p50);
        if Duration::from_micros(made) > SLOW {
            next.push(format!(
                "the first visitor waits {} for the page: let it be refreshed behind the stale \
                 one (grace)",
                time(made as f64)
            ));
        }
        let plain = self.cached.encodings.get("").copied().unwrap_or_default();
        let longest = self.cached.body_lengths.keys().next_back().copied().unwrap_or_default();
        if plain > self.cached.completed / 2 && longest > PACKET {
            next.push(format!(
                "{longest} bytes come uncompressed, though gzip, br and zstd were accepted"
            ));
        }
        next
    }

    /// Remarks on the responses themselves.
    fn remarks(&self) -> impl Iterator<Item = String> {
        let rounds = vec![self.cached.clone()];
        let points = vec![Point { x: CONNECTIONS as f64, rounds }];
        let series = Series { name: self.url.clone(), axis: Axis::Connections, points };
        let told = bench::remarks::of_series(&series, 0);
        told.into_iter()
            .filter(|verdict| {
                !matches!(verdict.name.as_str(), "not-cached" | "generator-limit" | "too-short")
            })
            .map(|verdict| verdict.text)
    }
}
