//! The name of a user, as a gate knows it.

/// The name of a user, as a gate knows it.
#[derive(Debug)]
pub(crate) struct User(pub(crate) Box<str>);
