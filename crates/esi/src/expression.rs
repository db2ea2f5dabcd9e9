//! Expressions of ESI 1.0: comparisons, `!`, `&`, `|` and parentheses over variables, numbers and
//! strings in single quotes. Evaluation is linear, and never recurses deeper than the permitted
//! parentheses.

use crate::variable::{self, Variable};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Compare(Operand, Comparison, Operand),
    Is(Operand),
}

/// A value in an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Literal(Box<[u8]>),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Less,
    Greater,
}

/// Longer operators precede their prefixes.
const COMPARISONS: [(&[u8], Comparison); 6] = [
    (b"==", Comparison::Equal),
    (b"!=", Comparison::NotEqual),
    (b"<=", Comparison::AtMost),
    (b">=", Comparison::AtLeast),
    (b"<", Comparison::Less),
    (b">", Comparison::Greater),
];

impl Expression {
    /// Parses an expression with at most `nesting` open parentheses; `None` if it is malformed.
    pub(crate) fn read(text: &[u8], nesting: usize) -> Option<Self> {
        let mut reader = Reader { rest: text, nesting };
        let expression = reader.any()?;
        reader.space();
        reader.rest.is_empty().then_some(expression)
    }

    /// Returns true if the expression holds; `value` gives the values of variables.
    pub(crate) fn holds<'v>(&'v self, value: &impl Fn(&'v Variable) -> Option<Vec<u8>>) -> bool {
        match self {
            Self::Any(all) => all.iter().any(|one| one.holds(value)),
            Self::All(all) => all.iter().all(|one| one.holds(value)),
            Self::Not(one) => !one.holds(value),
            Self::Is(operand) => {
                let is_true = |text: &Vec<u8>| {
                    !text.is_empty() && text != b"false" && number(text) != Some(0.0)
                };
                operand.value(value).as_ref().is_some_and(is_true)
            }
            // In the note, an expression with an empty or undefined operand is false.
            Self::Compare(left, comparison, right) => {
                let of = |operand: &'v Operand| operand.value(value).filter(|v| !v.is_empty());
                of(left).zip(of(right)).is_some_and(|(l, r)| comparison.holds(&l, &r))
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Any(all) | Self::All(all) => {
                all.capacity() * size_of::<Self>() + all.iter().map(Self::memory).sum::<usize>()
            }
            Self::Not(one) => size_of::<Self>() + one.memory(),
            Self::Compare(left, _, right) => left.memory() + right.memory(),
            Self::Is(operand) => operand.memory(),
        }
    }
}

impl Operand {
    fn value<'v>(&'v self, value: &impl Fn(&'v Variable) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Self::Literal(text) => Some(text.to_vec()),
            Self::Variable(variable) => value(variable),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Literal(text) => text.len(),
            Self::Variable(variable) => variable.memory(),
        }
    }
}

impl Comparison {
    /// Compares two numbers by value, other operands as byte strings.
    fn holds(self, left: &[u8], right: &[u8]) -> bool {
        let order = match (number(left), number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => Some(left.cmp(right)),
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::AtMost => order.is_le(),
            Self::AtLeast => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::Greater => order.is_gt(),
        })
    }
}

/// Parses a decimal number with sign and fraction.
fn number(text: &[u8]) -> Option<f64> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
    if !text.iter().all(is_number) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

