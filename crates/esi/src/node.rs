//! Node of a parsed page, and the tree of them. Text is a range of the page and never a copy.

use std::ops::Range;
use std::sync::Arc;

use crate::environment::PageText;
use crate::expression::Expression;
use crate::fragment::Include;
use crate::ssi::Command;
use crate::variable::{Template, Variable};

/// One node of a page.
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
        /// Sent if all its fragments succeed.
        attempt: Box<[Self]>,
        /// Sent otherwise.
        except: Box<[Self]>,
    },
    /// A variable in `<esi:vars>`. Values from the request are escaped as text of HTML.
    Variable(Box<Variable>),
    /// `<esi:vars name=...>`
    Template(Box<Template>),
    /// `<esi:assign>`
    Assign {
        /// Name of the variable.
        name: Box<[u8]>,
        /// Value of the variable.
        value: Box<Template>,
    },
    /// `<esi:inline>`, or SSI's block: a fragment that the page itself holds. It is sent where an
    /// include names it.
    Inline {
        /// Address of the fragment, or name of the block.
        name: Box<[u8]>,
        /// Content of the fragment.
        nodes: Arc<[Self]>,
    },
    /// A command of SSI.
    Command(Box<Command>),
}

impl Node {
    /// The node with bytes in place of all ranges, for a fragment that may be included after the
    /// page's text is gone.
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
    /// Condition; `None` for the branch that is taken if no other is.
    pub(crate) test: Option<Test>,
    pub(crate) nodes: Vec<Node>,
}

/// Condition of a branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// A malformed condition, which never holds.
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

/// Joins the last two nodes if they are adjacent text.
pub(crate) fn join_last(nodes: &mut Vec<Node>) {
    if let [.., Node::Text(before), Node::Text(last)] = &mut nodes[..]
        && before.end == last.start
    {
        before.end = last.end;
        nodes.pop();
    }
}

/// Joins adjacent ranges of text.
pub(crate) fn join(nodes: &mut Vec<Node>) {
    nodes.dedup_by(|next, before| match (next, before) {
        (Node::Text(next), Node::Text(before)) if before.end == next.start => {
            before.end = next.end;
            true
        }
        _ => false,
    });
}
