//! Handshakes in progress on a core.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::guard::Guard;

/// Handshakes in progress on a core, the oldest first.
#[derive(Default)]
pub(crate) struct Handshakes {
    pub(crate) next: Cell<u64>,
    pub(crate) under_way: RefCell<BTreeMap<u64, Rc<Guard>>>,
}
