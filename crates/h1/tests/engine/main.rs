//! Tests of the engine from outside: tables of cases, properties, and round trips.

mod encoding;
mod framing_cases;
mod properties;
mod requests;
mod response_cases;
mod support;
mod tags;
