//! The instructions of a page, as they are kept beside it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cache::DerivedData;
use esi::{Document, Remarks};

use super::gzip_page::Clip;

/// The language that a page's instructions are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// ESI 1.0.
    Esi,
    /// ESI as Varnish reads it, under its parameters.
    Varnish,
    /// nginx's server-side includes.
    Ssi,
}

/// The instructions of a page in one of the dialects.
#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) dialect: Dialect,
    pub(crate) read: Arc<ReadPage>,
    /// It is put together in gzip, of fragments in gzip, for clients that take that.
    pub(crate) is_folded: bool,
    /// It has no instruction, and is sent in further forms.
    pub(crate) negotiated: bool,
    /// Its faults have been counted.
    pub(crate) is_told: AtomicBool,
}

/// A page that has been read.
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) document: Document,
    /// Its texts in gzip, in its order, where it is sent so.
    pub(crate) cuts: Vec<Clip>,
}

impl Instructions {
    /// Returns true if the page is sent as it came.
    pub(crate) fn is_plain(&self) -> bool {
        self.read.document.is_plain()
    }

    /// Faults of the page.
    pub(crate) fn remarks(&self) -> &Remarks {
        self.read.document.remarks()
    }
}

impl DerivedData for Instructions {
    fn memory(&self) -> u64 {
        let cuts: usize = self.read.cuts.iter().map(Clip::memory).sum();
        (size_of::<Self>() + size_of::<ReadPage>() + self.read.document.memory() + cuts) as u64
    }
}
