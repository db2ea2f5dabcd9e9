//! Windows of time, as a condition of routes: dates, weekdays, hours and a time zone.
//!
//! Must never read a clock: a request has the one time at which its head was read, so that every
//! look at its conditions finds them as the first one did.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use message::calendar::CalendarTime;

use crate::zone::{Zone, month_lengths};

/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// Minutes of a day.
const DAY_MINUTES: u16 = 24 * 60;

/// Short names of weekdays, from Sunday.
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Windows of time; any of them.
///
/// The answer for a minute is kept, so that most requests compare two numbers.
#[derive(Debug)]
pub struct TimeWindows {
    windows: Vec<TimeWindow>,
    /// The last minute that was looked at, plus one, and in the lowest bit the answer for it.
    known: AtomicU64,
}

/// One window of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    text: String,
    /// The first and the last day; `None` for every day.
    dates: Option<DateSpan>,
    /// The weekdays, each a bit from Sunday on.
    weekdays: u8,
    /// Minutes of the day; none for the whole day.
    hours: Vec<DayMinutes>,
    zone: Arc<Zone>,
}

/// Days from one to another, with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DateSpan {
    first: CalendarDay,
    last: CalendarDay,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CalendarDay {
    year: i64,
    month: i64,
    day: i64,
}

/// Minutes of a day, without the last. If that is not after the first, it is one of the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DayMinutes {
    from: u16,
    until: u16,
}

/// The fault of a window's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeWindowError {
    /// A word is no date, weekday, hour or zone.
    Word(String),
    /// It has two words of one kind.
    Twice(String),
    /// It has a zone, and nothing in it.
    Nothing,
    /// The zone cannot be used.
    Zone(String),
}

impl fmt::Display for TimeWindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => {
                write!(f, "`{}` is no date, weekday, time or zone", word.escape_debug())
            }
            Self::Twice(word) => {
                write!(f, "`{}` comes second; separate several by commas", word.escape_debug())
            }
            Self::Nothing => f.write_str("it has no date, weekday or time"),
            Self::Zone(why) => f.write_str(why),
        }
    }
}

impl TimeWindows {
    /// The windows.
    pub fn new(windows: Vec<TimeWindow>) -> Self {
        Self { windows, known: AtomicU64::new(0) }
    }

    /// Returns true if a time, in milliseconds since 1970, is in one of the windows.
    pub fn contain(&self, unix_ms: u64) -> bool {
        let minute = unix_ms / 60_000;
        let known = self.known.load(Ordering::Relaxed);
        if known >> 1 == minute + 1 {
            return known & 1 == 1;
        }
        let secs = i64::try_from(minute * 60).unwrap_or(i64::MAX / 2);
        let is_in = self.windows.iter().any(|window| window.contains(secs));
        self.known.store((minute + 1) << 1 | u64::from(is_in), Ordering::Relaxed);
        is_in
    }
}

impl fmt::Display for TimeWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.windows.iter().map(|window| window.text.as_str()).collect();
        write!(f, "time {}", texts.join(" or "))
    }
}

impl TimeWindow {
    /// Reads a window such as `2026-12-24..2026-12-26`, `Mon-Fri 09:00-17:00 Europe/Berlin` or
    /// `Sat,Sun UTC`. `zone` finds a time zone by its name; without one it is UTC.
    ///
    /// # Errors
    /// The first word that cannot be used.
    pub fn parse(
        text: &str,
        zone: impl FnOnce(&str) -> Result<Arc<Zone>, String>,
    ) -> Result<Self, TimeWindowError> {
        let (mut dates, mut weekdays, mut hours, mut named) = (None, None, None, None);
        for word in text.split_ascii_whitespace() {
            let twice = |is_second: bool| match is_second {
                true => Err(TimeWindowError::Twice(word.to_owned())),
                false => Ok(()),
            };
            if let Some(own) = self::hours(word) {
                twice(hours.replace(own).is_some())?;
            } else if let Some(own) = DateSpan::parse(word) {
                twice(dates.replace(own).is_some())?;
            } else if let Some(own) = self::weekdays(word) {
                twice(weekdays.replace(own).is_some())?;
            } else if is_zone(word) {
                twice(named.replace(word).is_some())?;
            } else {
                return Err(TimeWindowError::Word(word.to_owned()));
            }
        }
        if dates.is_none() && weekdays.is_none() && hours.is_none() {
            return Err(TimeWindowError::Nothing);
        }
        let zone = match named {
            None | Some("UTC") => Arc::new(Zone::utc()),
            Some(name) => zone(name).map_err(TimeWindowError::Zone)?,
        };
        let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let (weekdays, hours) = (weekdays.unwrap_or(0x7f), hours.unwrap_or_default());
        Ok(Self { text, dates, weekdays, hours, zone })
    }

