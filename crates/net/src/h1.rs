//! One HTTP/1.x client connection: its fast way, and its work outside that.

mod client_side;
mod conn;
mod final_segment;
mod slow_path;
mod slow_writer;
mod upload;

pub(crate) use self::conn::Conn;
pub(crate) use self::slow_path::serve;
