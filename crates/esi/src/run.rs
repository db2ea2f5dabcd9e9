//! A page's way to what it comes to, for one request.

mod esi;
mod ssi;
mod value_piece;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::{Fragment, Include, ResolvedNode};
use crate::limits::Limits;
use crate::node::{Node, Test};
use crate::ssi::Kind;
use crate::variable::{Template, TemplatePart};

use self::ssi::{CommandContext, Outcome};
use self::value_piece::{Author, Purpose, ValuePiece, write_value};
use self::values::Values;

/// The state of one request's way through a page: what the page has set so far. Nodes are resolved
/// in the order of the page.
#[derive(Debug)]
pub struct PageResolver {
    limits: Limits,
    /// Nodes that were resolved, other than text of the page itself.
    count: usize,
    /// Inline fragments or blocks that are being resolved within each other.
    depth: usize,
    values: Values,
    inlines: BTreeMap<Box<[u8]>, Arc<[Node]>>,
    ssi: CommandContext,
}

impl PageResolver {
    /// A run at the beginning of a page.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            count: 0,
            depth: 0,
            values: Values::new(limits),
            inlines: BTreeMap::new(),
            ssi: CommandContext::default(),
        }
    }

    /// Sets a variable: that of a fragment with [`Fragment::set`], to its body. A page whose
    /// fragments set variables has to be resolved node by node, each after the fragments before it.
    pub fn assign(&mut self, name: &[u8], value: Vec<u8>) {
        self.values.assign(name, value);
    }

    /// Appends what a node comes to.
    ///
    /// # Errors
    /// The page comes to more than the limits allow.
    pub fn resolve(
        &mut self,
        node: &Node,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        self.counted(node)?;
        if !self.ssi.is_on() && !matches!(node, Node::Command(_)) {
            return Ok(());
        }
        match node {
            Node::Text(range) => ops.push(match env.text() {
                Some(text) => ResolvedNode::Bytes(text.take(range)),
                None => ResolvedNode::Text(range.clone()),
            }),
            Node::Bytes(bytes) => ops.push(ResolvedNode::Bytes(bytes.to_vec())),
            Node::Include(include) => self.include(include, env, ops)?,
            Node::Choose(branches) => {
                let taken = branches.iter().find(|branch| match &branch.test {
                    None | Some(Test::Never) => false,
                    Some(Test::Esi(test)) => {
                        let words = |variable| esi::words(variable, &self.values, env);
                        test.holds(&|variable| Some(write_value(words(variable)?, Purpose::Test)))
                    }
                });
                let taken = taken.or_else(|| branches.iter().find(|branch| branch.test.is_none()));
                if let Some(branch) = taken {
                    self.all(&branch.nodes, env, ops)?;
                }
            }
            Node::Try { attempt, except } => {
                let (mut first, mut second) = (Vec::new(), Vec::new());
                self.all(attempt, env, &mut first)?;
                self.all(except, env, &mut second)?;
                ops.push(ResolvedNode::Try { attempt: first, except: second });
            }
            Node::Variable(variable) => {
                let words = esi::words(variable, &self.values, env).unwrap_or_default();
                bytes(write_value(words, Purpose::Page), ops);
            }
            Node::Template(template) => {
                bytes(write_value(self.expanded(template, env), Purpose::Page), ops);
            }
            Node::Assign { name, value } => {
                let words = self.expanded(value, env);
                self.values.assign_words(name, words);
            }
            Node::Inline { name, nodes } => {
                if self.inlines.len() < self.limits.names && !self.inlines.contains_key(name) {
                    let nodes = match env.text() {
                        Some(text) => nodes.iter().map(|node| node.with_owned_text(text)).collect(),
                        None => Arc::clone(nodes),
                    };
                    self.inlines.insert(name.clone(), nodes);
                }
            }
            Node::Command(command) => self.command(&command.0, env, ops)?,
        }
        Ok(())
    }

    /// Carries out a command of SSI.
    fn command(
        &mut self,
        command: &Kind,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        match self.ssi.command(command, &mut self.values, env) {
            Outcome::Bytes(value) => bytes(value, ops),
            Outcome::Include { fragment, block } => {
                let nodes = block.map(|name| self.inlines.get(name).map(Arc::clone));
                if let Some(None) = nodes {
                    bytes(self.ssi.message(), ops);
                    return Ok(());
                }
                let stub = self.stub(nodes.flatten(), env)?;
                ops.push(ResolvedNode::Include(Box::new(Fragment { stub, ..fragment })));
            }
        }
        Ok(())
    }

    /// The operations of a block in the place of a fragment.
    fn stub(
        &mut self,
        block: Option<Arc<[Node]>>,
        env: &dyn Environment,
    ) -> Result<Option<Vec<ResolvedNode>>, Error> {
        // A stub's own includes have none: so no stub is within itself.
        let Some(nodes) = block.filter(|_| self.depth == 0) else { return Ok(None) };
        self.depth += 1;
        let mut stub = Vec::new();
        let done = self.all(&nodes, env, &mut stub);
        self.depth -= 1;
        done.map(|()| Some(stub))
    }

    fn all(
        &mut self,
        nodes: &[Node],
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        nodes.iter().try_for_each(|node| self.resolve(node, env, ops))
    }

    /// Counts a node. What the page repeats by its inline fragments counts each time.
    fn counted(&mut self, node: &Node) -> Result<(), Error> {
        if self.depth > 0 || !matches!(node, Node::Text(_)) {
            self.count += 1;
        }
        let most = self.limits.nodes.saturating_mul(2);
        if self.count > most { Err(Error::Operations(most)) } else { Ok(()) }
    }

    fn include(
        &mut self,
        include: &Include,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        let fragment = match &include.open {
            None => (*include.fragment).clone(),
            Some(open) => {
                let address = |template| {
                    let words = self.expanded(template, env);
                    crate::address::safe(&write_value(words, Purpose::Address))
                };
                let (src, alt) = (address(&open.src), open.alt.as_ref().map(address));
                Fragment { src, alt, ..(*include.fragment).clone() }
            }
        };
        let inline = self.inlines.get(&fragment.src[..]).map(Arc::clone);
        match inline {
            Some(nodes) if self.depth < self.limits.nesting && !self.ssi.is_used() => {
                self.depth += 1;
                let done = self.all(&nodes, env, ops);
                self.depth -= 1;
                done
            }
            _ => {
                ops.push(ResolvedNode::Include(Box::new(fragment)));
                Ok(())
            }
        }
    }

    /// The pieces of a text with its variables' values, as many bytes as a value may have.
    fn expanded(&self, template: &Template, env: &dyn Environment) -> Vec<ValuePiece> {
        let (mut out, mut left) = (Vec::new(), self.limits.value_bytes);
        for part in &template.0 {
            let words = match part {
                TemplatePart::Literal(text) => {
                    vec![ValuePiece { author: Author::Page, text: text.to_vec() }]
                }
                TemplatePart::Variable(variable) => {
                    esi::words(variable, &self.values, env).unwrap_or_default()
                }
            };
            for mut word in words {
                word.text.truncate(left);
                left -= word.text.len();
                out.push(word);
            }
        }
        out
    }
}

fn bytes(value: Vec<u8>, ops: &mut Vec<ResolvedNode>) {
    if !value.is_empty() {
        ops.push(ResolvedNode::Bytes(value));
    }
}
