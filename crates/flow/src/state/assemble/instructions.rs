//! Instructions of a page, as kept beside it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cache::DerivedData;
use esi::{Document, Remarks};

use super::gzip_page::Clip;

/// The dialect of a page's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// ESI 1.0.
    Esi,
    /// ESI as Varnish parses it, under its parameters.
    Varnish,
    /// nginx's server-side includes.
    Ssi,
}

/// The instructions of a page, in one dialect.
#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) dialect: Dialect,
    pub(crate) read: Arc<ReadPage>,
    /// The page is assembled in gzip, from gzip fragments, for clients that accept that.
    pub(crate) is_gzipped: bool,
    /// The page has no instruction, and is sent in further forms.
    pub(crate) negotiated: bool,
    /// The faults of the page have been counted.
    pub(crate) is_told: AtomicBool,
}

/// A parsed page.
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) document: Document,
    /// Its compressed texts in order, if it is sent so.
    pub(crate) clips: Vec<Clip>,
}

impl Instructions {
    /// Returns true if the page is sent unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        self.read.document.is_plain()
    }

    /// The faults of the page.
    pub(crate) fn remarks(&self) -> &Remarks {
        self.read.document.remarks()
    }
}

impl DerivedData for Instructions {
    fn memory(&self) -> u64 {
        let clips: usize = self.read.clips.iter().map(Clip::memory).sum();
        (size_of::<Self>() + size_of::<ReadPage>() + self.read.document.memory() + clips) as u64
    }
}
