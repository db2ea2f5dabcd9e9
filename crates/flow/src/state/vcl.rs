//! VCL state: the state of programs, for all cores, for one core and for one request.

mod connection;
mod core;
pub(crate) mod extra_reading;
mod extra_request;
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
pub(crate) use self::extra_request::{ExtraRequest, ExtraRunner};
pub use self::host_services::HostServices;
pub use self::settings::{Endpoint, VclSettings};
pub use self::shared::SharedVcl;
pub(crate) use self::shared::StorageRotation;
pub(crate) use self::turn::{LookupResult, ProgramRequest};
pub(crate) use self::xids::OutstandingRequest;
pub use self::xids::Xids;
