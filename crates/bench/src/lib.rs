//! A load tool for HTTP servers. Sources of URLs make [`request::Request`]s; a run of them gives a
//! [`result::Run`], which reports read.

pub mod latency;
pub mod request;
pub mod result;
pub mod urls;
