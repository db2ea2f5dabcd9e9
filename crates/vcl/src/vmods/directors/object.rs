//! Directors as VMOD objects, for their methods and for listings.

use std::any::Any;
use std::sync::Arc;

use crate::failure::ProgramFailure;
use crate::state::backend::{Backend, Director};
use crate::state::program::Object;

/// A director as an object of the program.
pub(super) struct DirectorObject<D>(pub(super) Arc<D>);

impl<D: Director + 'static> Object for DirectorObject<D> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend::Director(self.0.clone()))
    }
}

/// The director of `object`.
pub(super) fn director<D: Director + 'static>(
    object: &Arc<dyn Object>,
) -> Result<&Arc<D>, ProgramFailure> {
    let handle = object.as_any().downcast_ref::<DirectorObject<D>>();
    handle.map(|handle| &handle.0).ok_or_else(|| ProgramFailure::new("a director of another class"))
}
