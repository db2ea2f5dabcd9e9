//! `directors`: backends that choose among others.
//!
//! Each class is a director of its own kind; all but `shard` keep their backends in the same sort
//! of list. A director is asked at the end of `vcl_backend_fetch`, and may be asked again. What it
//! chooses for one fetch follows Varnish's, bit by bit where that can be observed: the same key
//! leads to the same backend on both.

mod list;
mod param;
mod ring;
mod shard;
mod simple;

use std::any::Any;
use std::sync::Arc;

use crate::backend::{Backend, Director};
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Function, Module, Object};
use crate::vmods::args::{Args, must};

/// The module.
pub static MODULE: Module = Module {
    name: "directors",
    about: "Backends that choose among others. Directors can be backends of directors.",
    functions: FUNCTIONS,
    classes: &[
        simple::ROUND_ROBIN,
        simple::FALLBACK,
        simple::RANDOM,
        simple::HASH,
        shard::CLASS,
        param::CLASS,
    ],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[Function {
    name: "lookup",
    about: "The backend or director of this name; none when there is none.",
    returns: Type::Backend,
    params: &[must("", Type::String)],
    from: Subs::HOUSEKEEPING,
    call: |ctx, args| {
        let name = args.bytes(0);
        let mut all = ctx.instance.backends().into_iter();
        let found = all.find(|backend| backend.name().as_bytes() == name);
        Ok(Value::Backend(found.unwrap_or_default()))
    },
}];

/// A director as an object of the program.
struct DirectorObject<D>(Arc<D>);

impl<D: Director + 'static> Object for DirectorObject<D> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend::Director(self.0.clone()))
    }
}

/// The director that `object` is.
fn director<D: Director + 'static>(object: &Arc<dyn Object>) -> Result<&Arc<D>, Failure> {
    let handle = object.as_any().downcast_ref::<DirectorObject<D>>();
    handle.map(|handle| &handle.0).ok_or_else(|| Failure::new("a director of another class"))
}

/// Directors within each other, at most. Varnish knows no such limit, and asking one that contains
/// itself ends it.
const DEPTH_MAX: usize = 32;

/// Checks that `backend` can be a member of the director `owner`.
///
/// # Errors
/// The backend is `none`, or leads back to the owner.
fn check_member(owner: &dyn Director, backend: &Backend) -> Result<(), Failure> {
    let refuse = |why| Err(Failure::new(format!("{}: {why}", owner.name())));
    match backend {
        Backend::None => refuse("None backend cannot be added"),
        Backend::Leaf(_) => Ok(()),
        Backend::Director(member) if leads_to(&**member, owner, DEPTH_MAX) => {
            refuse("a director cannot be among its own backends")
        }
        Backend::Director(_) => Ok(()),
    }
}

/// Returns true if asking `from` may lead to `to`, or to more than `depth` directors within each
/// other.
fn leads_to(from: &dyn Director, to: &dyn Director, depth: usize) -> bool {
    if std::ptr::addr_eq(from, to) || depth == 0 {
        return true;
    }
    from.members().iter().any(|member| match member {
        Backend::Director(director) => leads_to(&**director, to, depth - 1),
        _ => false,
    })
}

/// Tells whether one of `members` is healthy, and when the health of the members up to that one
/// changed last, as Varnish tells it.
fn health_of<'a>(members: impl IntoIterator<Item = &'a Backend>) -> (bool, f64) {
    let mut last = 0.0_f64;
    for member in members {
        let (is_healthy, changed) = member.health();
        last = last.max(changed);
        if is_healthy {
            return (true, last);
        }
    }
    (false, last)
}

#[cfg(test)]
mod tests;
