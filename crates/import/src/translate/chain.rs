//! The blocks around a request, and what is in force there: nginx's rules of inheritance.

use crate::syntax::Directive;

/// Blocks within each other, the outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain<'d> {
    blocks: Vec<&'d [Directive]>,
}

impl<'d> Chain<'d> {
    pub(crate) fn new(blocks: Vec<&'d [Directive]>) -> Self {
        Self { blocks }
    }

    /// The chain with a further block within.
    pub(crate) fn with(&self, block: &'d [Directive]) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.push(block);
        Self { blocks }
    }

    /// The chain of the first blocks, up to the one at `at`.
    pub(crate) fn upto(&self, at: usize) -> Self {
        Self { blocks: self.blocks.iter().take(at + 1).copied().collect() }
    }

    /// The blocks, the outermost first.
    pub(crate) fn blocks(&self) -> &[&'d [Directive]] {
        &self.blocks
    }

    /// The directives of these names that are in force: those of the innermost block that has any.
    pub(crate) fn all(&self, names: &[&str]) -> Vec<&'d Directive> {
        let of = |block: &&'d [Directive]| {
            let own = block.iter().filter(|directive| names.contains(&directive.name.as_str()));
            Some(own.collect::<Vec<_>>()).filter(|own| !own.is_empty())
        };
        self.blocks.iter().rev().find_map(of).unwrap_or_default()
    }

    /// The one of this name that is in force.
    pub(crate) fn one(&self, name: &str) -> Option<&'d Directive> {
        self.all(&[name]).into_iter().next_back()
    }

    /// The directives of a name in all blocks, the outermost first.
    pub(crate) fn every(&self, name: &str) -> Vec<&'d Directive> {
        let all = self.blocks.iter().flat_map(|block| block.iter());
        all.filter(|directive| directive.name == name).collect()
    }

    /// The directives of the innermost block.
    pub(crate) fn own(&self) -> &'d [Directive] {
        self.blocks.last().copied().unwrap_or_default()
    }

    /// The first of a name in the innermost block.
    pub(crate) fn own_one(&self, name: &str) -> Option<&'d Directive> {
        self.own().iter().find(|directive| directive.name == name)
    }
}
