//! The tree of a page.

use std::ops::Range;
use std::sync::Arc;

use crate::environment::PageText;
use crate::expression::Expression;
use crate::fragment::Include;
use crate::ssi::Command;
use crate::variable::{Template, Variable};

/// One piece of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Bytes of the page, by their offsets.
    Text(Range<u64>),
    /// Other bytes.
    Bytes(Box<[u8]>),
    /// A fragment.
    Include(Include),
    /// `<esi:choose>`: the first branch whose condition holds.
    Choose(Box<[Branch]>),
    /// `<esi:try>`
    Try {
        /// Takes the place if all its fragments come.
        attempt: Box<[Self]>,
        /// Takes the place otherwise.
        except: Box<[Self]>,
    },
    /// A variable in `<esi:vars>`. What the request says is text in the page, and no markup.
    Variable(Box<Variable>),
    /// `<esi:vars name=...>`
    Template(Box<Template>),
    /// `<esi:assign>`
    Assign {
        /// The variable's name.
        name: Box<[u8]>,
        /// Its value.
        value: Box<Template>,
    },
    /// `<esi:inline>`, or SSI's block: a fragment within the page. It is sent where it is asked
    /// for.
    Inline {
        /// Its address, or the block's name.
        name: Box<[u8]>,
        /// Its content.
        nodes: Arc<[Self]>,
    },
    /// A command of SSI.
    Command(Box<Command>),
}

impl Node {
    /// The same with bytes in the place of all ranges: what a fragment within the page is needed
    /// for may follow it.
    pub(crate) fn with_owned_text(&self, text: &dyn PageText) -> Self {
        let all = |nodes: &[Self]| {
            nodes.iter().map(|node| node.with_owned_text(text)).collect::<Vec<_>>()
        };
        match self {
            Self::Text(range) => Self::Bytes(text.take(range).into()),
            Self::Choose(branches) => {
                let branch = |b: &Branch| Branch { test: b.test.clone(), nodes: all(&b.nodes) };
                Self::Choose(branches.iter().map(branch).collect())
            }
            Self::Try { attempt, except } => {
                Self::Try { attempt: all(attempt).into(), except: all(except).into() }
            }
            Self::Inline { name, nodes } => {
                Self::Inline { name: name.clone(), nodes: all(nodes).into() }
            }
            node => node.clone(),
        }
    }
}

/// One branch of a choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// `None`: it is taken if no other is.
    pub(crate) test: Option<Test>,
    pub(crate) nodes: Vec<Node>,
}

/// A branch's condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// It is not one, and never holds.
    Never,
    Esi(Expression),
}

impl Node {
    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
            Self::Include(include) => include.memory(),
            Self::Choose(branches) => branches.iter().map(Branch::memory).sum(),
            Self::Try { attempt, except } => memory(attempt) + memory(except),
            Self::Variable(variable) => size_of::<Variable>() + variable.memory(),
            Self::Template(template) => size_of::<Template>() + template.memory(),
            Self::Assign { name, value } => name.len() + size_of::<Template>() + value.memory(),
            Self::Inline { name, nodes } => name.len() + memory(nodes),
            Self::Command(command) => command.memory(),
        }
    }
}

impl Branch {
    fn memory(&self) -> usize {
        let test = match &self.test {
            Some(Test::Esi(expression)) => expression.memory(),
            Some(Test::Never) | None => 0,
        };
        size_of::<Self>() + test + memory(&self.nodes)
    }
}

fn memory(nodes: &[Node]) -> usize {
    size_of_val(nodes) + nodes.iter().map(Node::memory).sum::<usize>()
}

/// Joins the last two nodes if they are text without a gap between.
pub(crate) fn join_last(nodes: &mut Vec<Node>) {
    if let [.., Node::Text(before), Node::Text(last)] = &mut nodes[..]
        && before.end == last.start
    {
        before.end = last.end;
        nodes.pop();
    }
}

/// Joins ranges of text that follow each other without a gap.
pub(crate) fn join(nodes: &mut Vec<Node>) {
    nodes.dedup_by(|next, before| match (next, before) {
        (Node::Text(next), Node::Text(before)) if before.end == next.start => {
            before.end = next.end;
            true
        }
        _ => false,
    });
}
