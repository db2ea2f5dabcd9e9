//! The state of programs, of all cores and of one request.

mod common;
mod line;
pub mod link;
mod outside;
mod random;
mod turn;
mod xids;

pub use self::common::Common;
pub(crate) use self::common::Turns;
pub use self::line::Line;
pub use self::outside::Outside;
pub(crate) use self::turn::Turn;
pub(crate) use self::xids::Outstanding;
pub use self::xids::Xids;