    /// Returns true if a time in seconds since 1970 is in the window.
    fn contains(&self, unix_secs: i64) -> bool {
        let local = CalendarTime::at(unix_secs + self.zone.offset_s(unix_secs));
        if self.hours.is_empty() {
            return self.is_on(local);
        }
        let minute = u16::try_from(local.hour * 60 + local.minute).unwrap_or(0);
        self.hours.iter().any(|hours| match hours.from < hours.until {
            true => (hours.from..hours.until).contains(&minute) && self.is_on(local),
            // Past midnight it belongs to the day on which it began.
            false => {
                minute >= hours.from && self.is_on(local)
                    || minute < hours.until && self.is_on(CalendarTime::at(local.secs - DAY_S))
            }
        })
    }

    fn is_on(&self, local: CalendarTime) -> bool {
        let CalendarTime { year, month, day, .. } = local;
        let today = CalendarDay { year, month, day };
        self.weekdays & 1 << local.weekday != 0
            && self.dates.is_none_or(|span| (span.first..=span.last).contains(&today))
    }
}

impl DateSpan {
    /// Reads `2026-12-24` or `2026-12-24..2026-12-26`.
    fn parse(word: &str) -> Option<Self> {
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let span = Self { first: CalendarDay::parse(first)?, last: CalendarDay::parse(last)? };
        (span.first <= span.last).then_some(span)
    }
}

impl CalendarDay {
    fn parse(text: &str) -> Option<Self> {
        let [year, month, day] = *text.split('-').collect::<Vec<_>>() else { return None };
        let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
        let at = usize::try_from(month).ok()?.checked_sub(1)?;
        let most = *month_lengths(year).get(at)?;
        (1..=most).contains(&day).then_some(Self { year, month, day })
    }
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Reads times of the day: `09:00-12:00,13:00-17:30`.
fn hours(word: &str) -> Option<Vec<DayMinutes>> {
    let range = |part: &str| {
        let (from, until) = part.split_once('-')?;
        let (from, until) = (minute(from)?, minute(until)?);
        let is_sound = from < DAY_MINUTES && from != until;
        is_sound.then_some(DayMinutes { from, until })
    };
    word.split(',').map(range).collect()
}

/// The minute of the day of `09:30`; `24:00` is its end.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    let all = u16::try_from(hour * 60 + minute).ok()?;
    (minute < 60 && all <= DAY_MINUTES).then_some(all)
}

/// Reads weekdays: `Mon-Fri`, `Sat,Sun`, `Fri-Mon,Wed`.
fn weekdays(word: &str) -> Option<u8> {
    let mut mask = 0;
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (mut day, last) = (weekday(first)?, weekday(last)?);
        mask |= 1 << day;
        while day != last {
            day = (day + 1) % 7;
            mask |= 1 << day;
        }
    }
    Some(mask)
}

fn weekday(text: &str) -> Option<usize> {
    WEEKDAYS.iter().position(|name| name.eq_ignore_ascii_case(text))
}

