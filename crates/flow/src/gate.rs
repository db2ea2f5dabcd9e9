//! The gates of a site: who may enter, by a password or by another server's word. Requests pass
//! them behind the site's limits and before its policy or its program, under both alike.
//!
//! Each core remembers for itself what a gate has found out, so that a hit stays one: it costs a
//! digest and a look into a table. Otherwise the request waits, and enters the site from there. A
//! gate that cannot find out lets nobody in. A fragment of a page comes in with its page, if that
//! has passed the same gates. What a gate tells the origin of a client takes the place of what the
//! client says itself.

mod admission;
mod admitted_requests;
mod check;
mod gate_verdict;
mod stages;

pub(crate) use self::admission::admit;
pub(crate) use self::admitted_requests::{
    ArrivingRequest, inherit, may_include, remove_page_user_fields,
};
pub(crate) use self::stages::{AuthStage, HttpsRedirect};
