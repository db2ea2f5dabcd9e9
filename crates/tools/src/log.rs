//! The log, `larder log`: requests as they end, one line or one group of lines each.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use observe::Record;
use observe::format::{self, FieldPositions};
use observe::pattern::{Pattern, TransactionView};
use observe::ring::FollowStart;
use observe::vsl;

use super::feed::{Feed, FeedArgs, Kinds};
use super::tags::Tags;
use crate::output::print;

/// Interval at which a ring is polled that has few records or none.
const LOOK: Duration = Duration::from_millis(50);
/// Records of one poll after which the next follows at once.
const MANY: u64 = 1_000;

/// Follow the requests of the running daemon, or show its last ones.
///
/// Without further flags it prints each request when it ends, in the NCSA combined format, until
/// Ctrl-C. The daemon never waits for it: records that it is too slow to read are lost, and counted
/// on standard error.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    larder log -n 20                                  the last 20 requests\n  \
    larder log -q 'served == miss and time.total > 1s'  slow misses, as they come\n  \
    larder log --detail -q 'not_stored'               why answers are not stored\n  \
    larder log --headers -q 'req.url ~ ^/cart'         all header fields of some requests\n  \
    larder log -F '%h %{Varnish:hitmiss}x %r'          lines of your own\n  \
    larder log --json | jq .agent")]
pub struct LogArgs {
    #[command(flatten)]
    feed: FeedArgs,
    /// Print one JSON object per request, with all facts.
    #[arg(long, conflicts_with = "detail")]
    json: bool,
    /// Print several lines per request, with all facts and the times of its phases.
    #[arg(long)]
    detail: bool,
    /// Show only fetches from origins, for clients or in the background.
    #[arg(short = 'b', long)]
    backend: bool,
    /// Show only requests of clients, also with --detail, which shows background fetches, too.
    #[arg(short = 'c', long)]
    clients: bool,
    /// Show header fields of the requests and responses of clients and origins: all, or those of
    /// these names; with a filter, only of the requests that it selects. The daemon keeps them from
    /// now on, for as long as this command runs.
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true,
          value_delimiter = ',', default_missing_value = "")]
    headers: Option<Vec<String>>,
    /// With --headers or -F: show the values of Authorization, Proxy-Authorization, Cookie,
    /// Set-Cookie, X-Api-Key, X-Auth-Token, X-CSRF-Token, X-XSRF-Token and X-Amz-Security-Token. By
    /// default they are masked.
    #[arg(long)]
    secrets: bool,
    /// Print lines in this format, with varnishncsa's formatters (%h "%r" %s %{X-Cache}o ...) or
    /// nginx's variables ($remote_addr "$request" $status ...); `@FILE` reads the first line of a
    /// file. With --json, values are escaped for JSON strings.
    #[arg(short = 'F', long, value_name = "FORMAT", conflicts_with = "detail")]
    format: Option<String>,
    /// Of --detail, show only these lines, by their names or by varnishlog's tags (ReqHeader,
    /// VCL_call ...); repeatable, or with commas.
    #[arg(short = 'i', long, value_name = "TAG", value_delimiter = ',')]
    include: Vec<String>,
    /// Of --detail, show all lines except these.
    #[arg(short = 'x', long, value_name = "TAG", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Show requests with varnishlog's tags, `raw` or grouped: `vxid` (one transaction), `request`
    /// or `session` (a client's request with its fetch).
    #[arg(
        short = 'g', long, value_name = "GROUPING", value_enum,
        conflicts_with_all = ["json", "detail", "format"]
    )]
    group: Option<Grouping>,
    /// Show only the last N requests in the ring. A value that is no number is a daemon's `-n`, the
    /// folder with its admin socket.
    #[arg(short = 'n', long = "last", value_name = "N|DIR")]
    last: Vec<String>,
    /// Show all requests in the ring, and exit.
    #[arg(long, conflicts_with = "follow")]
    once: bool,
    /// Follow new requests after the last ones.
    #[arg(short, long)]
    follow: bool,
}

