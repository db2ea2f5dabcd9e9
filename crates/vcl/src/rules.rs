//! Rules of Varnish for messages, independent of any program: forwarded heads, lifetimes, dates,
//! ranges, statuses. They deviate from the RFCs only where Varnish does.

pub mod dates;
pub mod filters;
pub mod heads;
pub mod lifetime;
pub mod ranges;
pub mod status;
