//! The engine from outside: tables of cases, properties, and what it writes read back.

mod encoding;
mod framing_cases;
mod properties;
mod requests;
mod response_cases;
mod support;
mod tags;
