//! Slice state: sets of slices, their readers, and the orders for them.

mod answer;
mod life;
mod memory;
pub(crate) mod persistence;
mod set;
mod shape;
mod slice_fetcher;
pub(crate) mod slice_reading;
mod stretches;

pub(crate) use self::answer::{Edition, Extent, Probe, SliceVerdict, Validator, part_of};
pub(crate) use self::life::SliceLife;
pub(crate) use self::memory::SliceMemory;
pub(crate) use self::set::{SliceOrigin, SliceSet, SliceableResponse, SlicingStep, new_slice};
pub(crate) use self::shape::Shape;
pub(crate) use self::slice_fetcher::{SliceFetcher, SliceOrder};
pub(crate) use self::stretches::{MultipartRanges, StretchPiece};
