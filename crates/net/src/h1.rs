//! HTTP/1.x client connections: the fast path, and the slow path for work that must wait.

mod client_side;
mod conn;
mod final_segment;
mod slow_path;
mod slow_writer;
mod upload;

pub(crate) use self::conn::Conn;
pub(crate) use self::slow_path::serve;
