//! Flow: the course of a request from its parsed head to its reply, and the only crate that joins
//! policy, cache and origin.
//!
//! A connection passes each request to [`CoreState::start`]. If nothing must be waited for, the
//! result is a [`Reply`], on a hit without an allocation; otherwise it is a [`WaitingRequest`],
//! whose `run` the connection awaits. Fetches are tasks; they meet deliveries only in the cache's
//! bodies.
//!
//! Must never read a socket or frame a message (`h1`, `h2` and `net` do), and never let a policy
//! act: a policy returns values. Begin with `fast_path` (requests that do not wait), then
//! `slow_path`, `course` (the order of their steps) and `fetch`; [`explain`] takes the same course
//! without acting.

mod allowance;
mod assemble;
mod body_transfer;
mod body_watch;
mod challenge;
mod course;
mod crawlers;
mod decisions;
mod declared;
mod dictionary;
mod disposition;
pub mod explain;
mod failing_keys;
mod fast_path;
mod fetch;
mod fetching;
mod files;
pub mod finish;
mod forecast;
mod form;
mod gate;
mod gathered_body;
mod interims;
pub mod invalidate;
mod key;
mod limit_permit;
mod limit_stage;
mod origin_messages;
pub mod pages;
pub mod peers;
mod prefetch;
pub mod problem;
pub mod purge;
mod reception;
mod recode;
mod refinement;
mod selection;
pub mod sent_form;
mod shape;
pub mod siblings;
mod slices;
mod slow_path;
mod sources;
mod stage;
mod stage_row;
mod state;
mod store_survey;
mod stored_heads;
mod surrogate;
mod tags;
mod throttle;
pub mod tier;
pub mod tracing;
mod trailers;
mod trust;
mod unserved_sites;
mod unstored_reason;
pub mod vcl;
mod verdict;
mod verification;
mod wait;
mod warmth;

pub use policy::{ConnectionPeer, acl::CidrSet};

pub use crate::challenge::Challenges;
pub use crate::disposition::{Start, WaitingRequest};
pub use crate::interims::Interims;
pub use crate::key::begin_key;
pub use crate::problem::ErrorPage;
pub use crate::state::body::{BodyPart, BodyParts, ReplyBody};
pub use crate::state::client::{CertificateFields, Client, ClientCheck};
pub use crate::state::connections::ConnectionRules;
pub use crate::state::core::CoreState;
pub use crate::state::crawlers::{ClaimedAddress, CrawlerVerification, SharedCrawlers};
pub use crate::state::evidence::EvidenceRules;
pub use crate::state::finding_notices::{FindingNotice, FindingNotices};
pub use crate::state::gate::SiteAuthChecks;
pub use crate::state::live_configuration::{LiveConfiguration, LiveRef};
pub use crate::state::mirror::SiteMirrors;
pub use crate::state::origin::SiteOrigin;
pub use crate::state::proxy_fields::{ProxyFields, ShownFields};
pub use crate::state::purges::PurgeAccess;
pub use crate::state::reply::{CacheOutcome, ForwardReason, Reply};
pub use crate::state::request_context::RequestConnection;
pub use crate::state::shared::SharedState;
pub use crate::state::site::{Site, SiteTable};
pub use crate::state::trace::{DecidingRule, FailureNote, ReplyNotes, Trace};
pub use crate::state::unlogged_routes::UnloggedRoutes;
pub use crate::state::vcl::{Endpoint, VclSettings};
pub use crate::state::verification::{
    DifferenceCause, Finding, FindingScope, SiteVerification, WouldBe,
};
pub use crate::state::warmth::{
    Campaign, CampaignCounts, HotUrl, LaneListing, SharedWarmth, SiteWarmth, VariantField,
    WarmOutcome, WarmUrl, WarmWish,
};
pub use crate::state::{live_configuration, reply};
pub use crate::store_survey::{FoundPages, MarkedPage, StoreSurvey, VariedPage};
pub use crate::throttle::Throttles;
pub use crate::trust::{Readiness, Trust};
pub use crate::unserved_sites::unserved_sites;
pub use origin::{ClientEnds, Owner, Tunnel};
