//! The request state machine: the only crate that joins policy, cache and origin.
//!
//! A connection hands a request to [`Core::start`]. What needs no waiting comes back as a [`Reply`]
//! at once, without allocation on a hit; what must wait comes back as a [`Slow`] to be awaited.
//! Fetches are tasks of their own: they meet the delivery only in `cache`'s bodies.

mod allowance;
mod assemble;
mod carry;
mod challenge;
mod course;
mod decide;
mod declared;
mod dictionary;
mod enter;
pub mod explain;
mod failing;
mod fetch;
mod fetching;
mod files;
pub mod finish;
mod forecast;
mod form;
mod forward;
mod gate;
mod gathered;
mod guard;
mod interims;
pub mod invalidate;
mod key;
pub mod pages;
mod pass;
pub mod peers;
pub mod problem;
pub mod purge;
mod recode;
mod refine;
mod row;
mod select;
pub mod sent;
mod shape;
pub mod siblings;
mod slices;
mod slow;
mod sources;
mod stage;
mod state;
mod stored;
mod surrogate;
mod tags;
mod throttle;
pub mod tier;
pub mod tracing;
mod trailers;
mod trust;
mod unserved;
pub mod vcl;
mod verdict;
mod wait;
mod way;
mod why;

pub use policy::{Peer, acl::CidrSet};

pub use crate::challenge::Challenges;
pub use crate::interims::Interims;
pub use crate::key::begin_key;
pub use crate::problem::ErrorPage;
pub use crate::state::announce::{Announce, ShownFields};
pub use crate::state::ask::Front;
pub use crate::state::body::{Part, Parts, ReplyBody};
pub use crate::state::client::{CertificateFields, Client, ClientCheck};
pub use crate::state::connections::ConnectionRules;
pub use crate::state::core::Core;
pub use crate::state::gate::Gates;
pub use crate::state::live::{Live, LiveRef};
pub use crate::state::origin::SiteOrigin;
pub use crate::state::purges::SitePurges;
pub use crate::state::reply::{Forward, Reply, Served};
pub use crate::state::shared::Shared;
pub use crate::state::site::{Site, SiteTable};
pub use crate::state::trace::{About, Decided, Trace, Trouble};
pub use crate::state::vcl::{Endpoint, VclSettings};
pub use crate::state::{live, reply};
pub use crate::throttle::Throttles;
pub use crate::trust::{Readiness, Trust};
pub use crate::unserved::unserved_sites;
pub use crate::way::{Slow, Start};
pub use origin::{ClientEnds, Owner, Tunnel};
