//! Sets of slices, and the orders for them.

mod answer;
mod desk;
pub(crate) mod lasting;
mod life;
mod memory;
pub(crate) mod reading;
mod set;
mod shape;
mod stretches;

pub(crate) use self::answer::{Edition, Extent, Probe, SliceVerdict, Validator, part_of};
pub(crate) use self::desk::{Desk, SliceOrder};
pub(crate) use self::life::SliceLife;
pub(crate) use self::memory::SliceMemory;
pub(crate) use self::set::{Pace, SliceSet, Sliced, Whence, new_slice};
pub(crate) use self::shape::Shape;
pub(crate) use self::stretches::{Piece, Stretches};
