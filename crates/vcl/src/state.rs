//! The state that a running subroutine sees and works on: the messages and the session of its task,
//! the program with its backends and objects, the values of its expressions, and the world outside.
//!
//! Nothing here knows how a program is read and compiled, how it runs, or which variables and VMODs
//! there are: all that stands above.

pub mod backend;
pub mod ctx;
pub(crate) mod environment;
pub mod program;
pub mod value;
