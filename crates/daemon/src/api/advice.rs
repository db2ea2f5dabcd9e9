//! The API of advice: what would serve the visitors better, by the log ring and the configuration
//! file. It is made on request, beside the cores, one at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admin::AdminResponse;
use advise::sources::RingVisits;
use advise::{Advice, Settings, Visit, report};
use config::sizing::Machine;
use http::StatusCode;
use observe::ring::{FollowStart, RingFollower};

use super::store::ApiRefusal;
use crate::keeper;
use crate::state::Daemon;

/// The parts that advice is made from.
struct AdviceSource {
    /// The folder of the log ring.
    ring: PathBuf,
    /// The configuration file.
    file: PathBuf,
    machine: Machine,
    /// The most visits.
    most: usize,
}

impl Daemon {
    /// Makes advice by the latest requests.
    pub(super) async fn advice(&self) -> Result<AdminResponse, ApiRefusal> {
        let refused = |status, why: &str| (status, why.to_owned());
        let off = || refused(StatusCode::NOT_FOUND, "the log ring is off: see `log_ring`");
        let ring = self.ring.as_ref().ok_or_else(off)?.folder().to_owned();
        let flags =
            || refused(StatusCode::CONFLICT, "advice is on a larder.toml, and the daemon has none");
        let file = self.config_file().ok_or_else(flags)?.into();
        let under_way =
            |_| refused(StatusCode::SERVICE_UNAVAILABLE, "advice is being made: ask again");
        let turn = Arc::clone(&self.advising).try_lock_owned().map_err(under_way)?;
        let most = usize::try_from(self.shared.live().limits.advice_visits).unwrap_or(usize::MAX);
        let source = AdviceSource { ring, file, machine: self.machine(), most };
        let made = rt::run_blocking(move || {
            let _turn = turn;
            source.make()
        });
        match made.await {
            Ok(advice) => Ok(AdminResponse::json(&report::json(&advice))),
            Err(why) => Err((StatusCode::CONFLICT, why)),
        }
    }
}

impl AdviceSource {
    fn make(&self) -> Result<Advice, String> {
        let name = self.file.display().to_string();
        let text = read_text(&self.file).map_err(|error| format!("{name}: {error}"))?;
        let settings = Settings::read(&name, &text, self.machine);
        let settings = settings.map_err(|faults| config::render(&faults, false))?;
        let visits = self.visits().map_err(|error| format!("the log ring: {error}"))?;
        Ok(advise::advise(visits, &settings))
    }

    /// The latest visits in the ring.
    fn visits(&self) -> io::Result<Vec<Visit>> {
        let mut follower = RingFollower::open(&self.ring, FollowStart::Oldest)?;
        let names = follower.names().to_vec();
        let (mut visits, until_ms) = (RingVisits::new(self.most), rt::now().unix_ms);
        let mut is_over = false;
        while !is_over {
            let polled = follower.poll(&mut |record| {
                is_over |= record.start_unix_ms > until_ms;
                visits.push(record, &names);
            });
            is_over |= polled?.records == 0;
        }
        Ok(visits.into_visits())
    }
}

fn read_text(file: &Path) -> io::Result<String> {
    let bytes = keeper::read(file)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
