//! Document: a parsed page, which is kept beside the stored body. It never holds the page's text.

use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::ResolvedNode;
use crate::limits::Limits;
use crate::node::{Node, join};
use crate::remark::Remarks;
use crate::run::PageResolver;

/// A parsed page.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    nodes: Vec<Node>,
    remarks: Remarks,
    is_plain: bool,
    limits: Limits,
}

impl Document {
    /// A document of a [`crate::Parser`]'s output. It is plain if the parser found no instruction.
    pub(crate) fn new(
        mut nodes: Vec<Node>,
        remarks: Remarks,
        is_plain: bool,
        limits: Limits,
    ) -> Self {
        join(&mut nodes);
        nodes.shrink_to_fit();
        Self { nodes, remarks, is_plain, limits }
    }

    /// Nodes of the page, in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Faults found in the page.
    pub const fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Returns true if the page has no instruction: Varnish's `obj.can_esi` is false.
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(Node::memory).sum();
        self.nodes.capacity() * size_of::<Node>() + nodes + self.remarks.memory()
    }

    /// Resolves the whole page for one request.
    ///
    /// # Errors
    /// If the page exceeds a limit.
    pub fn resolve(&self, env: &dyn Environment) -> Result<Vec<ResolvedNode>, Error> {
        let mut run = PageResolver::new(self.limits);
        let mut ops = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            run.resolve(node, env, &mut ops)?;
        }
        Ok(ops)
    }
}
