//! Made lists: URLs of a test origin, `/gen/KB?as=N`, whose response has that size and is cacheable
//! only with `as`. The names are those of a list used to compare Varnish and Squid.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// Number of values of `as` in that list: those from 1 to 100 that do not begin with 1.
const ORIGINAL_MARKS: u64 = 88;

/// Most URLs of a list.
const TOTAL_MAX: u64 = 100_000_000;

/// The parameters of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Makelist {
    /// Prefix of each URL, such as `http://127.0.0.1:8080/varnish`; empty for paths.
    pub base: String,
    /// Number of URLs.
    pub total: u64,
    /// Sizes of the responses.
    pub sizes: Sizes,
    /// Share of URLs whose responses are cacheable.
    pub cacheable: Share,
    /// Number of distinct cacheable URLs; `None` for 88 per size, as in the original.
    pub unique: Option<u64>,
    /// Seed: equal seeds make equal lists.
    pub seed: u64,
}

/// Counts of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// URLs.
    pub total: u64,
    /// URLs whose responses are cacheable.
    pub cacheable: u64,
    /// Distinct cacheable URLs.
    pub unique: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "total     {}", self.total)?;
        writeln!(out, "cacheable {}", self.cacheable)?;
        writeln!(out, "unique    {}", self.unique)
    }
}

/// Parameters for which no list can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MakeError {
    /// An invalid range of sizes.
    Sizes(String),
    /// An invalid share.
    Share(String),
    /// A number of URLs out of range.
    Total(u64),
    /// No distinct URLs.
    Unique,
}

impl fmt::Display for MakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sizes(text) => write!(
                out,
                "`{text}` is no range of sizes: whole kilobytes, such as 10..40KB or 1KB..10MB"
            ),
            Self::Share(text) => write!(out, "`{text}` is no share: 0% to 100%"),
            Self::Total(total) => write!(out, "{total} URLs: a list has 1 to {TOTAL_MAX}"),
            Self::Unique => out.write_str("URLs that may be stored are drawn from one at least"),
        }
    }
}

impl std::error::Error for MakeError {}

/// A range of sizes in kilobytes, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    least_kb: u64,
    most_kb: u64,
}

impl FromStr for Sizes {
    type Err = MakeError;

    /// Parses `10..40KB`, `1KB..10MB` or `20KB`; a number without a unit takes the other's.
    fn from_str(text: &str) -> Result<Self, MakeError> {
        let read = || {
            let (least, most) = text.split_once("..").unwrap_or((text, text));
            let ((least, unit), (most, other)) = (number(least)?, number(most)?);
            let least_kb = least.checked_mul(unit.or(other).unwrap_or(1))?;
            let most_kb = most.checked_mul(other.or(unit).unwrap_or(1))?;
            // A gigabyte far exceeds a page or its images.
            (1 <= least_kb && least_kb <= most_kb && most_kb <= 1024 * 1024)
                .then_some(Self { least_kb, most_kb })
        };
        read().ok_or_else(|| MakeError::Sizes(text.to_owned()))
    }
}

/// A number, and the kilobytes of its unit.
fn number(text: &str) -> Option<(u64, Option<u64>)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" => None,
        "k" | "kb" | "kib" => Some(1),
        "m" | "mb" | "mib" => Some(1024),
        _ => return None,
    };
    Some((number.parse().ok()?, unit))
}

/// A share of a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Eq for Share {}

impl FromStr for Share {
    type Err = MakeError;

    /// Parses `89%`, `89` and `0.5%`.
    fn from_str(text: &str) -> Result<Self, MakeError> {
        let percent = text.strip_suffix('%').unwrap_or(text).trim();
        let percent = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
        percent
            .map(|percent: f64| Self(percent / 100.0))
            .ok_or_else(|| MakeError::Share(text.to_owned()))
    }
}

