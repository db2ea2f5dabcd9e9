//! The feed of records: the log ring of the running daemon, or of one that has ended.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use observe::format::FieldPositions;
use observe::ring::{FollowStart, PollOutcome, RingFollower, folders};
use observe::{Query, Record};
use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::client::{AdminArgs, ask, post};

/// Most polls in one call. Each reads at most a megabyte per core.
const POLLS: usize = 64;

/// Interval at which the subscription to header fields is renewed. The daemon keeps it for ten
/// seconds after each renewal.
const ASK: Duration = Duration::from_secs(3);

/// Selects a daemon and a filter of its requests.
#[derive(Clone, Debug, Args)]
pub(crate) struct FeedArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Folder of the log ring; by default the daemon says where it is.
    #[arg(long, value_name = "DIR")]
    log_ring: Option<PathBuf>,
    /// Show only the requests that this filter selects, such as 'resp.status >= 500 and site ~
    /// shop'.
    ///
    /// Fields: req.method, req.url, req.host, req.bytes, req.http.NAME (those that the ring keeps),
    /// resp.status, resp.bytes, client.ip, time.total, time.ttfb, served, site, rule, origin,
    /// server, tries, age, ttl, not_stored, not_stored_by, dictionary, error, limit, vcl, xid,
    /// session, kind, parent, origin.status.
    /// Operators: == != ~ !~ < <= > >=, and or not, parentheses. Times have a unit (250ms),
    /// patterns are regular expressions; a field alone is true unless it is empty: 'error and not
    /// limit'.
    #[arg(short, long, value_name = "FILTER")]
    query: Option<String>,
}

/// The kinds of transactions that a feed delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// Requests of clients.
    #[default]
    Clients,
    /// Fetches from origins, for clients or in the background.
    Backend,
    /// All kinds.
    All,
}

impl Kinds {
    fn has(self, record: &Record<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Clients => record.is_client(),
            Self::Backend => record.phases.fetch.is_some(),
        }
    }
}

/// The time window of the records that are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Its length in seconds.
    pub(crate) seconds: f64,
    /// Seconds since the last request ended.
    pub(crate) ended_ago: f64,
    /// Records that were lost.
    pub(crate) lost: u64,
}

impl Window {
    /// Text for the end of the window; empty for a window that ends now.
    pub(crate) fn end_text(&self) -> String {
        /// A request that ended so recently is a current one, in seconds.
        const NOW_S: f64 = 2.0;
        match self.ended_ago {
            ago if ago < NOW_S => String::new(),
            ago => format!(", the last one {ago:.0} s ago"),
        }
    }
}

/// An open ring and a filter.
pub(crate) struct Feed {
    follower: RingFollower,
    pub(crate) fields: FieldPositions,
    text: Option<String>,
    query: Option<Query>,
    kinds: Kinds,
    lease: Option<Lease>,
}

/// A subscription to header fields, renewed for as long as this reader runs.
struct Lease {
    socket: PathBuf,
    wanted: Value,
    asked: Instant,
}

impl Lease {
    /// Renews the subscription if it is due. If the daemon is gone, the next one gets it.
    fn renew(&mut self) {
        if self.asked.elapsed() > ASK {
            self.asked = Instant::now();
            _ = self.ask();
        }
    }

    fn ask(&self) -> Result<(), String> {
        match post(&self.socket, "/api/v1/log/fields", &self.wanted)? {
            (200, _) => Ok(()),
            (_, body) => {
                let value: Value = serde_json::from_str(&body).unwrap_or_default();
                let why = value["error"].as_str().unwrap_or("its answer cannot be read");
                Err(format!("larder: the daemon keeps no header fields: {why}"))
            }
        }
    }
}

impl FeedArgs {
    /// Selects the daemon whose working folder (`-n`) is `folder`, if there is one.
    pub(crate) fn of_folder(&self, folder: Option<PathBuf>) -> Self {
        let mut own = self.clone();
        if let Some(folder) = folder {
            own.admin.admin_socket = folder.join("admin.sock");
        }
        own
    }

