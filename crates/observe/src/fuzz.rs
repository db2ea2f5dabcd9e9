//! Fuzz properties of this crate's parsers, for any bytes. Fuzz targets and property tests share
//! them.

use crate::access;
use crate::format::{self, FieldPositions};
use crate::pattern::{Pattern, TransactionView};
use crate::query::Query;
use crate::record::Record;
use crate::visitor_statistics::{SessionRules, VisitorStatistics};

/// Checks that any text is a filter or has a mistake whose span lies within the text, and that a
/// filter accepts any record.
///
/// # Panics
/// If the property does not hold.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let fields = FieldPositions::new(&["Referer".to_owned()]);
    match Query::parse(text, &fields) {
        Ok(query) => {
            let (plain, not) = (Record::default(), Query::parse(&format!("not ({text})"), &fields));
            if let Ok(not) = not {
                assert_ne!(query.matches(&plain), not.matches(&plain), "{text}");
            }
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= text.len());
            assert!(text.get(error.span.clone()).is_some(), "{error:?}");
            assert!(error.to_string().contains(&error.message));
        }
    }
}

/// Checks that any text is a log format or has a mistake whose span lies within the text, and that
/// a format writes one line and names its fields.
///
/// # Panics
/// If the property does not hold.
pub fn log_format(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for json in [false, true] {
        match Pattern::parse(text, json) {
            Ok(pattern) => {
                let (record, fields) = (Record::default(), FieldPositions::default());
                for view in [TransactionView::Client, TransactionView::Backend] {
                    let mut line = Vec::new();
                    pattern.write(&record, &fields, view, &mut line);
                    assert_eq!(line.last(), Some(&b'\n'));
                }
                assert!(pattern.headers().iter().all(|name| !name.is_empty()), "{text}");
            }
            Err(error) => {
                assert!(!error.span.is_empty(), "{error:?}");
                assert!(text.get(error.span.clone()).is_some(), "{error:?}");
                assert!(error.to_string().contains(&error.message));
            }
        }
    }
}

/// Checks that the parser of access logs accepts any text.
///
/// # Panics
/// If the property does not hold.
pub fn access_line(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        if let Some(line) = access::parse(line) {
            let mut visits = VisitorStatistics::new(SessionRules::default());
            visits.add(&line);
            assert_eq!(visits.report().all.requests, 1);
        }
    }
}

/// Checks that the reader of records accepts any bytes, and that each record can be formatted in
/// every way.
///
/// # Panics
/// If the property does not hold.
pub fn records(bytes: &[u8]) {
    let fields = FieldPositions::new(&["Referer".to_owned(), "User-Agent".to_owned()]);
    let mut rest = bytes;
    while let Some((record, after)) = Record::read(rest) {
        let (mut line, mut text) = (Vec::new(), String::new());
        format::combined(&record, &fields, &mut line);
        format::json(&record, &fields, true, &mut line);
        format::detail(&record, &fields, &mut text);
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 2);
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()));
        rest = after;
    }
}