impl Makelist {
    /// Passes each URL of the list to `sink`, in order.
    ///
    /// # Errors
    /// Invalid parameters, or the sink's error.
    pub fn make<E: From<MakeError>>(
        &self,
        mut sink: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<Totals, E> {
        if !(1..=TOTAL_MAX).contains(&self.total) {
            return Err(MakeError::Total(self.total).into());
        }
        let span = self.sizes.most_kb - self.sizes.least_kb + 1;
        let pool = self.unique.unwrap_or(span * ORIGINAL_MARKS);
        if pool == 0 {
            return Err(MakeError::Unique.into());
        }
        let mut draws = fastrand::Rng::with_seed(self.seed);
        let mut seen = HashSet::new();
        let mut totals = Totals::default();
        for _ in 0..self.total {
            let url = if draws.f64() < self.cacheable.0 {
                let drawn = draws.u64(..pool);
                totals.cacheable += 1;
                seen.insert(drawn);
                let size_kb = self.sizes.least_kb + drawn % span;
                format!("{}/gen/{size_kb}?as={}", self.base, mark(drawn / span))
            } else {
                let size_kb = draws.u64(self.sizes.least_kb..=self.sizes.most_kb);
                format!("{}/gen/{size_kb}", self.base)
            };
            sink(&url)?;
            totals.total += 1;
        }
        totals.unique = seen.len() as u64;
        Ok(totals)
    }
}

/// The `nth` number, from 0, that does not begin with 1: 2 to 9, 20 to 99, 200 to 999.
fn mark(nth: u64) -> u64 {
    let (mut rest, mut power) = (nth, 1u64);
    while rest >= 8 * power {
        rest -= 8 * power;
        power *= 10;
    }
    2 * power + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(
        total: u64,
        sizes: &str,
        cacheable: &str,
        unique: Option<u64>,
    ) -> (Vec<String>, Totals) {
        let order = Makelist {
            base: "http://h/varnish".to_owned(),
            total,
            sizes: sizes.parse().expect("sizes"),
            cacheable: cacheable.parse().expect("a share"),
            unique,
            seed: 1,
        };
        let mut urls = Vec::new();
        let totals = order.make::<MakeError>(|url| {
            urls.push(url.to_owned());
            Ok(())
        });
        (urls, totals.expect("a list"))
    }

    #[test]
    fn a_list_is_as_the_articles_in_its_urls_and_their_share() {
        let (urls, totals) = list(100_000, "10..40KB", "89%", None);
        assert_eq!((totals.total, urls.len()), (100_000, 100_000));
        assert!((88_500..=89_500).contains(&totals.cacheable), "{totals}");
        // 31 sizes and 88 marks, each drawn 32 times on average.
        assert_eq!(totals.unique, 31 * 88);
        for url in &urls {
            let rest = url.strip_prefix("http://h/varnish/gen/").expect("the form");
            let (size, mark) = rest.split_once("?as=").unwrap_or((rest, "2"));
            assert!((10..=40).contains(&size.parse::<u64>().expect("a size")), "{url}");
            assert!((2..100).contains(&mark.parse::<u64>().expect("a mark")), "{url}");
            assert!(!mark.starts_with('1'), "{url}");
        }
    }

    #[test]
    fn totals_are_what_counting_lines_gives() {
        let (urls, totals) = list(5_000, "1..3", "50%", Some(1_000));
        let stored: Vec<&String> = urls.iter().filter(|url| url.contains("as=")).collect();
        assert_eq!(totals.cacheable, stored.len() as u64);
        assert_eq!(totals.unique, stored.iter().collect::<HashSet<_>>().len() as u64);
        assert!(totals.unique <= 1_000 && totals.unique > 850, "{totals}");
        assert_eq!(
            totals.to_string(),
            format!(
                "total     5000\ncacheable {}\nunique    {}\n",
                totals.cacheable, totals.unique
            )
        );
    }

    #[test]
    fn a_seed_makes_the_same_list_again_and_shares_have_ends() {
        assert_eq!(list(100, "5KB", "89%", None), list(100, "5KB", "89%", None));
        assert_eq!(list(50, "5KB", "0%", None).1.cacheable, 0);
        assert_eq!(
            list(50, "5KB", "100%", Some(1)).1,
            Totals { total: 50, cacheable: 50, unique: 1 }
        );
    }

    #[test]
    fn sizes_are_read_with_units() {
        for (text, least_kb, most_kb) in
            [("10..40KB", 10, 40), ("1KB..10MB", 1, 10_240), ("7", 7, 7), ("1..2m", 1024, 2048)]
        {
            assert_eq!(text.parse(), Ok(Sizes { least_kb, most_kb }), "{text}");
        }
        for text in
            ["", "0..4", "40..10", "4..", "..4", "1..4GB", "-1", "1..99999999999999999999MB"]
        {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn orders_that_cannot_be_made_are_refused() {
        for text in ["", "x", "101%", "-1%", "NaN"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        let order = Makelist {
            base: String::new(),
            total: 0,
            sizes: Sizes { least_kb: 1, most_kb: 1 },
            cacheable: Share(1.0),
            unique: Some(0),
            seed: 0,
        };
        assert_eq!(order.make::<MakeError>(|_| Ok(())), Err(MakeError::Total(0)));
        let order = Makelist { total: 1, ..order };
        assert_eq!(order.make::<MakeError>(|_| Ok(())), Err(MakeError::Unique));
    }

    #[test]
    fn marks_are_the_numbers_that_do_not_begin_with_one() {
        let marks: Vec<u64> = (0..968).map(mark).collect();
        let plain: Vec<u64> = (1..1100).filter(|n: &u64| !n.to_string().starts_with('1')).collect();
        assert_eq!(marks.get(..888), plain.get(..888));
        assert_eq!(mark(888), 2000);
    }
}
