//! Calendar: dates in HTTP's form, parsing of dates, and `strftime`. A time is seconds since 1970
//! UTC, may be negative, and is truncated towards 1970 as a cast in C does. It never reads a clock.

use message::date::{civil, days};

use super::spelling::write;

const DAY_SECS: i64 = 86_400;
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A time broken down as in C's `struct tm`, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenDownTime {
    /// Seconds since 1970.
    pub secs: i64,
    /// Year; 0 is the year before 1.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: i64,
    /// Day of the month, 1 to 31.
    pub day: i64,
    /// Day of the week, 0 (Sunday) to 6.
    pub weekday: i64,
    /// Day of the year from 0.
    pub yearday: i64,
    /// Hour, 0 to 23.
    pub hour: i64,
    /// Minute, 0 to 59.
    pub minute: i64,
    /// Second, 0 to 59.
    pub second: i64,
}

impl BrokenDownTime {
    /// Breaks a time down.
    pub fn at(time: f64) -> Self {
        // Larger times have no year of practical use.
        const FAR: f64 = 1e14;
        let secs = time.clamp(-FAR, FAR) as i64;
        let (today, rest) = (secs.div_euclid(DAY_SECS), secs.rem_euclid(DAY_SECS));
        let (year, month, day) = civil(today);
        Self {
            secs,
            year,
            month,
            day,
            weekday: (today + 4).rem_euclid(7),
            yearday: today - days(year, 1, 1),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    fn day_name(&self) -> &'static str {
        DAYS[self.weekday as usize]
    }

    fn month_name(&self) -> &'static str {
        MONTHS[self.month as usize - 1]
    }

    /// Year and week of ISO 8601: weeks begin on Monday and belong to the year of their Thursday.
    fn iso_week(&self) -> (i64, i64) {
        let thursday = self.yearday - (self.weekday + 6) % 7 + 3;
        if thursday < 0 {
            let before = days_in(self.year - 1);
            return (self.year - 1, (thursday + before) / 7 + 1);
        }
        if thursday >= days_in(self.year) {
            return (self.year + 1, 1);
        }
        (self.year, thursday / 7 + 1)
    }
}

fn days_in(year: i64) -> i64 {
    days(year + 1, 1, 1) - days(year, 1, 1)
}

/// Appends a TIME in Varnish's form: HTTP's, cut after 29 bytes if the year has more than four
/// digits.
pub fn append_http_date(time: f64, out: &mut Vec<u8>) {
    const WIDTH: usize = 29;
    let m = BrokenDownTime::at(time);
    let start = out.len();
    let (day, month) = (&m.day_name()[..3], &m.month_name()[..3]);
    write(
        out,
        format_args!(
            "{day}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
            m.day, m.year, m.hour, m.minute, m.second
        ),
    );
    out.truncate(start + WIDTH);
}

/// Parses a date in one of HTTP's three forms or `1994-11-06T08:49:37`, strictly: with this case,
/// the right weekday, and blanks only around it. Years begin with 1899. With `short_days`
/// (`http_date_postel`) a day may have one digit: `Sun, 6 Nov 1994 08:49:37 GMT`.
pub fn read(text: &[u8], short_days: bool) -> Option<f64> {
    let text = str::from_utf8(text).ok()?.trim_ascii();
    if let Some((date, time)) = text.split_once('T').filter(|(date, _)| date.len() == 10) {
        let [year, month, day] = split(date, '-')?;
        let date = Day { year: digits(year, 4)?, month: digits(month, 2)?, day: digits(day, 2)? };
        return moment(date, time);
    }
    let (name, secs) = if let Some((name, rest)) = text.split_once(", ") {
        let rest = rest.strip_suffix(" GMT")?;
        let secs = match rest.split_once('-') {
            None => {
                let [day, month, year, time] = split(rest, ' ')?;
                let len = if short_days && day.len() == 1 { 1 } else { 2 };
                let (year, month) = (digits(year, 4)?, month_of(month)?);
                moment(Day { year, month, day: digits(day, len)? }, time)?
            }
            Some(_) => {
                let [date, time] = split(rest, ' ')?;
                let [day, month, year] = split(date, '-')?;
                let year = digits(year, 2)?;
                let year = if year < 69 { 2000 + year } else { 1900 + year };
                moment(Day { year, month: month_of(month)?, day: digits(day, 2)? }, time)?
            }
        };
        (name, secs)
    } else {
        let (name, rest) = text.split_at_checked(3)?;
        let (month, rest) = rest.strip_prefix(' ')?.split_at_checked(3)?;
        let (day, rest) = rest.strip_prefix(' ')?.split_at_checked(2)?;
        let [time, year] = split(rest.strip_prefix(' ')?, ' ')?;
        let day = match day.strip_prefix(' ') {
            Some(day) => digits(day, 1)?,
            None => digits(day, 2)?,
        };
        let (year, month) = (digits(year, 4)?, month_of(month)?);
        (name, moment(Day { year, month, day }, time)?)
    };
    let day = BrokenDownTime::at(secs).day_name();
    (name == day || name == &day[..3]).then_some(secs)
}

