//! Time zone: the offsets of local time, from a file of the time zone database (TZif, RFC 9636).
//!
//! Must never read a file: its bytes come from outside.

use message::calendar::CalendarTime;

/// Bytes of a header.
const HEADER: usize = 44;
/// Most transitions: no zone of the database has a quarter of them.
const TRANSITIONS_MAX: usize = 4096;
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// The largest offset of local time: RFC 9636 3.2 has about a day.
const OFFSET_MAX_S: i64 = 26 * 3600;

/// A time zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// The times of changes, in order, each with the offset from then on.
    changes: Vec<ZoneChange>,
    /// The offset before the first change.
    first_s: i64,
    /// The offsets behind the last change, if they follow a rule.
    rule: Option<ZoneRule>,
}

/// A change of local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ZoneChange {
    at_secs: i64,
    offset_s: i64,
}

/// The offsets of a zone that follow a rule (RFC 9636 3.3, POSIX's TZ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ZoneRule {
    standard_s: i64,
    summer: Option<SummerTime>,
}

/// The time of the year with another offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SummerTime {
    offset_s: i64,
    from: YearlyChange,
    until: YearlyChange,
}

/// A change on the same day of every year, in seconds of the local time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct YearlyChange {
    day: YearlyDay,
    time_s: i64,
}

/// A day of every year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YearlyDay {
    /// The day from 1, without 29 February.
    Julian(i64),
    /// The day from 0.
    FromZero(i64),
    /// A weekday (0: Sunday) of a week (5: the last) of a month.
    Weekday { month: usize, week: i64, weekday: i64 },
}

impl Zone {
    /// Coordinated Universal Time.
    pub fn utc() -> Self {
        Self::default()
    }

    /// Reads a file of the database, of version 2 or later; `None` if it is malformed.
    pub fn parse(file: &[u8]) -> Option<Self> {
        let (old, rest) = ZoneFileCounts::read(file)?;
        let (counts, rest) = ZoneFileCounts::read(rest.get(old.length(4)?..)?)?;
        let (block, footer) = rest.split_at_checked(counts.length(8)?)?;
        let (times, block) = block.split_at_checked(counts.times * 8)?;
        let (kinds, block) = block.split_at_checked(counts.times)?;
        let kind = |at: usize| {
            let kind: &[u8; 6] = block.get(at * 6..)?.first_chunk()?;
            let offset_s = i64::from(i32::from_be_bytes(*kind.first_chunk()?));
            (at < counts.kinds && offset_s.abs() <= OFFSET_MAX_S).then_some(offset_s)
        };
        let mut changes: Vec<ZoneChange> = Vec::with_capacity(counts.times);
        for (time, own) in times.as_chunks::<8>().0.iter().zip(kinds) {
            let at_secs = i64::from_be_bytes(*time);
            if changes.last().is_some_and(|last| last.at_secs >= at_secs) {
                return None;
            }
            changes.push(ZoneChange { at_secs, offset_s: kind(usize::from(*own))? });
        }
        let text = footer.strip_prefix(b"\n")?.split(|b| *b == b'\n').next()?;
        let rule = if text.is_empty() { None } else { Some(ZoneRule::parse(text)?) };
        Some(Self { changes, first_s: kind(0)?, rule })
    }

    /// Seconds that local time is ahead of UTC.
    pub fn offset_s(&self, unix_secs: i64) -> i64 {
        let after = self.changes.partition_point(|change| change.at_secs <= unix_secs);
        match (&self.rule, after.checked_sub(1)) {
            (Some(rule), _) if after == self.changes.len() => rule.offset_s(unix_secs),
            (_, Some(last)) => self.changes[last].offset_s,
            (_, None) => self.first_s,
        }
    }
}

/// The counts of a header.
struct ZoneFileCounts {
    utc_marks: usize,
    standard_marks: usize,
    leaps: usize,
    times: usize,
    kinds: usize,
    letters: usize,
}

impl ZoneFileCounts {
    fn read(file: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = file.split_at_checked(HEADER)?;
        if !header.starts_with(b"TZif") || header[4] < b'2' {
            return None;
        }
        let mut numbers = header[20..].as_chunks::<4>().0.iter();
        let mut next = || usize::try_from(u32::from_be_bytes(*numbers.next()?)).ok();
        let counts = Self {
            utc_marks: next()?,
            standard_marks: next()?,
            leaps: next()?,
            times: next()?,
            kinds: next()?,
            letters: next()?,
        };
        let all = [counts.utc_marks, counts.standard_marks, counts.leaps, counts.letters];
        let is_small = all.iter().chain([&counts.times]).all(|own| *own <= TRANSITIONS_MAX);
        (is_small && (1..=256).contains(&counts.kinds)).then_some((counts, rest))
    }

    /// Bytes of the block behind the header, whose times have this many bytes.
    fn length(&self, time: usize) -> Option<usize> {
        let Self { utc_marks, standard_marks, leaps, times, kinds, letters } = self;
        let fixed = kinds * 6 + letters + utc_marks + standard_marks;
        (times * (time + 1) + leaps * (time + 4)).checked_add(fixed)
    }
}

