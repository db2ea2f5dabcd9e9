//! User: the name of an authenticated user.

/// The name of an authenticated user.
#[derive(Debug)]
pub(crate) struct User(pub(crate) Box<str>);