fn split<const N: usize>(text: &str, at: char) -> Option<[&str; N]> {
    text.split(at).collect::<Vec<_>>().try_into().ok()
}

fn digits(text: &str, len: usize) -> Option<i64> {
    let is_number = text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn month_of(name: &str) -> Option<i64> {
    let at = MONTHS.iter().position(|month| &month[..3] == name)?;
    Some(at as i64 + 1)
}

/// A day as written, which may not exist in the calendar.
#[derive(Clone, Copy)]
struct Day {
    year: i64,
    /// Month, from 1.
    month: i64,
    /// Day of the month, from 1.
    day: i64,
}

/// Seconds since 1970 of a date and `08:49:37`. A leap second counts as the second before it.
fn moment(date: Day, time: &str) -> Option<f64> {
    const FIRST_YEAR: i64 = 1899;
    let [hour, minute, second] = split(time, ':')?;
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    let Day { year, month, day: of_month } = date;
    let day = days(year, month, of_month);
    let is_date =
        year >= FIRST_YEAR && (1..=12).contains(&month) && civil(day) == (year, month, of_month);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let secs = day * DAY_SECS + hour * 3600 + minute * 60 + second.min(59);
    (is_date && is_time).then_some(secs as f64)
}

/// Padding of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Zero,
    Space,
    Nothing,
}

/// `strftime` in the C locale for UTC, with flags and widths of the GNU library. Unknown
/// conversions stay as they are.
pub fn strftime(time: f64, format: &[u8]) -> Vec<u8> {
    // A short format never makes a long result, whatever its widths.
    const WIDTH_MAX: usize = 64;
    let m = BrokenDownTime::at(time);
    let mut out = Vec::with_capacity(format.len() * 2);
    let mut rest = format;
    while let Some((before, after)) = split_at_percent(rest) {
        out.extend_from_slice(before);
        let mut at = 0;
        let (mut fill, mut case) = (None, None);
        while let Some(flag) = after.get(at) {
            match flag {
                b'-' => fill = Some(Fill::Nothing),
                b'_' => fill = Some(Fill::Space),
                b'0' => fill = Some(Fill::Zero),
                b'^' => case = Some(Case::Upper),
                b'#' => case = Some(Case::Other),
                _ => break,
            }
            at += 1;
        }
        let digits = after[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let width = after[at..at + digits]
            .iter()
            .fold(0, |n: usize, b| (n * 10 + usize::from(b - b'0')).min(WIDTH_MAX));
        at += digits;
        if matches!(after.get(at), Some(b'E' | b'O')) {
            at += 1;
        }
        let Some(letter) = after.get(at) else {
            out.push(b'%');
            out.extend_from_slice(after);
            rest = &[];
            break;
        };
        let start = out.len();
        if conversion(&m, *letter, fill, width, &mut out) {
            change_case(case, *letter, &mut out[start..]);
        } else {
            out.push(b'%');
            out.extend_from_slice(&after[..=at]);
        }
        rest = &after[at + 1..];
    }
    out.extend_from_slice(rest);
    out
}

/// Change of case by `^` and `#`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Other,
}

fn change_case(case: Option<Case>, letter: u8, text: &mut [u8]) {
    match (case, letter) {
        (None, _) => {}
        (Some(Case::Upper), _) | (Some(Case::Other), b'a' | b'A' | b'b' | b'B' | b'h') => {
            text.make_ascii_uppercase();
        }
        (Some(Case::Other), b'p' | b'Z') => text.make_ascii_lowercase(),
        (Some(Case::Other), _) => {}
    }
}

