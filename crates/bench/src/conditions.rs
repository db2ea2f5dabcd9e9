//! Conditions on a round, for `--fail-if`: `p99 > 20ms or errors > 0`.

use std::fmt;

use crate::result::Round;

/// Deepest nesting of parentheses and `not`.
const DEPTH: usize = 50;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundCondition {
    /// Both conditions hold.
    And(Box<Self>, Box<Self>),
    /// At least one condition holds.
    Or(Box<Self>, Box<Self>),
    /// The condition does not hold.
    Not(Box<Self>),
    /// A comparison.
    Compare(Quantity, Operator, Value),
}

/// A quantity of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A latency, in microseconds.
    Latency(RequestPhase, Statistic),
    /// Responses per second.
    Rate,
    /// Requests without a response.
    Errors,
    /// Responses whose status is in this range.
    Statuses(u16, u16),
    /// Hits among the responses that reported a cache result.
    Hits,
}

/// A phase of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPhase {
    /// Until the connection is open.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Until the first byte of the response.
    FirstByte,
    /// Until the last byte of the response.
    LastByte,
    /// From a request's due time to its sending.
    Lateness,
}

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// A percentile, as a share of 1.
    Percentile(f64),
    /// The mean.
    Mean,
    /// The standard deviation.
    Deviation,
    /// The largest value.
    Max,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// A value that a quantity is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number; of a latency, microseconds.
    Number(f64),
    /// A share of the requests, of 1.
    Share(f64),
}

/// A condition that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// The column, from 1.
    pub column: usize,
    /// The reason.
    pub what: String,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}: {}", self.column, self.what)
    }
}

impl RoundCondition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let mut parser = Parser { text, at: 0 };
        let condition = parser.either(0)?;
        match parser.peek() {
            "" => Ok(condition),
            word => {
                Err(parser.wrong(format!("`{word}` where `and`, `or` or the end was expected")))
            }
        }
    }

    /// Returns true if it holds for `round`. A latency that the round does not have fails every
    /// comparison.
    pub fn holds(&self, round: &Round) -> bool {
        match self {
            Self::And(one, other) => one.holds(round) && other.holds(round),
            Self::Or(one, other) => one.holds(round) || other.holds(round),
            Self::Not(one) => !one.holds(round),
            Self::Compare(quantity, operator, value) => {
                let found = match value {
                    Value::Number(_) => quantity.of(round),
                    Value::Share(_) => quantity.share_of(round),
                };
                let (Value::Number(value) | Value::Share(value)) = *value;
                found.is_some_and(|found| operator.holds(found, value))
            }
        }
    }
}

impl Operator {
    fn holds(self, found: f64, value: f64) -> bool {
        match self {
            Self::Greater => found > value,
            Self::GreaterOrEqual => found >= value,
            Self::Less => found < value,
            Self::LessOrEqual => found <= value,
            Self::Equal => (found - value).abs() < f64::EPSILON,
            Self::NotEqual => (found - value).abs() >= f64::EPSILON,
        }
    }
}

impl Quantity {
    fn of(&self, round: &Round) -> Option<f64> {
        match self {
            Self::Latency(phase, point) => {
                let latency = match phase {
                    RequestPhase::Connect => &round.connect,
                    RequestPhase::Tls => &round.tls,
                    RequestPhase::FirstByte => &round.first_byte,
                    RequestPhase::LastByte => &round.last_byte,
                    RequestPhase::Lateness => &round.lateness,
                };
                let latency = latency.as_ref()?;
                Some(match point {
                    Statistic::Mean => latency.mean,
                    Statistic::Deviation => latency.stdev,
                    Statistic::Max => latency.max as f64,
                    Statistic::Percentile(share) => {
                        latency.histogram().ok()?.value_at_quantile(*share) as f64
                    }
                })
            }
            Self::Rate => Some(round.rate()),
            Self::Errors => Some(round.failed() as f64),
            Self::Statuses(from, to) => Some(round.with_status(*from, *to) as f64),
            Self::Hits => Some(round.all_hits() as f64),
        }
    }