impl ZoneRule {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        name(&mut rest)?;
        // POSIX counts westward.
        let standard_s = -clock_time(&mut rest, 24)?;
        if rest.is_empty() {
            return Some(Self { standard_s, summer: None });
        }
        name(&mut rest)?;
        let offset_s = match rest.first()? {
            b',' => standard_s + 3600,
            _ => -clock_time(&mut rest, 24)?,
        };
        let from = YearlyChange::read(&mut rest)?;
        let until = YearlyChange::read(&mut rest)?;
        let summer = Some(SummerTime { offset_s, from, until });
        rest.is_empty().then_some(Self { standard_s, summer })
    }

    fn offset_s(&self, unix_secs: i64) -> i64 {
        let Some(summer) = self.summer else { return self.standard_s };
        let local = CalendarTime::at(unix_secs.saturating_add(self.standard_s));
        let first_day = local.secs.div_euclid(DAY_S) - local.yearday;
        let from = summer.from.at(first_day, local.year) - self.standard_s;
        let until = summer.until.at(first_day, local.year) - summer.offset_s;
        let is_summer = match from < until {
            true => (from..until).contains(&unix_secs),
            false => !(until..from).contains(&unix_secs),
        };
        if is_summer { summer.offset_s } else { self.standard_s }
    }
}

