//! A page's way to what it comes to, for one request.

use crate::document::Node;
use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::Op;
use crate::limits::Limits;

/// The state of one request's way through a page: what the page has set so far. Nodes are resolved
/// in the order of the page.
#[derive(Debug)]
pub struct Run {
    limits: Limits,
    operations: usize,
}

impl Run {
    /// A run at the beginning of a page.
    pub const fn new(limits: Limits) -> Self {
        Self { limits, operations: 0 }
    }

    /// Appends what a node comes to.
    ///
    /// # Errors
    /// The page comes to more than the limits allow.
    pub fn resolve(
        &mut self,
        node: &Node,
        env: &dyn Environment,
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        _ = env;
        let op = match node {
            Node::Text(range) => Op::Text(range.clone()),
            Node::Bytes(bytes) => Op::Bytes(bytes.to_vec()),
            Node::Include(include) => match include.plain() {
                Some(fragment) => Op::Include(Box::new(fragment.clone())),
                None => return Ok(()),
            },
        };
        self.add(op, ops)
    }

    fn add(&mut self, op: Op, ops: &mut Vec<Op>) -> Result<(), Error> {
        self.operations += 1;
        if self.operations > self.limits.nodes.saturating_mul(2) {
            return Err(Error::Operations(self.limits.nodes));
        }
        ops.push(op);
        Ok(())
    }
}
