//! Assembly state: pages with instructions as requests and replies see them.

mod draft;
mod gzip_page;
mod instructions;
mod page;
pub(crate) mod permits;

pub(crate) use self::draft::Draft;
pub(crate) use self::gzip_page::{Clip, GzipPage, GzipSegment, PAGE_BYTES};
pub(crate) use self::instructions::{Dialect, Instructions, ReadPage};
pub(crate) use self::page::{ComposedPage, FragmentContext, TopPage};
pub(crate) use self::permits::FragmentPermit;
