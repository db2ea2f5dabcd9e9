//! State machine of one dialect's parser, as [`crate::Parser`] drives it. Each byte is pushed once.

use std::fmt;

use crate::node::Node;
use crate::remark::Remarks;

/// The parser of one dialect.
pub(crate) trait Machine: fmt::Debug {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>);

    fn finish(self: Box<Self>, out: &mut Vec<Node>) -> Remarks;

    fn has_instructions(&self) -> bool;
}
