//! Dates of HTTP (RFC 9110 5.6.7): parses all three forms, writes one.
//!
//! Must never read a clock: the caller passes the time that resolves two-digit years.

use std::fmt;

/// Length of a written date, `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_LEN: usize = 29;

const DAY_SECS: i64 = 24 * 60 * 60;
/// Fifty mean Gregorian years, for the rule about two-digit years.
const FIFTY_YEARS_SECS: i64 = 50 * 31_556_952;
/// 9999-12-31T23:59:59Z, the last date with a four-digit year.
const LAST_SECS: u64 = 253_402_300_799;

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const LONG_DAYS: [&[u8]; 7] =
    [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses an IMF-fixdate, an RFC 850 date or an asctime date as seconds since 1970-01-01 UTC.
///
/// Names of days, months and the zone are compared without regard to case (RFC 9111 4.2); the only
/// zone is GMT. A two-digit year more than fifty years after `now_secs` is in the past. The name of
/// the day must be valid, but need not match the date. Dates before 1970 are 0, since they are in
/// the past anyway.
pub fn parse_http_date(text: &[u8], now_secs: u64) -> Option<u64> {
    let secs = match text.iter().position(|b| *b == b',') {
        Some(3) => imf_fixdate(text)?,
        Some(comma) => rfc850(text, comma, now_secs)?,
        None => asctime(text)?,
    };
    Some(u64::try_from(secs).unwrap_or(0))
}

/// Parses a Retry-After (RFC 9110 10.2.3), seconds or a date, as milliseconds from `now_secs`.
pub fn parse_retry_after_ms(value: &[u8], now_secs: u64) -> Option<u64> {
    let value = value.trim_ascii();
    let secs = match std::str::from_utf8(value).ok()?.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => parse_http_date(value, now_secs)?.saturating_sub(now_secs),
    };
    Some(secs.saturating_mul(1000))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(text: &[u8]) -> Option<i64> {
    let text: &[u8; DATE_LEN] = text.try_into().ok()?;
    if !is_one_of(&text[..3], &DAYS) || &text[3..5] != b", " || !is_gmt(&text[25..]) {
        return None;
    }
    if text[7] != b' ' || text[11] != b' ' || text[16] != b' ' {
        return None;
    }
    let year = digits(&text[12..16])?;
    instant(year, month(&text[8..11])?, digits(&text[5..7])?, time(&text[17..25])?)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(text: &[u8], comma: usize, now_secs: u64) -> Option<i64> {
    let (day_name, rest) = text.split_at(comma);
    let rest: &[u8; 24] = rest.try_into().ok()?;
    if !is_one_of(day_name, &LONG_DAYS) || &rest[..2] != b", " || !is_gmt(&rest[20..]) {
        return None;
    }
    if rest[4] != b'-' || rest[8] != b'-' || rest[11] != b' ' {
        return None;
    }
    let (day, month) = (digits(&rest[2..4])?, month(&rest[5..8])?);
    let (two_digits, clock) = (digits(&rest[9..11])?, time(&rest[12..20])?);
    let now = i64::try_from(now_secs.min(LAST_SECS)).ok()?;
    let (this_year, _, _) = civil(now / DAY_SECS);
    let century = this_year - this_year % 100;
    // Not every century has the leap day, so a year without it is skipped.
    [century + 100, century, century - 100]
        .into_iter()
        .filter_map(|base| instant(base + two_digits, month, day, clock))
        .find(|secs| *secs <= now + FIFTY_YEARS_SECS)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    if !is_one_of(&text[..3], &DAYS) || text[3] != b' ' || text[7] != b' ' {
        return None;
    }
    if text[10] != b' ' || text[19] != b' ' {
        return None;
    }
    let day = if text[8] == b' ' { digits(&text[9..10])? } else { digits(&text[8..10])? };
    instant(digits(&text[20..])?, month(&text[4..7])?, day, time(&text[11..19])?)
}

fn is_one_of<N: AsRef<[u8]>>(name: &[u8], names: &[N]) -> bool {
    names.iter().any(|n| n.as_ref().eq_ignore_ascii_case(name))
}

fn is_gmt(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b" GMT")
}

fn month(name: &[u8]) -> Option<i64> {
    let at = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(name))?;
    Some(at as i64 + 1)
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter()
        .try_fold(0, |sum: i64, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
}

/// Parses `08:49:37` as seconds; a leap second counts as the following second.
fn time(text: &[u8]) -> Option<i64> {
    if text[2] != b':' || text[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (digits(&text[..2])?, digits(&text[3..5])?, digits(&text[6..])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

fn instant(year: i64, month: i64, day: i64, secs: i64) -> Option<i64> {
    (day >= 1 && day <= days_in_month(year, month))
        .then(|| days(year, month, day) * DAY_SECS + secs)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that the
/// leap day is the last of its year; 719,468 days lie between 0000-03-01 and 1970-01-01.
pub const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day counted from 1970-01-01: the inverse of [`days`].
pub const fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + day.div_euclid(146_097) * 400;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// Writes an IMF-fixdate. Dates beyond the year 9999 are written as its last second.
pub fn write_http_date(unix_secs: u64, out: &mut [u8; DATE_LEN]) {
    let secs = unix_secs.min(LAST_SECS) as i64;
    let (day, clock) = (secs / DAY_SECS, secs % DAY_SECS);
    let (year, month, day_of_month) = civil(day);
    out.copy_from_slice(b"Sun, 00 Jan 0000 00:00:00 GMT");
    // 1970-01-01 was a Thursday.
    out[..3].copy_from_slice(DAYS[(day + 4) as usize % 7]);
    two(&mut out[5..7], day_of_month);
    out[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    two(&mut out[12..14], year / 100);
    two(&mut out[14..16], year % 100);
    two(&mut out[17..19], clock / 3600);
    two(&mut out[20..22], clock / 60 % 60);
    two(&mut out[23..25], clock % 60);
}

fn two(out: &mut [u8], n: i64) {
    out[0] = b'0' + (n / 10) as u8;
    out[1] = b'0' + (n % 10) as u8;
}

/// A date as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HttpDate([u8; DATE_LEN]);

impl HttpDate {
    /// The IMF-fixdate of `unix_secs`.
    pub fn new(unix_secs: u64) -> Self {
        let mut text = [0; DATE_LEN];
        write_http_date(unix_secs, &mut text);
        Self(text)
    }

    /// The text of the date.
    pub fn as_bytes(&self) -> &[u8; DATE_LEN] {
        &self.0
    }
}

impl fmt::Debug for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A date in the common log format, in UTC: `06/Nov/1994:08:49:37 +0000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDate([u8; 26]);

impl LogDate {
    /// The log date of `unix_secs`.
    pub fn new(unix_secs: u64) -> Self {
        let http = HttpDate::new(unix_secs);
        let mut text = *b"00/Jan/0000:00:00:00 +0000";
        text[..2].copy_from_slice(&http.0[5..7]);
        text[3..6].copy_from_slice(&http.0[8..11]);
        text[7..11].copy_from_slice(&http.0[12..16]);
        text[12..20].copy_from_slice(&http.0[17..25]);
        Self(text)
    }

    /// The text of the date, without brackets.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a date is written in ASCII")
    }
}

/// The current date as text, formatted again only when the second changes.
#[derive(Clone, Debug)]
pub struct DateCache {
    secs: u64,
    date: HttpDate,
}

impl Default for DateCache {
    fn default() -> Self {
        Self { secs: 0, date: HttpDate::new(0) }
    }
}

impl DateCache {
    /// A cache that holds the first second of 1970.
    pub fn new() -> Self {
        Self::default()
    }

    /// The IMF-fixdate of `unix_secs`.
    pub fn at(&mut self, unix_secs: u64) -> &[u8; DATE_LEN] {
        if self.secs != unix_secs {
            self.secs = unix_secs;
            self.date = HttpDate::new(unix_secs);
        }
        self.date.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_795_300_000; // November 2026

    fn parse(text: &str) -> Option<u64> {
        parse_http_date(text.as_bytes(), NOW)
    }

    #[test]
    fn waits_are_seconds_or_dates() {
        assert_eq!(parse_retry_after_ms(b"120", 0), Some(120_000));
        assert_eq!(parse_retry_after_ms(b"Thu, 01 Jan 1970 00:01:00 GMT", 30), Some(30_000));
        assert_eq!(parse_retry_after_ms(b"Thu, 01 Jan 1970 00:01:00 GMT", 90), Some(0));
        assert_eq!(parse_retry_after_ms(b"soon", 0), None);
    }

    #[test]
    fn all_three_forms_name_the_same_second() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "sUN, 06 nOV 1994 08:49:37 gmt",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn what_is_not_quite_a_date_is_none() {
        for text in [
            "",
            "0",
            "-1",
            ",",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 AEST",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_two_digit_year_lies_at_most_fifty_years_ahead() {
        let year = |two: &str| parse(&format!("Monday, 01-Jan-{two} 00:00:00 GMT"));
        assert_eq!(year("50"), parse("Sat, 01 Jan 2050 00:00:00 GMT"));
        assert_eq!(year("76"), parse("Wed, 01 Jan 2076 00:00:00 GMT"));
        assert_eq!(year("77"), parse("Sat, 01 Jan 1977 00:00:00 GMT"));
        let late = 3_800_000_000; // 2090
        let soon = parse_http_date(b"Monday, 01-Jan-10 00:00:00 GMT", late);
        assert_eq!(soon, parse("Wed, 01 Jan 2110 00:00:00 GMT"));
    }

    #[test]
    fn dates_before_1970_are_over() {
        assert_eq!(parse("Mon, 01 Jan 1900 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Sat, 01 Jan 0000 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn a_date_shows_itself() {
        assert_eq!(HttpDate::new(784_111_777).to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(LogDate::new(784_111_777).as_str(), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn the_cache_follows_the_second() {
        let mut cache = DateCache::new();
        assert_eq!(cache.at(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(cache.at(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(cache.at(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn a_written_date_reads_back(secs in 0..=LAST_SECS) {
            let mut text = [0; DATE_LEN];
            write_http_date(secs, &mut text);
            prop_assert_eq!(parse_http_date(&text, NOW), Some(secs));
        }

        #[test]
        fn days_and_civil_are_inverse(day in -800_000_i64..3_000_000) {
            let (year, month, of_month) = civil(day);
            prop_assert_eq!(days(year, month, of_month), day);
            prop_assert!(of_month >= 1 && of_month <= days_in_month(year, month));
        }
    }
}
