//! A load tool for HTTP servers. Sources of URLs make requests; a [`load::Runner`] asks them and
//! gives a [`result::Run`], which reports read.

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
pub mod result;
pub mod settings;
pub mod sweep;
pub mod target;
pub mod urls;
