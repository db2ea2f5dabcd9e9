//! Rules by which Varnish treats messages apart from any program: the heads that go on, the times
//! of a response, dates, ranges, statuses. They differ from the RFCs where Varnish does, as
//! programs count on that.

pub mod dates;
pub mod filters;
pub mod heads;
pub mod lifetime;
pub mod ranges;
pub mod status;
