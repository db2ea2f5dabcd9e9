//! A window of time and the file of a time zone: what can be read has one answer for each time.
#![no_main]

use std::sync::Arc;

use policy::time_windows::{TimeWindow, TimeWindows};
use policy::zone::Zone;

libfuzzer_sys::fuzz_target!(|data: (&str, &[u8], u64)| {
    let (text, file, unix_ms) = data;
    let zone = Zone::parse(file).map(Arc::new);
    let Ok(window) = TimeWindow::parse(text, |_| zone.clone().ok_or_else(String::new)) else {
        return;
    };
    let windows = TimeWindows::new(vec![window]);
    assert_eq!(windows.contain(unix_ms), windows.contain(unix_ms));
});
