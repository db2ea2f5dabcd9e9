//! Dates in the format of C's `strftime`, as `config timefmt` has it. Times are UTC.

use std::fmt::Write as _;

/// nginx's format if a page sets none.
pub(crate) const DEFAULT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

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

struct Date {
    seconds: u64,
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    day_of_year: u64,
    weekday: usize,
}

impl Date {
    fn of(seconds: u64) -> Self {
        let days = seconds / 86_400;
        let weekday = (days + 4) % 7;
        // Years that begin with March: the leap day comes last.
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let of_era = shifted % 146_097;
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = (shifted_month + 2) % 12;
        let year = year_of_era + era * 400 + u64::from(month < 2);
        let is_leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let before = if month < 2 { of_year - 306 } else { of_year + 59 + u64::from(is_leap) };
        let place = |value: u64| usize::try_from(value).unwrap_or_default();
        Self {
            seconds: seconds % 86_400,
            year,
            month: place(month),
            day,
            day_of_year: before + 1,
            weekday: place(weekday),
        }
    }
}

/// A time in a format.
pub(crate) fn formatted(format: Option<&[u8]>, seconds: u64) -> Vec<u8> {
    let date = Date::of(seconds);
    let mut out = Vec::new();
    let mut rest = format.unwrap_or(DEFAULT);
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let Some(letter) = rest.get(at + 1) else {
            rest = &rest[at..];
            break;
        };
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'%' => out.push(b'%'),
            letter => match field(&date, *letter, seconds) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => out.extend_from_slice(&rest[at..at + 2]),
            },
        }
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

fn field(date: &Date, letter: u8, seconds: u64) -> Option<String> {
    let Date { year, month, day, day_of_year, weekday, .. } = *date;
    let (hour, minute, second) = (date.seconds / 3600, date.seconds / 60 % 60, date.seconds % 60);
    let twelve = (hour + 11) % 12 + 1;
    let mut out = String::new();
    // Writing into a string never fails.
    _ = match letter {
        b'A' => write!(out, "{}", DAYS[weekday]),
        b'a' => write!(out, "{}", &DAYS[weekday][..3]),
        b'B' => write!(out, "{}", MONTHS[month]),
        b'b' | b'h' => write!(out, "{}", &MONTHS[month][..3]),
        b'C' => write!(out, "{:02}", year / 100),
        b'c' => write!(
            out,
            "{} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}",
            &DAYS[weekday][..3],
            &MONTHS[month][..3]
        ),
        b'D' | b'x' => write!(out, "{:02}/{day:02}/{:02}", month + 1, year % 100),
        b'd' => write!(out, "{day:02}"),
        b'e' => write!(out, "{day:2}"),
        b'F' => write!(out, "{year}-{:02}-{day:02}", month + 1),
        b'H' => write!(out, "{hour:02}"),
        b'I' => write!(out, "{twelve:02}"),
        b'j' => write!(out, "{day_of_year:03}"),
        b'M' => write!(out, "{minute:02}"),
        b'm' => write!(out, "{:02}", month + 1),
        b'p' => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
        b'R' => write!(out, "{hour:02}:{minute:02}"),
        b'S' => write!(out, "{second:02}"),
        b's' => write!(out, "{seconds}"),
        b'T' | b'X' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        b'u' => write!(out, "{}", (weekday + 6) % 7 + 1),
        b'w' => write!(out, "{weekday}"),
        b'Y' => write!(out, "{year}"),
        b'y' => write!(out, "{:02}", year % 100),
        b'Z' => write!(out, "GMT"),
        b'z' => write!(out, "+0000"),
        _ => return None,
    };
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_strftime_writes_them() {
        // `date -u -d @... +...`
        for (seconds, format, text) in [
            (0, "%A, %d-%b-%Y %H:%M:%S %Z", "Thursday, 01-Jan-1970 00:00:00 GMT"),
            (951_782_400, "%F %j %a %u %w", "2000-02-29 060 Tue 2 2"),
            (978_220_800, "%F %j", "2000-12-31 366"),
            (1_735_689_599, "%c|%D|%e|%I %p|%y", "Tue Dec 31 23:59:59 2024|12/31/24|31|11 PM|24"),
            (1_740_787_200, "%B %e %C %s %z", "March  1 20 1740787200 +0000"),
            (43_200, "%I%p %T %R%n%t%%", "12PM 12:00:00 12:00\n\t%"),
            (0, "%q%", "%q%"),
        ] {
            let found = formatted(Some(format.as_bytes()), seconds);
            assert_eq!(String::from_utf8_lossy(&found), text);
        }
        assert_eq!(formatted(None, 0), b"Thursday, 01-Jan-1970 00:00:00 GMT");
    }

    #[test]
    fn no_time_is_too_late() {
        assert!(!formatted(None, u64::MAX / 2).is_empty());
    }
}
