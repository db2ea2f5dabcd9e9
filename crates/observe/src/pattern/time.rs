//! Moments, as strftime(3) and varnishncsa(1) write them, in UTC.

use message::date::HttpDate;

/// Conversions that stand for others.
const LONGER: &[(char, &str)] = &[
    ('c', "%a %b %e %H:%M:%S %Y"),
    ('D', "%m/%d/%y"),
    ('F', "%Y-%m-%d"),
    ('h', "%b"),
    ('R', "%H:%M"),
    ('r', "%I:%M:%S %p"),
    ('T', "%H:%M:%S"),
    ('X', "%H:%M:%S"),
    ('x', "%m/%d/%y"),
];

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

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The form in which a moment is written.
#[derive(Clone, Debug)]
pub(super) enum DateFormat {
    /// Numbers of its own: since 1970 or of the second.
    Number(Number),
    /// Text, and characters that stand behind a `%`.
    Parts(Vec<(bool, char)>),
}

/// A moment in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Seconds,
    Millis,
    Micros,
    MillisOfSecond,
    MicrosOfSecond,
    /// Seconds with three decimals.
    SecondsMillis,
}

impl DateFormat {
    /// Reads a format of strftime(3), or one of varnishncsa's extensions.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = match text {
            "sec" => Some(Number::Seconds),
            "msec" => Some(Number::Millis),
            "usec" => Some(Number::Micros),
            "msec_frac" => Some(Number::MillisOfSecond),
            "usec_frac" => Some(Number::MicrosOfSecond),
            _ => None,
        };
        if let Some(number) = number {
            return Ok(Self::Number(number));
        }
        let mut parts = Vec::new();
        conversions(text, &mut parts)?;
        Ok(Self::Parts(parts))
    }

    /// One whose conversions are all known.
    pub(super) fn parts(text: &'static str) -> Self {
        let mut parts = Vec::new();
        _ = conversions(text, &mut parts);
        Self::Parts(parts)
    }

    /// Seconds since 1970 with three decimals.
    pub(super) fn millis() -> Self {
        Self::Number(Number::SecondsMillis)
    }

    /// Writes the moment `us`, in microseconds since 1970.
    pub(super) fn text(&self, us: u64) -> String {
        match self {
            Self::Number(Number::Seconds) => (us / 1_000_000).to_string(),
            Self::Number(Number::Millis) => (us / 1000).to_string(),
            Self::Number(Number::Micros) => us.to_string(),
            Self::Number(Number::MillisOfSecond) => format!("{:03}", us / 1000 % 1000),
            Self::Number(Number::MicrosOfSecond) => format!("{:06}", us % 1_000_000),
            Self::Number(Number::SecondsMillis) => {
                format!("{}.{:03}", us / 1_000_000, us / 1000 % 1000)
            }
            Self::Parts(parts) => {
                let moment = Moment::of(us / 1_000_000);
                parts.iter().map(|(is_own, c)| moment.part(*is_own, *c)).collect()
            }
        }
    }
}

fn conversions(text: &str, parts: &mut Vec<(bool, char)>) -> Result<(), String> {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            parts.push((false, c));
            continue;
        }
        let c = chars.next().unwrap_or(' ');
        if let Some((_, longer)) = LONGER.iter().find(|(own, _)| *own == c) {
            conversions(longer, parts)?;
        } else if "aAbBCdeHIjklmMnpPsStuwyYzZ%".contains(c) {
            parts.push((true, c));
        } else {
            return Err(format!("`%{c}` is no part of a date here"));
        }
    }
    Ok(())
}

/// A moment taken apart.
struct Moment {
    unix_s: u64,
    year: u64,
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    weekday: usize,
    /// From 1.
    day_of_year: u64,
}

impl Moment {
    fn of(unix_s: u64) -> Self {
        let date = HttpDate::new(unix_s);
        let text = date.as_bytes();
        let number = |from: usize, to: usize| {
            text[from..to].iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
        };
        let month = MONTHS.iter().position(|name| name.as_bytes()[..3] == text[8..11]).unwrap_or(0);
        let (day, year) = (number(5, 7), number(12, 16));
        let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month];
        Self {
            unix_s,
            year,
            month,
            day,
            hour: unix_s / 3600 % 24,
            minute: unix_s / 60 % 60,
            second: unix_s % 60,
            // 1970 began on a Thursday.
            weekday: ((unix_s / 86_400 + 4) % 7) as usize,
            day_of_year: before + day + u64::from(is_leap && month > 1),
        }
    }

    fn part(&self, is_own: bool, c: char) -> String {
        let half = (self.hour + 11) % 12 + 1;
        match c {
            _ if !is_own => c.to_string(),
            'a' => DAYS[self.weekday][..3].to_owned(),
            'A' => DAYS[self.weekday].to_owned(),
            'b' => MONTHS[self.month][..3].to_owned(),
            'B' => MONTHS[self.month].to_owned(),
            'C' => format!("{:02}", self.year / 100),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{half:02}"),
            'j' => format!("{:03}", self.day_of_year),
            'k' => format!("{:2}", self.hour),
            'l' => format!("{half:2}"),
            'm' => format!("{:02}", self.month + 1),
            'M' => format!("{:02}", self.minute),
            'n' => "\n".to_owned(),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'P' => if self.hour < 12 { "am" } else { "pm" }.to_owned(),
            's' => self.unix_s.to_string(),
            'S' => format!("{:02}", self.second),
            't' => "\t".to_owned(),
            'u' => if self.weekday == 0 { 7 } else { self.weekday }.to_string(),
            'w' => self.weekday.to_string(),
            'y' => format!("{:02}", self.year % 100),
            'Y' => self.year.to_string(),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            other => other.to_string(),
        }
    }
}
