//! State that a running subroutine sees and changes: messages and session of its task, the program
//! with backends and objects, values, and the environment. It never depends on parsing, compiling,
//! execution, variables or VMODs, which are layers above.

pub mod backend;
pub mod ctx;
pub(crate) mod environment;
pub mod program;
pub mod value;
