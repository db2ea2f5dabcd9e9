//! Site authentication settings as plain data: users with passwords, and the server that decides
//! about access.

use std::path::PathBuf;

use crate::headers::FieldName;

/// `basic_auth`: users with passwords (RFC 7617).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// The file with the users.
    pub file: PathBuf,
    /// The realm, which clients display.
    pub realm: Box<str>,
    /// Origins get the password, too.
    pub forward: bool,
    /// The field in which origins get the user's name; `None` for no field.
    pub user_field: Option<FieldName>,
}

/// `forward_auth`: another server decides if a request may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// That server, as an index into all origins.
    pub origin: usize,
    /// The target of the subrequest: a path with an optional query.
    pub path: Box<str>,
    /// Fields of its response that are added to the request for the site's origin.
    pub copy: Vec<FieldName>,
    /// Milliseconds for which a permission is cached; 0 for no cache.
    pub keep_ms: u64,
    /// A permission is valid for the whole site, not only for its URL.
    pub whole_site: bool,
    /// The fields whose values are the key of a cached permission.
    pub by: Vec<FieldName>,
}

impl ForwardAuth {
    /// The path without its query, which may contain a secret of the two servers.
    pub fn shown_path(&self) -> String {
        match self.path.split_once('?') {
            Some((path, _)) => format!("{path}?..."),
            None => self.path.to_string(),
        }
    }
}
