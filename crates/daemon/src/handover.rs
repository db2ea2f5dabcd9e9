//! Handover: the conversation of a daemon with the one that replaces it, over a socket pair.
//!
//! The old process offers its sockets. The new one reads its configuration, and says that it is
//! ready, or why it is not. It begins to serve when it is told to. From then on both send each
//! other invalidations, until the old one ends. Nothing here knows what is done with all that.
//!
//! A side begins with the version of the form. Messages have numbered fields: one that a version
//! does not know is skipped, so that releases can add fields.

mod channel;
mod fields;
mod message;

pub(crate) use channel::{Channel, frame, take_frame};
pub(crate) use message::{DiskOffer, HandoverMessage, Introduction, Offer, Role, SocketOffer};
