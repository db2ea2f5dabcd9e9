//! `larder log`: requests as they end, one line or one group of lines each.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use clap::Args;
use observe::Record;
use observe::format::{self, Fields};
use observe::ring::From;

use super::feed::{Feed, FeedArgs, Kinds};
use super::print;

/// How often the ring is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Follow the requests of the running daemon, or look at its last ones.
///
/// Without further flags it goes on with each request that ends from now on, in the NCSA combined
/// format, until Ctrl-C. The daemon never waits for it: what it is too slow to read is lost, and
/// counted on standard error.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    larder log -n 20                                  the last 20 requests\n  \
    larder log -q 'served == miss and time.total > 1s'  slow misses, as they come\n  \
    larder log --detail -q 'not_stored'               why answers are not stored\n  \
    larder log --json | jq .agent")]
pub(crate) struct LogArgs {
    #[command(flatten)]
    feed: FeedArgs,
    /// One JSON object a request, with everything that is known.
    #[arg(long, conflicts_with = "detail")]
    json: bool,
    /// Several lines a request, with everything that is known and the times of its phases.
    #[arg(long)]
    detail: bool,
    /// Only what asked an origin: for a client, or behind an answer from what is stale.
    #[arg(short = 'b', long)]
    backend: bool,
    /// Only what clients asked for, with --detail too; without it that shows background fetches.
    #[arg(short = 'c', long)]
    clients: bool,
    /// Only the last N requests that are still in the ring.
    #[arg(short = 'n', long = "last", value_name = "N")]
    last: Option<usize>,
    /// Everything that is still in the ring, and end.
    #[arg(long, conflicts_with = "follow")]
    once: bool,
    /// After the last ones, go on with those that come.
    #[arg(short, long)]
    follow: bool,
}

/// How requests are shown.
#[derive(Clone, Copy)]
enum Form {
    Combined,
    Json,
    Detail,
}

impl Form {
    fn write(self, record: &Record<'_>, fields: &Fields, out: &mut Vec<u8>) {
        match self {
            Self::Combined => format::combined(record, fields, out),
            Self::Json => format::json(record, fields, true, out),
            Self::Detail => {
                let mut text = String::new();
                format::detail(record, fields, &mut text);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Runs it.
pub(crate) fn run(args: &LogArgs) -> Result<(), String> {
    let form = match (args.json, args.detail) {
        (true, _) => Form::Json,
        (_, true) => Form::Detail,
        _ => Form::Combined,
    };
    let past = args.once || args.last.is_some();
    let from = if past { From::Oldest } else { From::Now };
    let mut feed = args.feed.open(from)?;
    feed.show(match (args.backend, args.clients) {
        (true, false) => Kinds::Backend,
        (false, true) => Kinds::Clients,
        (true, true) => Kinds::All,
        (false, false) if args.detail => Kinds::All,
        (false, false) => Kinds::Clients,
    });
    if past && !print(&last(&mut feed, form, args.last)?)? {
        return Ok(());
    }
    if past && !args.follow {
        return Ok(());
    }
    follow(&mut feed, form)
}

/// What is in the ring; of it the last `count`, if it is said.
fn last(feed: &mut Feed, form: Form, count: Option<usize>) -> Result<Vec<u8>, String> {
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

fn follow(feed: &mut Feed, form: Form) -> Result<(), String> {
    let mut waiting = false;
    loop {
        let mut out = Vec::new();
        let polled = feed.poll(&mut |record, fields| form.write(record, fields, &mut out))?;
        if !print(&out)? {
            return Ok(());
        }
        if polled.lost > 0 {
            eprintln!("larder: {} requests were lost: this reader is too slow", polled.lost);
        }
        if polled.restarted {
            waiting = false;
            eprintln!("larder: the daemon was started anew");
        } else if polled.records == 0 {
            if !waiting && (polled.ended || feed.is_left_over()) {
                waiting = true;
                eprintln!("larder: the daemon has ended; waiting for the next (Ctrl-C ends this)");
            }
            thread::sleep(LOOK);
        }
    }
}