impl LogArgs {
    /// Returns true if a request has several lines.
    fn is_detailed(&self) -> bool {
        let lines = self.headers.is_some() || !self.include.is_empty() || !self.exclude.is_empty();
        self.detail || lines && !self.json && self.format.is_none()
    }
}

/// Groupings of varnishlog's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Raw,
    Vxid,
    Request,
    Session,
}

/// The form in which requests are printed.
enum Form {
    /// varnishlog's records.
    Vsl(Grouping, Kinds),
    Combined,
    Json,
    /// Lines of the details.
    Detail(Tags),
    /// Lines of a pattern, for transactions of these kinds.
    Pattern(Pattern, Kinds),
}

impl Form {
    fn of(args: &LogArgs, kinds: Kinds) -> Result<Self, String> {
        if let Some(grouping) = args.group {
            return Ok(Self::Vsl(grouping, kinds));
        }
        match (&args.format, args.json) {
            (Some(format), json) => {
                let text = match format.strip_prefix('@') {
                    Some(file) => first_line(file)?,
                    None => format.clone(),
                };
                let pattern = Pattern::parse(&text, json)
                    .map_err(|why| format!("larder: this format cannot be used: {why}"))?;
                Ok(Self::Pattern(pattern, kinds))
            }
            (_, true) => Ok(Self::Json),
            _ if args.is_detailed() => Ok(Self::Detail(Tags::new(&args.include, &args.exclude))),
            _ => Ok(Self::Combined),
        }
    }

    fn write(&self, record: &Record<'_>, fields: &FieldPositions, out: &mut Vec<u8>) {
        match self {
            Self::Combined => format::combined(record, fields, out),
            Self::Pattern(pattern, kinds) => {
                if record.is_client() && *kinds != Kinds::Backend {
                    pattern.write(record, fields, TransactionView::Client, out);
                }
                if record.phases.fetch.is_some()
                    && (*kinds != Kinds::Clients || !record.is_client())
                {
                    pattern.write(record, fields, TransactionView::Backend, out);
                }
            }
            Self::Vsl(grouping, kinds) => vsl(record, *grouping, *kinds, out),
            Self::Json => format::json(record, fields, true, out),
            Self::Detail(tags) => {
                let mut text = String::new();
                format::detail(record, fields, &mut text);
                tags.of(&text).for_each(|line| out.extend_from_slice(line.as_bytes()));
            }
        }
    }
}

/// Writes a record as varnishlog does: the client's transaction, and its fetch.
fn vsl(record: &Record<'_>, grouping: Grouping, kinds: Kinds, out: &mut Vec<u8>) {
    let is_client = record.is_client() && kinds != Kinds::Backend;
    let nested = matches!(grouping, Grouping::Request | Grouping::Session);
    // A fetch is in the group of its request.
    let is_fetch = record.phases.fetch.is_some() && (kinds != Kinds::Clients || nested);
    let shown = [(is_client, TransactionView::Client), (is_fetch, TransactionView::Backend)];
    let mut level = 1;
    for (_, view) in shown.into_iter().filter(|(is_shown, _)| *is_shown) {
        let (kind, side) = match view {
            TransactionView::Client => ("Request", 'c'),
            TransactionView::Backend => ("BeReq", 'b'),
        };
        if grouping != Grouping::Raw {
            let stars = "*".repeat(level);
            out.extend_from_slice(
                format!("{stars:<3} << {kind:<8} >> {:<10}\n", record.xid).as_bytes(),
            );
        }
        for (tag, text) in vsl::lines(record, view) {
            let begin = match grouping {
                Grouping::Raw => format!("{:>10} {tag:<14} {side} ", record.xid),
                _ => format!("{:<3} {tag:<14} ", "-".repeat(level)),
            };
            out.extend_from_slice(begin.as_bytes());
            out.extend(text.iter().map(|b| if b.is_ascii_control() { b' ' } else { *b }));
            out.push(b'\n');
        }
        if nested {
            level += 1;
        } else if grouping != Grouping::Raw {
            out.push(b'\n');
        }
    }
    if nested && level > 1 {
        out.push(b'\n');
    }
}

