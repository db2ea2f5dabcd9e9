//! Gates of a site, as plain data: users with passwords, and whom another server lets in.

use std::path::PathBuf;

use crate::headers::FieldName;

/// `basic_auth`: users with passwords (RFC 7617).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// The file with the users.
    pub file: PathBuf,
    /// The purpose of the password, as clients are told.
    pub realm: Box<str>,
    /// Origins get the password, too.
    pub forward: bool,
    /// The field in which origins are told the user; `None` for none.
    pub user_field: Option<FieldName>,
}

/// `forward_auth`: another server is asked whether a request may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// That server, as an index into all origins.
    pub origin: usize,
    /// The target of the question: a path, perhaps with a query.
    pub path: Box<str>,
    /// Fields of its answer that go to the site's origin with the request.
    pub copy: Vec<FieldName>,
    /// Milliseconds for which a yes is remembered; 0 for not at all.
    pub keep_ms: u64,
    /// A yes is for the whole site, not for the one URL.
    pub whole_site: bool,
    /// The fields by whose values requests are told apart where a yes is remembered.
    pub by: Vec<FieldName>,
}

impl ForwardAuth {
    /// The path without its query, which may hold a secret between the two servers.
    pub fn shown_path(&self) -> String {
        match self.path.split_once('?') {
            Some((path, _)) => format!("{path}?..."),
            None => self.path.to_string(),
        }
    }
}
