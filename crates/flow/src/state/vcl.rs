//! The state of programs, of all cores and of one request.

mod common;
mod core;
pub(crate) mod halt;
mod line;
pub mod link;
pub(crate) mod note;
mod outside;
mod random;
mod settings;
mod turn;
pub(crate) mod waiting;
mod xids;

pub use self::common::Common;
pub(crate) use self::common::Turns;
pub(crate) use self::core::CoreVcl;
pub use self::line::Line;
pub use self::outside::Outside;
pub use self::settings::{Endpoint, VclSettings};
pub(crate) use self::turn::{FoundAs, Turn};
pub(crate) use self::xids::Outstanding;
pub use self::xids::Xids;
