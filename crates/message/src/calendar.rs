//! Calendar in UTC: a time split into its parts, and the parts as strftime(3) formats them.
//!
//! Must never read a clock.

use crate::date::{civil, days};

const DAY_SECS: i64 = 24 * 60 * 60;

const WEEKDAYS: [&str; 7] =
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

/// The parts of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// Seconds since 1970.
    pub secs: i64,
    /// The year; 0 is the one before 1.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 (Sunday) to 6.
    pub weekday: i64,
    /// Day of the year from 0.
    pub yearday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

impl CalendarTime {
    /// The parts of a time in seconds since 1970.
    pub fn at(secs: i64) -> Self {
        let (today, rest) = (secs.div_euclid(DAY_SECS), secs.rem_euclid(DAY_SECS));
        let (year, month, day) = civil(today);
        Self {
            secs,
            year,
            month,
            day,
            // 1970 began on a Thursday.
            weekday: (today + 4).rem_euclid(7),
            yearday: today - days(year, 1, 1),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// The name of the day of the week.
    pub fn day_name(&self) -> &'static str {
        WEEKDAYS[self.weekday as usize]
    }

    /// The name of the month.
    pub fn month_name(&self) -> &'static str {
        MONTHS[self.month as usize - 1]
    }

    /// The text of a conversion for one part of a time, or for `%n`, `%t` and `%%`. `None` for
    /// conversions of several parts, unknown ones, and `Z`, since programs disagree on the name of
    /// the zone.
    pub fn part(&self, letter: char) -> Option<String> {
        let half = (self.hour + 11) % 12 + 1;
        Some(match letter {
            'a' => self.day_name()[..3].to_owned(),
            'A' => self.day_name().to_owned(),
            'b' | 'h' => self.month_name()[..3].to_owned(),
            'B' => self.month_name().to_owned(),
            'C' => format!("{:02}", self.year.div_euclid(100)),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{half:02}"),
            'j' => format!("{:03}", self.yearday + 1),
            'k' => format!("{:2}", self.hour),
            'l' => format!("{half:2}"),
            'm' => format!("{:02}", self.month),
            'M' => format!("{:02}", self.minute),
            'n' => "\n".to_owned(),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'P' => if self.hour < 12 { "am" } else { "pm" }.to_owned(),
            's' => self.secs.to_string(),
            'S' => format!("{:02}", self.second),
            't' => "\t".to_owned(),
            'u' => if self.weekday == 0 { 7 } else { self.weekday }.to_string(),
            'w' => self.weekday.to_string(),
            'y' => format!("{:02}", self.year.rem_euclid(100)),
            'Y' => self.year.to_string(),
            'z' => "+0000".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::date::HttpDate;

    /// The conversions of these letters, separated by blanks.
    fn written(secs: i64, letters: &str) -> String {
        let moment = CalendarTime::at(secs);
        let parts = letters.split(' ').map(|letter| letter.chars().filter_map(|c| moment.part(c)));
        parts.map(Iterator::collect::<String>).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn moments_are_written_as_strftime_writes_them() {
        // `date -u -d @... +...`
        for (secs, letters, text) in [
            (951_782_400, "Y m d j a u w", "2000 02 29 060 Tue 2 2"),
            (978_220_800, "Y j A B h", "2000 366 Sunday December Dec"),
            (1_740_787_200, "e C y z s", " 1 20 25 +0000 1740787200"),
            (43_200, "I p P k l H M S", "12 PM pm 12 12 12 00 00"),
            (3_661, "I p P k l H M S", "01 AM am  1  1 01 01 01"),
            (-1, "a d b Y S j", "Wed 31 Dec 1969 59 365"),
            // The year 10000.
            (253_402_300_800, "Y m d C", "10000 01 01 100"),
        ] {
            assert_eq!(written(secs, letters), text, "{secs}");
        }
        assert_eq!((CalendarTime::at(0).part('Z'), CalendarTime::at(0).part('q')), (None, None));
    }

    proptest! {
        #[test]
        fn parts_are_those_of_http_dates(secs in 0..253_402_300_800_i64) {
            let date = HttpDate::new(secs as u64);
            let date = String::from_utf8_lossy(date.as_bytes()).into_owned();
            let moment = CalendarTime::at(secs);
            let part = |letter| moment.part(letter).expect("a part");
            let own = [part('a'), part('d'), part('b'), part('Y'), part('H'), part('M'), part('S')];
            let [weekday, day, month, year, hour, minute, second] = own;
            let own = format!("{weekday}, {day} {month} {year} {hour}:{minute}:{second} GMT");
            prop_assert_eq!(own, date);
        }
    }
}