struct Reader<'t> {
    rest: &'t [u8],
    nesting: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Skips `sign`, which may be doubled. Returns true if it was there.
    fn takes(&mut self, sign: u8) -> bool {
        self.space();
        match self.rest {
            [first, second, rest @ ..] if *first == sign && *second == sign => self.rest = rest,
            [first, rest @ ..] if *first == sign => self.rest = rest,
            _ => return false,
        }
        true
    }

    fn any(&mut self) -> Option<Expression> {
        let mut all = vec![self.all()?];
        while self.takes(b'|') {
            all.push(self.all()?);
        }
        if all.len() == 1 { all.pop() } else { Some(Expression::Any(all)) }
    }

    fn all(&mut self) -> Option<Expression> {
        let mut all = vec![self.one()?];
        while self.takes(b'&') {
            all.push(self.one()?);
        }
        if all.len() == 1 { all.pop() } else { Some(Expression::All(all)) }
    }

    fn one(&mut self) -> Option<Expression> {
        let mut is_not = false;
        self.space();
        while let [b'!', rest @ ..] = self.rest {
            is_not = !is_not;
            self.rest = rest;
            self.space();
        }
        let one = match self.rest {
            [b'(', rest @ ..] => {
                self.rest = rest;
                self.nesting = self.nesting.checked_sub(1)?;
                let inner = self.any()?;
                self.nesting += 1;
                self.space();
                self.rest = self.rest.strip_prefix(b")")?;
                inner
            }
            _ => self.comparison()?,
        };
        Some(if is_not { Expression::Not(Box::new(one)) } else { one })
    }

    fn comparison(&mut self) -> Option<Expression> {
        let left = self.operand()?;
        self.space();
        for (sign, comparison) in COMPARISONS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return Some(Expression::Compare(left, comparison, self.operand()?));
            }
        }
        Some(Expression::Is(left))
    }

    fn operand(&mut self) -> Option<Operand> {
        self.space();
        match self.rest {
            [b'\'', text @ ..] => {
                let end = memchr::memchr(b'\'', text)?;
                self.rest = &text[end + 1..];
                Some(Operand::Literal(text[..end].into()))
            }
            [b'$', ..] => {
                let end = variable::end(self.rest)?;
                let variable = Variable::read(&self.rest[2..end - 1])?;
                self.rest = &self.rest[end..];
                Some(Operand::Variable(variable))
            }
            text => {
                let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
                let end = text.iter().position(|byte| !is_bare(byte)).unwrap_or(text.len());
                self.rest = &text[end..];
                let text = &text[..end];
                let is_word = number(text).is_some() || matches!(text, b"true" | b"false");
                is_word.then(|| Operand::Literal(text.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Option<bool> {
        let expression = Expression::read(text.as_bytes(), 4)?;
        Some(expression.holds(&|variable| match &variable.name[..] {
            b"X" => Some(b"abc".to_vec()),
            b"N" => Some(b"10".to_vec()),
            b"EMPTY" => Some(Vec::new()),
            _ => variable.default.as_deref().map(<[u8]>::to_vec),
        }))
    }

    #[test]
    fn expressions_hold_as_the_note_has_it() {
        for text in [
            "$(X)=='abc'",
            " $(X) == 'abc' ",
            "$(X)!='abd'",
            "$(N)==10",
            "$(N)=='10.0'",
            "$(N)>9",
            "$(N)<=10 & $(N)>=10",
            "'b'>'a'",
            "'9'<'10'",
            "'9a'>'10'",
            "1==1|1==2",
            "1==2 | 1==1 & 2==2",
            "!(1==2)",
            "!!1==1",
            "(1==1 | 1==2) & !(1==2)",
            "((((1==1))))",
            "$(X)",
            "!$(NONE)",
            "!$(EMPTY)",
            "$(NONE|'d')=='d'",
            "1==1 && 2==2 || 1==2",
            "true",
            "-1<0",
        ] {
            assert_eq!(holds(text), Some(true), "{text}");
        }
    }

    #[test]
    fn others_do_not_hold() {
        for text in [
            "$(X)=='ABC'",
            "$(NONE)=='a'",
            "$(NONE)!='a'",
            "$(EMPTY)==''",
            "$(EMPTY)!='a'",
            "$(NONE)",
            "false",
            "0",
            "''",
            "$(NONE)==$(NONE)",
            "1==1 & 1==2",
            "!1==1",
            "(1==1 | 1==2) & 1==2",
        ] {
            assert_eq!(holds(text), Some(false), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "",
            " ",
            "abc",
            "1==",
            "==1",
            "1=1",
            "1==1)",
            "(1==1",
            "'a",
            "$(X",
            "$X",
            "1==1 1==1",
            "1 & ",
            "| 1",
            "!",
            "(((((1==1)))))",
            "1==2==3",
            "$()",
        ] {
            assert_eq!(holds(text), None, "{text}");
        }
    }

    #[test]
    fn long_expressions_are_no_deep_ones() {
        let all = vec!["1==1"; 100_000].join("&");
        let any = vec!["1==2"; 100_000].join("|");
        assert_eq!(holds(&all), Some(true));
        assert_eq!(holds(&any), Some(false));
        assert_eq!(holds(&format!("{}1==1", "!".repeat(100_000))), Some(true));
    }
}
