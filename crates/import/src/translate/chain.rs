//! The blocks around a request, and what is in force there: nginx's rules of inheritance.

use crate::syntax::Directive;

/// Blocks within each other, the outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain<'d> {
    blocks: Vec<&'d [Directive]>,
    /// Blocks in which guards are looked for instead.
    guards: Vec<GuardSource<'d>>,
    /// Guards that cannot be said, so that no client is let in.
    refused: Vec<usize>,
    /// Fields of the files that are looked for in front of what answers.
    front_fields: Vec<&'d Directive>,
}

/// A kind of guard and the blocks that have it.
#[derive(Clone, Debug)]
struct GuardSource<'d> {
    names: &'static [&'static str],
    blocks: Vec<&'d [Directive]>,
}

impl<'d> Chain<'d> {
    pub(crate) fn new(blocks: Vec<&'d [Directive]>) -> Self {
        Self { blocks, ..Self::default() }
    }

    /// The chain with a further block within.
    pub(crate) fn with(&self, block: &'d [Directive]) -> Self {
        let mut chain = self.clone();
        chain.blocks.push(block);
        chain.guards.iter_mut().for_each(|own| own.blocks.push(block));
        chain
    }

    /// Takes the guards of these names from `source`.
    pub(crate) fn guard_by(&mut self, names: &'static [&'static str], source: &Self) {
        let blocks = source.blocks_of(names).to_vec();
        self.guards.retain(|own| own.names != names);
        self.guards.push(GuardSource { names, blocks });
    }

    /// Lets no client in, because of these directives.
    pub(crate) fn refuse(&mut self, from: &[usize]) {
        self.refused.extend(from);
    }

    /// The directives for which no client is let in.
    pub(crate) fn refused(&self) -> &[usize] {
        &self.refused
    }

    /// Adds fields of the files in front.
    pub(crate) fn add_front_fields(&mut self, fields: impl IntoIterator<Item = &'d Directive>) {
        self.front_fields.extend(fields);
    }

    /// Fields of the files in front.
    pub(crate) fn front_fields(&self) -> &[&'d Directive] {
        &self.front_fields
    }

    /// The chain of the first blocks, up to the one at `at`.
    pub(crate) fn upto(&self, at: usize) -> Self {
        Self::new(self.blocks.iter().take(at + 1).copied().collect())
    }

    /// The blocks, the outermost first.
    pub(crate) fn blocks(&self) -> &[&'d [Directive]] {
        &self.blocks
    }

    /// The blocks in which these names are looked for.
    fn blocks_of(&self, names: &[&str]) -> &[&'d [Directive]] {
        let is_it = |own: &&GuardSource<'d>| names.iter().any(|name| own.names.contains(name));
        self.guards.iter().find(is_it).map_or(&self.blocks, |own| &own.blocks)
    }

    /// The directives of these names that are in force: those of the innermost block that has any.
    pub(crate) fn all(&self, names: &[&str]) -> Vec<&'d Directive> {
        let of = |block: &&'d [Directive]| {
            let own = block.iter().filter(|directive| names.contains(&directive.name.as_str()));
            Some(own.collect::<Vec<_>>()).filter(|own| !own.is_empty())
        };
        self.blocks_of(names).iter().rev().find_map(of).unwrap_or_default()
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