    /// The quantity as a share of all requests; for hits, of the responses that reported a cache
    /// result.
    fn share_of(&self, round: &Round) -> Option<f64> {
        let all = match self {
            Self::Hits => round.with_known_source(),
            Self::Errors => round.attempted,
            Self::Statuses(..) => round.completed,
            Self::Latency(..) | Self::Rate => return None,
        };
        (all > 0).then(|| self.of(round).map(|part| part / all as f64)).flatten()
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, what: String) -> ConditionError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        ConditionError { column: before.chars().count() + 1, what }
    }

    /// Returns the next word without consuming it.
    fn peek(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let rest_trimmed = rest.trim_start();
        self.at += rest.len() - rest_trimmed.len();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '%');
        let length = match rest_trimmed.chars().next() {
            None => 0,
            Some(first) if is_word(first) => {
                rest_trimmed.find(|c| !is_word(c)).unwrap_or(rest_trimmed.len())
            }
            Some('<' | '>' | '=' | '!') => {
                if rest_trimmed.get(1..2) == Some("=") {
                    2
                } else {
                    1
                }
            }
            Some(other) => other.len_utf8(),
        };
        rest_trimmed.get(..length).unwrap_or_default()
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == word;
        if taken {
            self.at += word.len();
        }
        taken
    }

    fn either(&mut self, depth: usize) -> Result<RoundCondition, ConditionError> {
        let mut one = self.both(depth)?;
        while self.take("or") {
            one = RoundCondition::Or(Box::new(one), Box::new(self.both(depth)?));
        }
        Ok(one)
    }

    fn both(&mut self, depth: usize) -> Result<RoundCondition, ConditionError> {
        let mut one = self.single(depth)?;
        while self.take("and") {
            one = RoundCondition::And(Box::new(one), Box::new(self.single(depth)?));
        }
        Ok(one)
    }

    fn single(&mut self, depth: usize) -> Result<RoundCondition, ConditionError> {
        if depth > DEPTH {
            return Err(self.wrong(format!("more than {DEPTH} conditions within each other")));
        }
        if self.take("not") {
            return Ok(RoundCondition::Not(Box::new(self.single(depth + 1)?)));
        }
        if self.take("(") {
            let inner = self.either(depth + 1)?;
            if self.take(")") {
                return Ok(inner);
            }
            return Err(self.wrong("`)` is missing".to_owned()));
        }
        let (quantity, column) = self.quantity()?;
        let operator = self.operator()?;
        let value = self.value(&quantity)?;
        let shares = matches!(quantity, Quantity::Errors | Quantity::Statuses(..) | Quantity::Hits);
        if matches!(value, Value::Share(_)) && !shares {
            return Err(ConditionError {
                column,
                what: "this is no share: leave out the %".to_owned(),
            });
        }
        Ok(RoundCondition::Compare(quantity, operator, value))
    }

    fn quantity(&mut self) -> Result<(Quantity, usize), ConditionError> {
        let word = self.peek();
        let column = self.wrong(String::new()).column;
        let Some(quantity) = quantity(word) else {
            return Err(self.wrong(format!(
                "`{word}` is no figure: there are p50, p99.9 and other percentiles, mean, stdev and \
                 max (with connect., tls., first_byte. or lateness. before them), rps, errors, \
                 hits, and statuses such as 404 or 5xx"
            )));
        };
        self.at += word.len();
        Ok((quantity, column))
    }

    fn operator(&mut self) -> Result<Operator, ConditionError> {
        let word = self.peek();
        let operator = match word {
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            "==" | "=" => Operator::Equal,
            "!=" => Operator::NotEqual,
            _ => return Err(self.wrong("a comparison is >, >=, <, <=, == or !=".to_owned())),
        };
        self.at += word.len();
        Ok(operator)
    }

    fn value(&mut self, quantity: &Quantity) -> Result<Value, ConditionError> {
        let word = self.peek();
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (digits, unit) = word.split_at(end);
        let number: f64 =
            digits.parse().map_err(|_| self.wrong(format!("`{word}` is no number")))?;
        let latency = matches!(quantity, Quantity::Latency(..));
        let value = match (unit, latency) {
            ("%", _) => Value::Share(number / 100.0),
            ("us", true) => Value::Number(number),
            ("ms", true) => Value::Number(number * 1e3),
            ("s", true) => Value::Number(number * 1e6),
            ("", false) => Value::Number(number),
            (_, true) => {
                return Err(self.wrong(format!("`{word}`: a time has a unit: us, ms or s")));
            }
            (_, false) => {
                return Err(self.wrong(format!("`{word}`: a number without a unit, or %")));
            }
        };
        self.at += word.len();
        Ok(value)
    }
}