/// The values of `-n`: a number, and a folder.
fn last_and_folder(words: &[String]) -> Result<(Option<usize>, Option<PathBuf>), String> {
    let (mut last, mut folder) = (None, None);
    for word in words {
        match word.parse() {
            Ok(number) => last = Some(number),
            Err(_) if PathBuf::from(word).is_dir() => folder = Some(PathBuf::from(word)),
            Err(_) => return Err(format!("larder: -n {word}: neither a number nor a folder")),
        }
    }
    Ok((last, folder))
}

/// Runs `larder log`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &LogArgs) -> Result<(), String> {
    let kinds = match (args.backend, args.clients) {
        (true, false) => Kinds::Backend,
        (false, true) => Kinds::Clients,
        (true, true) => Kinds::All,
        (false, false) if args.is_detailed() || args.group.is_some() => Kinds::All,
        (false, false) => Kinds::Clients,
    };
    let form = Form::of(args, kinds)?;
    let (count, folder) = last_and_folder(&args.last)?;
    let past = args.once || count.is_some();
    let from = if past { FollowStart::Oldest } else { FollowStart::Now };
    let source = args.feed.of_folder(folder);
    let mut feed = source.open(from)?;
    feed.show(kinds);
    let names = wanted(args, &form);
    if args.secrets && names.is_none() {
        return Err("larder: --secrets is for values of header fields, and none are asked for: \
                    add --headers, or name them in the format of -F"
            .to_owned());
    }
    // Records in the ring may have header fields that other readers subscribed to.
    if let (true, Some(names)) = (!past || args.follow, names) {
        feed.ask_for(&source, &names, args.secrets)?;
    }
    if past && !print(&last(&mut feed, &form, count)?)? {
        return Ok(());
    }
    if past && !args.follow {
        return Ok(());
    }
    follow(&mut feed, &form)
}

/// The names of the header fields to subscribe to; an empty list for all.
fn wanted(args: &LogArgs, form: &Form) -> Option<Vec<String>> {
    let mut names: Vec<String> = match &args.headers {
        Some(names) => names.iter().filter(|name| !name.is_empty()).cloned().collect(),
        None => Vec::new(),
    };
    let all = args.headers.is_some() || args.group.is_some();
    if all && names.is_empty() {
        return Some(names);
    }
    if let Form::Pattern(pattern, _) = form {
        names.extend(pattern.headers());
    }
    (!names.is_empty()).then_some(names)
}

/// The first line of a file.
fn first_line(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("larder: {file}: {error}"))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The text of all requests in the ring, or of the last `count`.
fn last(feed: &mut Feed, form: &Form, count: Option<usize>) -> Result<Vec<u8>, String> {
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    loop {
        let polled = feed.poll(&mut |record, fields| {
            let mut one = Vec::new();
            form.write(record, fields, &mut one);
            kept.push_back(one);
            if count.is_some_and(|count| kept.len() > count) {
                kept.pop_front();
            }
        })?;
        if polled.records == 0 {
            return Ok(kept.into_iter().flatten().collect());
        }
    }
}

fn follow(feed: &mut Feed, form: &Form) -> Result<(), String> {
    let mut waiting = false;
    loop {
        let mut out = Vec::new();
        let polled = feed.poll(&mut |record, fields| form.write(record, fields, &mut out))?;
        if !print(&out)? {
            return Ok(());
        }
        if polled.lost > 0 {
            base::say!("larder: {} requests were lost: this reader is too slow", polled.lost);
        }
        if polled.restarted {
            waiting = false;
            base::say!("larder: the daemon was restarted");
        } else if polled.records == 0 && !waiting && (polled.ended || feed.is_left_over()) {
            waiting = true;
            base::say!("larder: the daemon has ended; waiting for the next (Ctrl-C ends this)");
        }
        if polled.records < MANY {
            thread::sleep(LOOK);
        }
    }
}