    /// Opens the daemon's ring.
    pub(crate) fn open(&self, from: FollowStart) -> Result<Feed, String> {
        // A mistake in the filter is reported even if no daemon runs.
        read(self.query.as_deref(), &FieldPositions::open())?;
        let folder = match &self.log_ring {
            Some(folder) => folder.clone(),
            None => find(&self.admin.admin_socket)?,
        };
        let follower =
            RingFollower::open(&folder, from).map_err(|error| refusal(&folder, &error))?;
        let text = self.query.clone();
        let mut feed = Feed {
            follower,
            fields: FieldPositions::default(),
            text,
            query: None,
            kinds: Kinds::default(),
            lease: None,
        };
        feed.renew()?;
        Ok(feed)
    }
}

/// Delivers every record in the ring of the daemon at `admin`, with the names of the request fields
/// that records keep, oldest first.
///
/// # Errors
/// A message for standard error.
pub fn read_ring(
    admin: &AdminArgs,
    sink: &mut dyn FnMut(&Record<'_>, &[String]),
) -> Result<(), String> {
    let folder = find(&admin.admin_socket)?;
    let failed = |error: io::Error| refusal(&folder, &error);
    let mut follower = RingFollower::open(&folder, FollowStart::Oldest).map_err(failed)?;
    let (names, until_ms) = (follower.names().to_vec(), unix_ms());
    let mut is_over = false;
    while !is_over {
        let polled = follower.poll(&mut |record| {
            is_over |= record.start_unix_ms > until_ms;
            sink(record, &names);
        });
        is_over |= polled.map_err(failed)?.records == 0;
    }
    Ok(())
}

impl FeedArgs {
    /// Delivers the requests of the last `seconds` in the ring; for 0, all of them.
    pub(crate) fn read_last(
        &self,
        seconds: u64,
        sink: &mut dyn FnMut(&Record<'_>, &FieldPositions),
    ) -> Result<Window, String> {
        let mut feed = self.open(FollowStart::Oldest)?;
        let began_ms = unix_ms();
        // The rings of the cores are merged by poll only: the end is known after the last one.
        let (mut first_us, mut last_us, mut last_ms) = (u64::MAX, 0, began_ms);
        let mut all = Self { query: None, ..self.clone() }.open(FollowStart::Oldest)?;
        all.read_until(began_ms, &mut |record, _| {
            first_us = first_us.min(record.start_us);
            if record.end_us() >= last_us {
                last_us = record.end_us();
                last_ms = record.start_unix_ms.saturating_add(record.phases.end / 1000);
            }
        })?;
        let asked_us = seconds.saturating_mul(1_000_000);
        let covered_us = last_us.saturating_sub(first_us);
        let window_us = if seconds == 0 { covered_us } else { covered_us.min(asked_us) };
        let window = last_us - window_us..=last_us;
        let lost = feed.read_until(began_ms, &mut |record, fields| {
            if window.contains(&record.end_us()) {
                sink(record, fields);
            }
        })?;
        Ok(Window {
            seconds: window_us as f64 / 1e6,
            ended_ago: began_ms.saturating_sub(last_ms) as f64 / 1e3,
            lost,
        })
    }
}

/// Milliseconds since 1970 UTC.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Parses the filter `text` for records with `fields`, if there is one.
fn read(text: Option<&str>, fields: &FieldPositions) -> Result<Option<Query>, String> {
    let query = text.map(|text| Query::parse(text, fields)).transpose();
    query.map_err(|error| format!("larder: this filter cannot be used:\n{error}"))
}

/// The folder of the log ring of the daemon at `socket`, which may have ended.
fn find(socket: &Path) -> Result<PathBuf, String> {
    let failure = match ask(socket, "GET", "/ring") {
        Ok((200, body)) => {
            let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
            match value["folder"].as_str() {
                Some(folder) => return Ok(PathBuf::from(folder)),
                None => "larder: the daemon's answer cannot be read".to_owned(),
            }
        }
        Ok((_, body)) if body.contains("log ring") => {
            return Err(format!("larder: {}", body.trim_end()));
        }
        Ok(_) => {
            let socket = socket.display();
            return Err(format!("larder: the daemon at {socket} is of a version without log ring"));
        }
        Err(failure) => failure,
    };
    let left = folders(socket, geteuid().as_raw())
        .into_iter()
        .find(|folder| folder.join("core-0").exists());
    if let Some(folder) = left {
        base::say!("{failure}\nlarder: reading its last records in {}", folder.display());
        return Ok(folder);
    }
    Err(format!(
        "{failure}\n\
         Start one with `larder serve` or `larder demo`, or say which one is meant:\n  \
         --admin-socket PATH   its admin socket\n  \
         --log-ring DIR        the folder of its log ring"
    ))
}

fn refusal(folder: &Path, error: &io::Error) -> String {
    let folder = folder.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "larder: no log ring in {folder}\n\
             A running daemon keeps one unless `log_ring = \"off\"`; `larder stat` says whether it \
             runs."
        ),
        io::ErrorKind::PermissionDenied => format!(
            "larder: the log ring in {folder} belongs to another user: try `sudo -u USER larder ...`"
        ),
        _ => format!("larder: log ring in {folder}: {error}"),
    }
}