impl YearlyChange {
    /// Reads `,day[/time]`.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        take(rest, b',')?;
        let day = match rest.first()? {
            b'M' => {
                take(rest, b'M')?;
                let month = number(rest, 1, 12)?;
                take(rest, b'.')?;
                let week = number(rest, 1, 5)?;
                take(rest, b'.')?;
                let month = usize::try_from(month).ok()?;
                YearlyDay::Weekday { month, week, weekday: number(rest, 0, 6)? }
            }
            b'J' => {
                take(rest, b'J')?;
                YearlyDay::Julian(number(rest, 1, 365)?)
            }
            _ => YearlyDay::FromZero(number(rest, 0, 365)?),
        };
        let time_s = match rest.first() {
            Some(b'/') => {
                take(rest, b'/')?;
                clock_time(rest, 167)?
            }
            _ => 2 * 3600,
        };
        Some(Self { day, time_s })
    }

    /// The local time of the change in a year, whose first day is this one since 1970.
    fn at(self, first_day: i64, year: i64) -> i64 {
        let day = match self.day {
            YearlyDay::Julian(day) if is_leap(year) && day >= 60 => day,
            YearlyDay::Julian(day) => day - 1,
            YearlyDay::FromZero(day) => day,
            YearlyDay::Weekday { month, week, weekday } => {
                let lengths = month_lengths(year);
                let before: i64 = lengths[..month - 1].iter().sum();
                // 1970 began on a Thursday.
                let first = (first_day + before + 4).rem_euclid(7);
                let mut day = (weekday - first).rem_euclid(7) + (week - 1) * 7;
                if day >= lengths[month - 1] {
                    day -= 7;
                }
                before + day
            }
        };
        (first_day + day) * DAY_S + self.time_s
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The days of each month.
pub(crate) fn month_lengths(year: i64) -> [i64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

fn take(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

/// Skips the name of a local time: letters, or anything within `<` and `>`.
fn name(rest: &mut &[u8]) -> Option<()> {
    let end = match rest.first()? {
        b'<' => rest.iter().position(|b| *b == b'>')? + 1,
        _ => rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len()),
    };
    *rest = &rest[end..];
    (end >= 3).then_some(())
}

fn number(rest: &mut &[u8], least: i64, most: i64) -> Option<i64> {
    let end = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let digits = &rest[..end];
    if digits.is_empty() || digits.len() > 3 {
        return None;
    }
    *rest = &rest[end..];
    let value = digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (least..=most).contains(&value).then_some(value)
}

/// Reads `[+-]hh[:mm[:ss]]` in seconds.
fn clock_time(rest: &mut &[u8], hours: i64) -> Option<i64> {
    let sign = match rest.first()? {
        b'-' => -1,
        _ => 1,
    };
    if matches!(rest.first(), Some(b'-' | b'+')) {
        *rest = &rest[1..];
    }
    let mut secs = number(rest, 0, hours)? * 3600;
    for unit in [60, 1] {
        if take(rest, b':').is_none() {
            break;
        }
        secs += number(rest, 0, 59)? * unit;
    }
    Some(sign * secs)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file with these changes among offsets, and a footer.
    pub(crate) fn file(offsets: &[i32], changes: &[(i64, u8)], footer: &str) -> Vec<u8> {
        let header = |times: usize, kinds: usize| {
            let mut header = b"TZif2".to_vec();
            header.extend([0; 15]);
            for count in [0, 0, 0, times as u32, kinds as u32, 4] {
                header.extend(count.to_be_bytes());
            }
            header
        };
        // An old block with one kind and no change, which must be passed over.
        let mut file = header(0, 1);
        file.extend([0; 6]);
        file.extend(b"UTC\0");
        file.extend(header(changes.len(), offsets.len()));
        changes.iter().for_each(|(at, _)| file.extend(at.to_be_bytes()));
        file.extend(changes.iter().map(|(_, kind)| *kind));
        for offset in offsets {
            file.extend(offset.to_be_bytes());
            file.extend([0, 0]);
        }
        file.extend(b"UTC\0");
        file.extend(format!("\n{footer}\n").into_bytes());
        file
    }

    pub(crate) fn berlin() -> Zone {
        let file = file(&[3600, 7200], &[], "CET-1CEST,M3.5.0,M10.5.0/3");
        Zone::parse(&file).expect("a zone")
    }

    #[test]
    fn offsets_follow_the_changes_and_then_the_rule() {
        let changes = [(1000, 1), (2000, 2), (3000, 0)];
        let read = Zone::parse(&file(&[60, 120, -180], &changes, "")).expect("a zone");
        let at = |secs| read.offset_s(secs);
        assert_eq!(
            [-5, 999, 1000, 1999, 2000, 2999, 3000, 1 << 40].map(at),
            [60, 60, 120, 120, -180, -180, 60, 60]
        );
        let read = Zone::parse(&file(&[60], &[(1000, 0)], "<+0530>-5:30")).expect("a zone");
        assert_eq!([0, 999, 1000].map(|secs| read.offset_s(secs)), [60, 60, 19_800]);
    }

    #[test]
    fn rules_of_both_halves_of_the_earth_are_read() {
        // 2026-01-15, 2026-07-15, and the changes of 2026 in UTC.
        for (rule, times) in [
            ("EST5EDT,M3.2.0,M11.1.0", [(1_768_435_200, -18_000), (1_784_073_600, -14_400)]),
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", [(1_768_435_200, 39_600), (1_784_073_600, 36_000)]),
            ("IST-1GMT0,M10.5.0,M3.5.0/1", [(1_768_435_200, 0), (1_784_073_600, 3600)]),
            (
                "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
                [(1_774_745_999, -10_800), (1_774_746_000, -7200)],
            ),
            ("AAA-1BBB,J60/0,J61/0", [(1_772_319_599, 3600), (1_772_319_600, 7200)]),
            ("AAA-1BBB,59/0,60/0", [(1_772_319_599, 3600), (1_772_319_600, 7200)]),
        ] {
            let read = ZoneRule::parse(rule.as_bytes()).expect(rule);
            for (secs, offset_s) in times {
                assert_eq!(read.offset_s(secs), offset_s, "{rule} at {secs}");
            }
        }
    }

    #[test]
    fn what_is_no_zone_is_refused() {
        let whole = file(&[60, 120], &[(1000, 1), (2000, 0)], "CET-1");
        assert!(Zone::parse(&whole).is_some());
        for cut in 0..whole.len() - "CET-1\n".len() {
            assert_eq!(Zone::parse(&whole[..cut]), None, "{cut}");
        }
        for changes in [&[(1000, 2)][..], &[(1000, 0), (1000, 1)], &[(2000, 0), (1000, 1)]] {
            assert_eq!(Zone::parse(&file(&[60, 120], changes, "")), None, "{changes:?}");
        }
        assert_eq!(Zone::parse(&file(&[100_000], &[], "")), None);
        for footer in ["C-1", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1,M3.5.0,M10.5.0", "<A"]
        {
            assert_eq!(Zone::parse(&file(&[0], &[], footer)), None, "{footer}");
        }
        let mut old = whole;
        old[4] = 0;
        assert_eq!(Zone::parse(&old), None);
    }

    /// Days since 1970 of the last Sunday of a month with 31 days.
    fn last_sunday(year: i64, month: i64) -> i64 {
        let mut day = (year - 1970) * 365 - 10;
        loop {
            let at = CalendarTime::at(day * DAY_S);
            if (at.year, at.month) == (year, month) && at.weekday == 0 && at.day > 24 {
                return day;
            }
            day += 1;
        }
    }

    proptest! {
        #[test]
        fn local_time_in_berlin_changes_at_one_in_utc(secs in 820_454_400_i64..16_725_225_600) {
            let year = CalendarTime::at(secs).year;
            let [from, until] = [3, 10].map(|month| last_sunday(year, month) * DAY_S + 3600);
            let expected = if (from..until).contains(&secs) { 7200 } else { 3600 };
            prop_assert_eq!(berlin().offset_s(secs), expected);
        }

        #[test]
        fn any_bytes_are_safe(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            footer in "[A-Z]{3}-?[0-9]{1,3}[A-Z,M.0-9/:-]{0,30}",
            at in any::<i64>(),
        ) {
            _ = Zone::parse(&bytes);
            let start = file(&[3600], &[(5, 0)], &footer);
            if let Some(zone) = Zone::parse(&start) {
                _ = zone.offset_s(at / 4);
            }
        }
    }
}