/// The quantity called `word`.
fn quantity(word: &str) -> Option<Quantity> {
    match word {
        "rps" => return Some(Quantity::Rate),
        "errors" => return Some(Quantity::Errors),
        "hits" => return Some(Quantity::Hits),
        _ => {}
    }
    if let [class @ b'1'..=b'5', b'x', b'x'] = word.as_bytes() {
        let from = u16::from(class - b'0') * 100;
        return Some(Quantity::Statuses(from, from + 99));
    }
    if word.len() == 3
        && let Ok(status @ 100..=999) = word.parse::<u16>()
    {
        return Some(Quantity::Statuses(status, status));
    }
    let phases = [
        ("connect.", RequestPhase::Connect),
        ("tls.", RequestPhase::Tls),
        ("first_byte.", RequestPhase::FirstByte),
        ("lateness.", RequestPhase::Lateness),
    ];
    let named = phases.iter().find_map(|(name, phase)| Some((word.strip_prefix(name)?, *phase)));
    let (point, phase) = named.unwrap_or((word, RequestPhase::LastByte));
    let point = match point {
        "mean" => Statistic::Mean,
        "stdev" => Statistic::Deviation,
        "max" => Statistic::Max,
        other => {
            let percent: f64 = other.strip_prefix('p')?.parse().ok()?;
            (0.0..=100.0).contains(&percent).then_some(Statistic::Percentile(percent / 100.0))?
        }
    };
    Some(Quantity::Latency(phase, point))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;
    use crate::latency::Latency;

    fn round() -> Round {
        let mut histogram = Histogram::<u64>::new(3).expect("bounds");
        for value in 1..=1000 {
            histogram.record(value * 10).expect("value");
        }
        Round {
            elapsed_us: 2_000_000,
            attempted: 1010,
            completed: 1000,
            source_unknown: 200,
            hits: [("age".to_owned(), 600)].into(),
            statuses: [(200, 990), (404, 3), (500, 7)].into(),
            last_byte: Some(Latency::of(&histogram).expect("latency")),
            ..Round::default()
        }
    }

    #[test]
    fn conditions_hold_or_do_not() {
        for (text, holds) in [
            ("p99 > 9ms", true),
            ("p99>10ms", false),
            ("p99 > 10ms or errors > 0", true),
            ("p99 > 10ms and errors > 0", false),
            ("not (p99 > 10ms) and errors == 10", true),
            ("rps < 501 and rps >= 500", true),
            ("errors > 0.9%", true),
            ("errors > 1%", false),
            ("hits < 76%", true),
            ("hits == 600", true),
            ("5xx > 6 and 404 = 3", true),
            ("4xx > 0.3%", false),
            ("connect.p99 > 1us", false),
            ("max > 9.9ms and mean < 6ms and stdev > 1ms", true),
            ("p99.9 > 0.0099s", true),
        ] {
            assert_eq!(RoundCondition::parse(text).expect(text).holds(&round()), holds, "{text}");
        }
    }

    #[test]
    fn a_mistake_has_its_column() {
        for (text, column) in [
            ("", 1),
            ("p99", 4),
            ("p99 > ", 7),
            ("p99 > 20", 7),
            ("p99 > 20ms or", 14),
            ("p999 > 1ms", 1),
            ("errors > 1ms", 10),
            ("rps > 5%", 1),
            ("(errors > 1", 12),
            ("errors > 1 errors", 12),
            ("fehler > 1", 1),
        ] {
            assert_eq!(RoundCondition::parse(text).expect_err(text).column, column, "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(RoundCondition::parse(&deep).is_err());
        assert!(RoundCondition::parse(&"not ".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = RoundCondition::parse(&text);
        }

        #[test]
        fn no_words_panic(words in prop::collection::vec(
            prop::sample::select(vec![
                "p99", ">", "20ms", "or", "and", "not", "(", ")", "errors", "5%", "5xx", "ä",
            ]), 0..12)) {
            let _ = RoundCondition::parse(&words.join(" "));
        }
    }
}
