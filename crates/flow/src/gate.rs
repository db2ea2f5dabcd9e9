//! Gate: authentication before a site, by password or by an external server (`basic_auth`,
//! `forward_auth`). Requests pass it after the site's limits and before its policy or program.
//!
//! Each core caches grants, so that a hit costs a digest and a table lookup; otherwise the request
//! waits for a check. A check that cannot be completed refuses the request. A fragment inherits its
//! page's grant if the page passed the same checks. Fields about the user that the client sent
//! itself are replaced.

mod admission;
mod admitted_requests;
mod check;
mod gate_verdict;
mod stages;

pub(crate) use self::admission::admit;
pub(crate) use self::admitted_requests::{
    ArrivingRequest, inherit, is_gated, may_include, remove_page_user_fields,
};
pub(crate) use self::stages::{AuthStage, HttpsRedirect};
