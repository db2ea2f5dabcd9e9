//! Policies: the verdicts at fixed points of a request, and the declared policy of a site.
//!
//! A policy gets a narrow context and returns a verdict; it must never touch a socket or the store.
//! A site with VCL has no policy: its program decides.
//!
//! Begin with the trait [`Policy`] and its points, then [`Declared`], which implements it from a
//! site's [`SiteRules`].

pub mod acl;
pub mod answer;
pub mod conditions;
pub mod countries;
pub mod crawlers;
pub mod decision_steps;
pub mod declared;
mod forged_fields;
pub mod forwarded;
pub mod header_changes;
pub mod headers;
pub mod hosts;
pub mod includes;
pub mod page_cache;
pub mod pattern;
mod peer;
pub mod points;
pub mod policy_files;
pub mod purge;
pub mod redirect_map;
pub mod response_rules;
pub mod rewrite;
pub mod rules;
mod scripts;
pub mod site_authentication;
pub mod sticky;
pub mod template;
pub mod throttle;
pub mod time_windows;
pub mod users;
pub mod value;
pub mod vary;
pub mod zone;

pub use countries::{Countries, CountryCode};
pub use crawlers::{ClassRules, CrawlerRules};
pub use decision_steps::{DecisionStep, SettingLocation, SettingLocations};
pub use declared::Declared;
pub use hosts::HostTable;
pub use includes::{EsiPages, Includes};
pub use peer::ConnectionPeer;
pub use points::{
    ALLOW, BackendResponse, DeliverCtx, FetchCtx, FetchVerdict, HitCtx, HitVerdict, Notes,
    PageCache, Policy, ReceiveCtx, ReceiveVerdict, ResponseCtx, Routes, StorageChoice, StoreUse,
    Synthetic, TrailerCtx,
};
pub use policy_files::{PolicyFiles, RedirectFile};
pub use purge::{Asker, Dialect, Dialects, Purge};
pub use redirect_map::{RedirectMap, RedirectMapError};
pub use rules::{Profile, ServeMode, SiteRules};
pub use scripts::ScriptNames;
pub use site_authentication::{BasicAuth, ForwardAuth};
pub use sticky::StickyCookie;
pub use throttle::{ConcurrencyRule, LimitKey, RateRule, Terms};
pub use users::{Users, UsersError};
