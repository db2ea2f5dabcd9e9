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

use self::esi::{Author, Purpose, Word};
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
    values: Values,
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
            values: Values::default(),
            inlines: BTreeMap::new(),
            ssi: Conditional::default(),
        }
    }

    /// Sets a variable: that of a fragment with [`Fragment::set`], to its body. A page whose
    /// fragments set variables has to be resolved node by node, each after the fragments before it.
    pub fn assign(&mut self, name: &[u8], mut value: Vec<u8>) {
        value.truncate(self.limits.value_bytes);
        let all = &mut self.values.all;
        if all.len() < self.limits.names || all.contains_key(name) {
            all.insert(name.into(), value);
            self.values.words.remove(name);
        }
    }

    /// Sets a variable to a value that a client may have a part in.
    fn assign_words(&mut self, name: &[u8], words: Vec<Word>) {
        let is_own = words.iter().all(|word| word.author == Author::Page);
        self.assign(name, esi::put(words.clone(), Purpose::Test));
        if !is_own && self.values.all.contains_key(name) {
            self.values.words.insert(name.into(), words);
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
                        let words = |variable| esi::words(variable, &self.values, env);
                        test.holds(&|variable| Some(esi::put(words(variable)?, Purpose::Test)))
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
                let words = esi::words(variable, &self.values, env).unwrap_or_default();
                bytes(esi::put(words, Purpose::Page), ops);
            }
            Node::Template(template) => {
                bytes(esi::put(self.expanded(template, env), Purpose::Page), ops);
            }
            Node::Assign { name, value } => {
                let words = self.expanded(value, env);
                self.assign_words(name, words);
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
                let address = |template| {
                    let words = self.expanded(template, env);
                    crate::address::safe(&esi::put(words, Purpose::Address))
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
                ops.push(Op::Include(Box::new(fragment)));
                Ok(())
            }
        }
    }

    /// The pieces of a text with its variables' values, as many bytes as a value may have.
    fn expanded(&self, template: &Template, env: &dyn Environment) -> Vec<Word> {
        let (mut out, mut left) = (Vec::new(), self.limits.value_bytes);
        for part in &template.0 {
            let words = match part {
                Part::Literal(text) => vec![Word { author: Author::Page, text: text.to_vec() }],
                Part::Variable(variable) => {
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

fn bytes(value: Vec<u8>, ops: &mut Vec<Op>) {
    if !value.is_empty() {
        ops.push(Op::Bytes(value));
    }
}

/// The variables that a page has set.
#[derive(Debug, Default)]
struct Values {
    all: BTreeMap<Box<[u8]>, Vec<u8>>,
    /// The pieces of those values that a client has a part in.
    words: BTreeMap<Box<[u8]>, Vec<Word>>,
}

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
