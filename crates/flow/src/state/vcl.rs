//! The state of programs, of all cores and of one request.

mod connection;
mod core;
pub(crate) mod halt;
pub(crate) mod halted_request;
mod host_services;
pub mod link;
pub(crate) mod note;
mod random;
mod settings;
mod shared;
mod turn;
mod xids;

pub use self::connection::VclConnection;
pub(crate) use self::core::CoreVcl;
pub use self::host_services::HostServices;
pub use self::settings::{Endpoint, VclSettings};
pub use self::shared::Common;
pub(crate) use self::shared::Turns;
pub(crate) use self::turn::{FoundAs, Turn};
pub(crate) use self::xids::Outstanding;
pub use self::xids::Xids;
