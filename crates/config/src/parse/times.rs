//! `time` of `[site.route.when]`: windows of time, and the zones that they name.
//!
//! A zone is read with the configuration, so that a name that the machine does not know is a fault
//! of the setting.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use policy::conditions::{Condition, Conditions};
use policy::time_windows::{TimeWindow, TimeWindows};
use policy::zone::Zone;

use super::conditions::refuse_empty;
use crate::reader::{Reader, SettingValue};

/// Accepted values.
pub(super) const TIMES: &str = "a string or a list of strings";

/// The folder of the time zone database.
const ZONES: &str = "/usr/share/zoneinfo";
/// Largest file of a zone: those of the database have 4 KiB.
const ZONE_BYTES: u64 = 64 * 1024;

/// Reads windows of time.
pub(super) fn time(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    let mut windows = Vec::new();
    for (text, item) in r.texts(item) {
        match TimeWindow::parse(text, zone) {
            Ok(window) => windows.push(window),
            Err(why) => {
                r.error(item.span, format!("`time`: {why}")).help = Some(
                    "such as \"Mon-Fri 09:00-17:00 Europe/Berlin\" or \"2026-12-24..2026-12-26\""
                        .to_owned(),
                );
            }
        }
    }
    if refuse_empty(r, item) {
        to.push(Condition::Time(Arc::new(TimeWindows::new(windows))));
    }
}

/// The zone of this name, which has letters, digits and slashes between them.
fn zone(name: &str) -> Result<Arc<Zone>, String> {
    let file = Path::new(ZONES).join(name);
    let mut bytes = Vec::new();
    File::open(&file).and_then(|file| file.take(ZONE_BYTES).read_to_end(&mut bytes)).map_err(
        |error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("this machine has no time zone `{name}` (package tzdata)")
            }
            _ => format!("{}: {error}", file.display()),
        },
    )?;
    let read = Zone::parse(&bytes);
    read.map(Arc::new).ok_or_else(|| format!("{}: it is no time zone", file.display()))
}