impl Feed {
    /// Takes the names of kept fields from the daemon's ring.
    fn renew(&mut self) -> Result<(), String> {
        self.fields = FieldPositions::new(self.follower.names());
        self.query = read(self.text.as_deref(), &self.fields)?;
        Ok(())
    }

    /// Subscribes to the header fields `names` (empty for all) of the records that the filter
    /// selects.
    pub(crate) fn ask_for(
        &mut self,
        args: &FeedArgs,
        names: &[String],
        secrets: bool,
    ) -> Result<(), String> {
        let mut wanted = json!({ "secrets": secrets });
        if !names.is_empty() {
            wanted["names"] = json!(names);
        }
        if let Some(text) = &self.text {
            wanted["filter"] = json!(text);
        }
        let socket = args.admin.admin_socket.clone();
        let lease = Lease { socket, wanted, asked: Instant::now() };
        lease.ask()?;
        self.lease = Some(lease);
        Ok(())
    }

    /// Sets the kinds to deliver, unless the filter tests the kind itself.
    pub(crate) fn show(&mut self, kinds: Kinds) {
        let says = self.query.as_ref().is_some_and(Query::names_kind);
        self.kinds = if says { Kinds::All } else { kinds };
    }

    /// Delivers the records since the last call that the filter selects.
    pub(crate) fn poll(
        &mut self,
        sink: &mut dyn FnMut(&Record<'_>, &FieldPositions),
    ) -> Result<PollOutcome, String> {
        if let Some(lease) = &mut self.lease {
            lease.renew();
        }
        let (query, fields, kinds) = (&self.query, &self.fields, self.kinds);
        let polled = self.follower.poll(&mut |record| {
            if kinds.has(record) && query.as_ref().is_none_or(|query| query.matches(record)) {
                sink(record, fields);
            }
        });
        let polled = polled.map_err(|error| format!("larder: the log ring is gone: {error}"))?;
        if polled.restarted {
            self.renew()?;
        }
        Ok(polled)
    }

    /// Polls until no record is left that began before `unix_ms`, because the daemon may write
    /// faster than this reads. Returns the number of lost records.
    fn read_until(
        &mut self,
        unix_ms: u64,
        sink: &mut dyn FnMut(&Record<'_>, &FieldPositions),
    ) -> Result<u64, String> {
        let mut lost = 0;
        loop {
            let mut is_over = true;
            let polled = self.poll(&mut |record, fields| {
                is_over &= record.start_unix_ms > unix_ms;
                sink(record, fields);
            })?;
            lost += polled.lost;
            // If the filter selects no record, the records do not show the time.
            if polled.records == 0 || (is_over && self.query.is_none()) {
                return Ok(lost);
            }
        }
    }

    /// Polls until no record is left, or until the caller should look at its keyboard. Returns the
    /// number of lost records.
    pub(crate) fn drain(
        &mut self,
        sink: &mut dyn FnMut(&Record<'_>, &FieldPositions),
    ) -> Result<u64, String> {
        let mut lost = 0;
        for _ in 0..POLLS {
            let polled = self.poll(sink)?;
            lost += polled.lost;
            if polled.records == 0 {
                break;
            }
        }
        Ok(lost)
    }

    /// Returns true if the daemon of the ring has ended.
    pub(crate) fn is_left_over(&self) -> bool {
        // Signal 0 would need permission to signal the process.
        !Path::new("/proc").join(self.follower.pid().to_string()).exists()
    }
}