fn split_at_percent(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'%', text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Appends the result of a conversion. Returns false for an unknown one.
fn conversion(
    m: &BrokenDownTime,
    letter: u8,
    fill: Option<Fill>,
    width: usize,
    out: &mut Vec<u8>,
) -> bool {
    if let Some((value, digits, usual)) = numeric(m, letter) {
        let width = width.max(digits);
        match fill.unwrap_or(usual) {
            Fill::Zero => write(out, format_args!("{value:0width$}")),
            Fill::Space => write(out, format_args!("{value:width$}")),
            Fill::Nothing => write(out, format_args!("{value}")),
        }
        return true;
    }
    let whole = match letter {
        b'c' => "%a %b %e %H:%M:%S %Y",
        b'D' | b'x' => "%m/%d/%y",
        b'F' => "%Y-%m-%d",
        b'r' => "%I:%M:%S %p",
        b'R' => "%H:%M",
        b'T' | b'X' => "%H:%M:%S",
        b'+' => return false,
        _ => {
            let Some(word) = word(m, letter) else { return false };
            write(out, format_args!("{word:>width$}"));
            return true;
        }
    };
    let text = strftime(m.secs as f64, whole.as_bytes());
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
    out.extend_from_slice(&text);
    true
}

fn word(m: &BrokenDownTime, letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'a' => &m.day_name()[..3],
        b'A' => m.day_name(),
        b'b' | b'h' => &m.month_name()[..3],
        b'B' => m.month_name(),
        b'n' => "\n",
        b'p' if m.hour < 12 => "AM",
        b'p' => "PM",
        b'P' if m.hour < 12 => "am",
        b'P' => "pm",
        b't' => "\t",
        b'z' => "+0000",
        b'Z' => "GMT",
        b'%' => "%",
        _ => return None,
    })
}

/// A number with its usual width and padding.
fn numeric(m: &BrokenDownTime, letter: u8) -> Option<(i64, usize, Fill)> {
    let twelve = (m.hour + 11) % 12 + 1;
    Some(match letter {
        b'C' => (m.year.div_euclid(100), 2, Fill::Zero),
        b'd' => (m.day, 2, Fill::Zero),
        b'e' => (m.day, 2, Fill::Space),
        b'g' => (m.iso_week().0.rem_euclid(100), 2, Fill::Zero),
        b'G' => (m.iso_week().0, 1, Fill::Zero),
        b'H' => (m.hour, 2, Fill::Zero),
        b'I' => (twelve, 2, Fill::Zero),
        b'j' => (m.yearday + 1, 3, Fill::Zero),
        b'k' => (m.hour, 2, Fill::Space),
        b'l' => (twelve, 2, Fill::Space),
        b'm' => (m.month, 2, Fill::Zero),
        b'M' => (m.minute, 2, Fill::Zero),
        b's' => (m.secs, 1, Fill::Zero),
        b'S' => (m.second, 2, Fill::Zero),
        b'u' => ((m.weekday + 6) % 7 + 1, 1, Fill::Zero),
        b'U' => ((m.yearday + 7 - m.weekday) / 7, 2, Fill::Zero),
        b'V' => (m.iso_week().1, 2, Fill::Zero),
        b'w' => (m.weekday, 1, Fill::Zero),
        b'W' => ((m.yearday + 7 - (m.weekday + 6) % 7) / 7, 2, Fill::Zero),
        b'y' => (m.year.rem_euclid(100), 2, Fill::Zero),
        b'Y' => (m.year, 1, Fill::Zero),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use message::date::HttpDate;
    use proptest::prelude::*;

    use super::*;

    fn http_date(time: f64) -> String {
        let mut out = Vec::new();
        append_http_date(time, &mut out);
        String::from_utf8(out).expect("it is ASCII")
    }

    /// Results of varnishd 7.1.1.
    #[test]
    fn times_far_away_are_written_as_varnish_writes_them() {
        assert_eq!(http_date(-1.0), "Wed, 31 Dec 1969 23:59:59 GMT");
        assert_eq!(http_date(-0.5), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(253_402_300_800.0), "Sat, 01 Jan 10000 00:00:00 GM");
        assert_eq!(http_date(f64::NAN), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn no_format_makes_much_of_little() {
        assert_eq!(strftime(0.0, b"%999999999d").len(), 64);
    }

    proptest! {
        #[test]
        fn dates_are_those_of_http(secs in 0_u64..253_402_300_800) {
            let date = http_date(secs as f64);
            let expected = HttpDate::new(secs);
            prop_assert_eq!(date.as_bytes(), &expected.as_bytes()[..]);
            prop_assert_eq!(read(date.as_bytes(), false), Some(secs as f64));
            let iso = strftime(secs as f64, b"%FT%T");
            prop_assert_eq!(read(&iso, true), Some(secs as f64));
            let asctime = strftime(secs as f64, b"%a %b %e %T %Y");
            prop_assert_eq!(read(&asctime, true), Some(secs as f64));
        }

        #[test]
        fn any_bytes_are_a_date_or_none(text: Vec<u8>, time: f64) {
            let _ = read(&text, true);
            let _ = strftime(time, &text);
        }
    }
}
