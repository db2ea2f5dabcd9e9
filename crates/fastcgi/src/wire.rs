//! Wire constants of the protocol (FastCGI 1.0, section 8).

/// The only version.
pub(crate) const VERSION: u8 = 1;

/// Size of a record's header, and of a BEGIN_REQUEST's and an END_REQUEST's content.
pub(crate) const HEADER_BYTES: usize = 8;

/// The id of every request: a connection has one at a time.
pub(crate) const REQUEST_ID: u16 = 1;

/// The id of management records, which concern the connection.
pub(crate) const NULL_ID: u16 = 0;

pub(crate) const BEGIN_REQUEST: u8 = 1;
pub(crate) const ABORT_REQUEST: u8 = 2;
pub(crate) const END_REQUEST: u8 = 3;
pub(crate) const PARAMS: u8 = 4;
pub(crate) const STDIN: u8 = 5;
pub(crate) const STDOUT: u8 = 6;
pub(crate) const STDERR: u8 = 7;
pub(crate) const GET_VALUES_RESULT: u8 = 10;
pub(crate) const UNKNOWN_TYPE: u8 = 11;

/// Role of an application that answers requests.
pub(crate) const RESPONDER: u8 = 1;

/// Flag of BEGIN_REQUEST: the connection stays open after the response.
pub(crate) const KEEP_CONN: u8 = 1;

/// The most content of one record.
pub(crate) const CONTENT_MAX: usize = u16::MAX as usize;
