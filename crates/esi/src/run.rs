//! A page's way to what it comes to, for one request.

mod esi;
mod ssi;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::{Node, Test};
use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::{Fragment, Include, Op};
use crate::limits::Limits;
use crate::variable::{Part, Template};

use self::ssi::Conditional;

/// The state of one request's way through a page: what the page has set so far. Nodes are resolved
/// in the order of the page.
#[derive(Debug)]
pub struct Run {
    limits: Limits,
    /// Nodes that were resolved, other than text of the page itself.
    count: usize,
    /// Inline fragments or blocks that are being resolved within each other.
    depth: usize,
    values: BTreeMap<Box<[u8]>, Vec<u8>>,
    inlines: BTreeMap<Box<[u8]>, Arc<[Node]>>,
    ssi: Conditional,
}

impl Run {
    /// A run at the beginning of a page.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            count: 0,
            depth: 0,
            values: BTreeMap::new(),
            inlines: BTreeMap::new(),
            ssi: Conditional::default(),
        }
    }

    /// Sets a variable: that of a fragment with [`Fragment::set`], to its body. A page whose
    /// fragments set variables has to be resolved node by node, each after the fragments before it.
    pub fn assign(&mut self, name: &[u8], mut value: Vec<u8>) {
        value.truncate(self.limits.value_bytes);
        let has_room = self.values.len() < self.limits.names;
        if has_room || self.values.contains_key(name) {
            self.values.insert(name.into(), value);
        }
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
        self.counted(node)?;
        if !self.ssi.is_on() && !matches!(node, Node::Command(_)) {
            return Ok(());
        }
        match node {
            Node::Text(range) => ops.push(Op::Text(range.clone())),
            Node::Bytes(bytes) => ops.push(Op::Bytes(bytes.to_vec())),
            Node::Include(include) => self.include(include, env, ops)?,
            Node::Choose(branches) => {
                let taken = branches.iter().find(|branch| match &branch.test {
                    None | Some(Test::Never) => false,
                    Some(Test::Esi(test)) => {
                        test.holds(&|variable| esi::value(variable, &self.values, env))
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
                ops.push(Op::Try { attempt: first, except: second });
            }
            Node::Variable(variable) => {
                let value = esi::value(variable, &self.values, env).unwrap_or_default();
                bytes(value, ops);
            }
            Node::Template(template) => bytes(self.expanded(template, env), ops),
            Node::Assign { name, value } => {
                let value = self.expanded(value, env);
                self.assign(name, value);
            }
            Node::Inline { name, nodes, .. } => {
                if self.inlines.len() < self.limits.names && !self.inlines.contains_key(name) {
                    self.inlines.insert(name.clone(), Arc::clone(nodes));
                }
            }
            Node::Command(command) => self.command(&command.0, env, ops)?,
        }
        Ok(())
    }

    fn all(
        &mut self,
        nodes: &[Node],
        env: &dyn Environment,
        ops: &mut Vec<Op>,
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
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let fragment = match &include.open {
            None => (*include.fragment).clone(),
            Some(open) => {
                let safe = |text: Vec<u8>| crate::address::safe(&text);
                let src = safe(self.expanded(&open.src, env));
                let alt = open.alt.as_ref().map(|alt| safe(self.expanded(alt, env)));
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
                ops.push(Op::Include(Box::new(fragment)));
                Ok(())
            }
        }
    }

    fn expanded(&self, template: &Template, env: &dyn Environment) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &template.0 {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Variable(variable) => {
                    out.extend(esi::value(variable, &self.values, env).unwrap_or_default());
                }
            }
            if out.len() > self.limits.value_bytes {
                out.truncate(self.limits.value_bytes);
                break;
            }
        }
        out
    }
}

fn bytes(value: Vec<u8>, ops: &mut Vec<Op>) {
    if !value.is_empty() {
        ops.push(Op::Bytes(value));
    }
}

type Values = BTreeMap<Box<[u8]>, Vec<u8>>;

/// One of a query's values, as it was sent.
fn of_query<'q>(query: &'q [u8], name: &[u8], is_any_case: bool) -> Option<&'q [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let is_it = match is_any_case {
            true => pair[..equals].eq_ignore_ascii_case(name),
            false => &pair[..equals] == name,
        };
        is_it.then_some(&pair[equals + 1..])
    })
}

/// One of a request's cookies.
fn of_cookies(cookies: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    cookies.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        (&pair[..equals] == name).then(|| pair[equals + 1..].to_vec())
    })
}
