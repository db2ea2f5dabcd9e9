//! Pages that are put together, as requests and replies know them.

mod draft;
mod instructions;
mod page;
pub(crate) mod places;
mod stitch;

pub(crate) use self::draft::Draft;
pub(crate) use self::instructions::{Dialect, Instructions, ReadPage};
pub(crate) use self::page::{Composed, Top, Within};
pub(crate) use self::places::OwnPlace;
pub(crate) use self::stitch::{Clip, GzipSegment, PAGE_BYTES, Stitch};
