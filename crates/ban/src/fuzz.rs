//! Fuzzing entry point of ban expressions. Only fuzz targets and tests call it.

use crate::expression::{BanSubject, Expression};

/// Response whose fields all come from the fuzzer.
struct Sample<'a>(&'a [u8]);

impl BanSubject for Sample<'_> {
    fn url(&self) -> &[u8] {
        self.0
    }

    fn host(&self) -> &[u8] {
        self.0
    }

    fn status(&self) -> u16 {
        200
    }

    fn age_ms(&self) -> u64 {
        self.0.len() as u64
    }

    fn ttl_ms(&self) -> u64 {
        u64::MAX
    }

    fn grace_ms(&self) -> u64 {
        0
    }

    fn keep_ms(&self) -> u64 {
        1000
    }

    fn any_value(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        test(name.as_bytes()) || test(self.0)
    }
}

/// Any text is read, or rejected at an offset within the text, by both readers. The printed form of
/// an expression is read again as an equal expression.
pub fn expressions(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Expression::parse(&text) {
        Ok(expression) => {
            let written = expression.to_string();
            let again = Expression::parse(&written).expect("what was written is read");
            assert_eq!(again.to_string(), written);
            let subject = Sample(data);
            assert_eq!(again.matches(&subject), expression.matches(&subject));
        }
        Err(error) => assert!(error.at <= text.len() && !error.to_string().is_empty()),
    }
    // `Expression::of_words` takes words that may hold any text.
    if let Ok(expression) = Expression::of_words(text.split('\u{1f}')) {
        let again = Expression::of_text(&expression.to_string()).expect("what is written");
        assert_eq!(again.listed(), expression.listed());
    }
    match Expression::of_program(&text) {
        Ok(expression) => {
            let again = Expression::of_program(&expression.listed()).expect("what is listed");
            assert_eq!(again.listed(), expression.listed());
            let again = Expression::of_text(&expression.to_string()).expect("what is written");
            assert_eq!(again.listed(), expression.listed());
        }
        Err(error) => assert!(error.at <= text.len() && !error.to_string().is_empty()),
    }
}
