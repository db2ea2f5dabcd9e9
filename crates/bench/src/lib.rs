//! The load tool for HTTP servers, behind `larder bench`. It must never generate load from code
//! that measures: threads of [`load`] send requests and count, and all else reads their counts
//! afterwards.
//!
//! Begin with [`settings::Settings`], which is a run as configured, [`load::Runner`], which
//! measures rounds of it, and [`result::RunResult`], which is what [`report`] and [`comparison`]
//! read. Module [`urls`] makes the lists of requests, and [`remarks`] warns of figures that
//! mislead.

mod background;
pub mod comparison;
pub mod conditions;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod latency;
pub mod load;
pub mod machine;
mod metrics;
pub mod quick;
pub mod remarks;
pub mod report;
pub mod response_diff;
pub mod result;
pub mod settings;
pub mod sweep;
pub mod target;
pub mod urls;
