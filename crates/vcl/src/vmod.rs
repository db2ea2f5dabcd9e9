//! VMODs: modules of functions and classes, each one file with a table of signatures.
//!
//! The checker reads the tables, the reference page is made from them, and calls go straight to
//! the functions they name.

use std::sync::Arc;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;

pub use crate::shared::VmodState;

/// A module.
#[derive(Debug)]
pub struct Module {
    /// Its name in `import`.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
    /// Its classes.
    pub classes: &'static [Class],
    /// Functions and methods that Varnish's module has and this one cannot have.
    pub refused: &'static [UnsupportedFunction],
}

/// Something that a module of Varnish has and ours has not.
#[derive(Debug)]
pub struct UnsupportedFunction {
    /// A function, or a method behind its class and a point.
    pub name: &'static str,
    /// Why it is refused: an end of the sentence that begins with the name.
    pub why: &'static str,
}

/// A function of a module.
#[derive(Debug)]
pub struct Function {
    /// Its name, without the module's.
    pub name: &'static str,
    /// Its description, with units and failures.
    pub about: &'static str,
    /// The type of its result.
    pub returns: Type,
    /// Its parameters.
    pub params: &'static [Parameter],
    /// Where it may be called.
    pub from: Subs,
    /// The function.
    pub call: Call,
}

/// A function: its arguments come in the order of the parameters, one for each; [`Value::Void`]
/// for an optional one that was not given.
pub type Call = fn(&mut Ctx<'_>, &[Value]) -> Result<Value, ProgramFailure>;

/// A method: the same with the object.
pub type MethodCall = fn(&mut Ctx<'_>, &Arc<dyn Object>, &[Value]) -> Result<Value, ProgramFailure>;

/// Makes an object in `vcl_init`.
pub type ObjectConstructor =
    fn(&mut Ctx<'_>, &ObjectIdentity<'_>, &[Value]) -> Result<Arc<dyn Object>, ProgramFailure>;

/// The name and number of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectIdentity<'a> {
    /// Its name in the program.
    pub name: &'a str,
    /// Its number in the program.
    pub number: u32,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ArgumentType,
    /// Its value when it is not given. A parameter without a default must be given.
    pub default: Option<ParameterDefault>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentType {
    /// A value of this type.
    Of(Type),
    /// One of these words.
    Enum(&'static [&'static str]),
    /// A parameter of Varnish's function that ours refuses, for this reason: a sentence. A BOOL may
    /// be said to be `false`.
    Refused(Type, &'static str),
}

/// The value of a parameter that is not given.
#[derive(Clone, Copy, Debug)]
pub enum ParameterDefault {
    /// [`Value::Void`]: the function sees that it was not given.
    Absent,
    /// This string.
    Str(&'static str),
    /// This number, of whatever type the parameter has.
    Number(f64),
    /// This truth.
    Bool(bool),
    /// This word.
    Word(&'static str),
}

/// A class.
#[derive(Debug)]
pub struct Class {
    /// Its name, without the module's.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Parameters of `new`.
    pub params: &'static [Parameter],
    /// Makes one.
    pub construct: ObjectConstructor,
    /// Its methods.
    pub methods: &'static [Method],
}

/// A method of a class.
#[derive(Debug)]
pub struct Method {
    /// Its name, without the object's.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// The type of its result.
    pub returns: Type,
    /// Its parameters.
    pub params: &'static [Parameter],
    /// Where it may be called.
    pub from: Subs,
    /// The method.
    pub call: MethodCall,
}
