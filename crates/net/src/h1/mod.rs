//! One HTTP/1.x client connection: its fast way, and its work outside that.

mod answering;
mod conn;
mod last;
mod upload;
mod wait;
mod write;

pub(crate) use self::conn::Conn;
pub(crate) use self::wait::serve;
