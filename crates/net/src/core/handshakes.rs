//! The handshakes that a core has under way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::guard::Guard;

/// Handshakes under way on a core, the oldest first.
#[derive(Default)]
pub(crate) struct Handshakes {
    pub(crate) next: Cell<u64>,
    pub(crate) under_way: RefCell<BTreeMap<u64, Rc<Guard>>>,
}