/// Returns true for what may be a name of the time zone database.
fn is_zone(word: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+'))
    };
    word.split('/').all(is_part) && (word.contains('/') || word == "UTC")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::zone::tests::berlin;

    fn window(text: &str) -> TimeWindow {
        let zone = |name: &str| match name {
            "Europe/Berlin" => Ok(Arc::new(berlin())),
            _ => Err(format!("no zone {name}")),
        };
        TimeWindow::parse(text, zone).expect(text)
    }

    /// Seconds since 1970 of a time in UTC.
    fn at(day: &str, time: &str) -> i64 {
        let day = CalendarDay::parse(day).expect("a day");
        let mut days = (day.year - 1970) * 365;
        let of = |days: i64| CalendarTime::at(days * DAY_S);
        while (of(days).year, of(days).month, of(days).day) != (day.year, day.month, day.day) {
            days += 1;
        }
        days * DAY_S + i64::from(minute(time).expect("a time")) * 60
    }

    #[test]
    fn a_window_has_days_hours_and_a_zone() {
        // 2026-11-30 is a Monday; in Berlin it is an hour later, in summer two.
        for (text, day, time, is_in) in [
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30", "08:00", true),
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30", "07:59", false),
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30", "15:59", true),
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30", "16:00", false),
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-07-06", "07:00", true),
            ("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-07-05", "07:00", false),
            ("Sat,Sun", "2026-11-29", "23:59", true),
            ("Sat,Sun", "2026-11-30", "00:00", false),
            ("Sat,Sun Europe/Berlin", "2026-11-29", "23:00", false),
            ("sat-mon", "2026-11-30", "12:00", true),
            ("2026-12-24..2026-12-26 Europe/Berlin", "2026-12-23", "23:00", true),
            ("2026-12-24..2026-12-26 Europe/Berlin", "2026-12-26", "23:00", false),
            ("2026-12-24", "2026-12-24", "23:59", true),
            // A night belongs to the evening on which it begins.
            ("Fri 22:00-06:00", "2026-11-27", "22:00", true),
            ("Fri 22:00-06:00", "2026-11-28", "05:59", true),
            ("Fri 22:00-06:00", "2026-11-27", "05:59", false),
            ("Fri 22:00-06:00", "2026-11-28", "22:00", false),
            ("2026-12-31 23:00-01:00", "2027-01-01", "00:59", true),
            ("09:00-12:00,13:00-24:00", "2026-11-30", "12:30", false),
            ("09:00-12:00,13:00-24:00", "2026-11-30", "23:59", true),
        ] {
            assert_eq!(window(text).contains(at(day, time)), is_in, "{text}: {day} {time}");
        }
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        let word = |word: &str| TimeWindowError::Word(word.to_owned());
        for (text, error) in [
            ("", TimeWindowError::Nothing),
            ("Europe/Berlin", TimeWindowError::Nothing),
            ("Mon Tue", TimeWindowError::Twice("Tue".to_owned())),
            ("Mon 9:00-17:00", word("9:00-17:00")),
            ("Mon 09:00-24:01", word("09:00-24:01")),
            ("24:00-06:00", word("24:00-06:00")),
            ("09:00-09:00", word("09:00-09:00")),
            ("Mon-Fry", word("Mon-Fry")),
            ("2026-02-29", word("2026-02-29")),
            ("2026-12-26..2026-12-24", word("2026-12-26..2026-12-24")),
            ("Mon Europe/../etc", word("Europe/../etc")),
            ("Mon CET", word("CET")),
            ("Mon Europe/Atlantis", TimeWindowError::Zone("no zone Europe/Atlantis".to_owned())),
        ] {
            let zone = |name: &str| Err(format!("no zone {name}"));
            assert_eq!(TimeWindow::parse(text, zone), Err(error), "{text}");
        }
    }

    #[test]
    fn the_answer_is_kept_for_a_minute_and_no_longer() {
        let windows = TimeWindows::new(vec![window("2026-11-30 08:00-08:01"), window("Tue")]);
        assert_eq!(windows.to_string(), "time 2026-11-30 08:00-08:01 or Tue");
        let start = u64::try_from(at("2026-11-30", "08:00")).expect("after 1970") * 1000;
        for (ms, is_in) in
            [(0, true), (59_999, true), (60_000, false), (59_999, true), (3 * 3_600_000, false)]
        {
            assert_eq!(windows.contain(start + ms), is_in, "{ms}");
        }
        assert!(!TimeWindows::new(Vec::new()).contain(u64::MAX));
    }

    proptest! {
        /// Minute by minute, from the parts of the local time.
        #[test]
        fn windows_are_those_of_a_plain_model(
            secs in 1_577_836_800_i64..4_102_444_800,
            from in 0..1440_u16, until in 0..=1440_u16, first in 0..7_usize, last in 0..7_usize,
        ) {
            prop_assume!(from != until);
            let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
            let (a, b) = (WEEKDAYS[first], WEEKDAYS[last]);
            let text = format!("{a}-{b} {}-{} Europe/Berlin", clock(from), clock(until));
            let local = CalendarTime::at(secs + berlin().offset_s(secs));
            let minute = (local.hour * 60 + local.minute) as u16;
            let length = (i32::from(until) - i32::from(from)).rem_euclid(1440);
            let length = if length == 0 { 1440 } else { length };
            let since = (i32::from(minute) - i32::from(from)).rem_euclid(1440);
            let began = local.secs - i64::from(since) * 60;
            let weekday = CalendarTime::at(began).weekday as usize;
            let is_day = (0..=(last + 7 - first) % 7).any(|n| (first + n) % 7 == weekday);
            prop_assert_eq!(window(&text).contains(secs), since < length && is_day, "{}", text);
        }

        #[test]
        fn any_text_is_safe(text in "[A-Z a-z0-9:,./-]{0,40}", secs in any::<u32>()) {
            if let Ok(window) = TimeWindow::parse(&text, |_| Ok(Arc::new(berlin()))) {
                let written = window.text.clone();
                let again = TimeWindow::parse(&written, |_| Ok(Arc::new(berlin())));
                prop_assert_eq!(again.as_ref(), Ok(&window));
                _ = window.contains(i64::from(secs));
            }
        }
    }
}
