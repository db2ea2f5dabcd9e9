//! VMOD interface: modules of functions and classes, each with a table of signatures. The checker
//! and the reference page read the tables; a call never looks a name up at run time.

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
    /// Name of the module in `import`.
    pub name: &'static str,
    /// Purpose of the module.
    pub about: &'static str,
    /// Functions of the module.
    pub functions: &'static [Function],
    /// Classes of the module.
    pub classes: &'static [Class],
    /// Functions and methods of Varnish's module that Larder does not support.
    pub refused: &'static [UnsupportedFunction],
}

/// A function of Varnish's module that Larder does not support.
#[derive(Debug)]
pub struct UnsupportedFunction {
    /// Name of the function, or `class.method`.
    pub name: &'static str,
    /// The reason: the rest of a sentence that begins with the name.
    pub why: &'static str,
}

/// A function of a module.
#[derive(Debug)]
pub struct Function {
    /// Name of the function, without the module's.
    pub name: &'static str,
    /// Description, with units and failures.
    pub about: &'static str,
    /// Type of the result.
    pub returns: Type,
    /// Parameters of the function.
    pub params: &'static [Parameter],
    /// Subroutines that may call the function.
    pub from: Subs,
    /// The function.
    pub call: Call,
}

/// A function's code. There is one argument for each parameter, in order; [`Value::Void`] for an
/// optional one that was not given.
pub type Call = fn(&mut Ctx<'_>, &[Value]) -> Result<Value, ProgramFailure>;

/// A method's code: like [`Call`], with the object.
pub type MethodCall = fn(&mut Ctx<'_>, &Arc<dyn Object>, &[Value]) -> Result<Value, ProgramFailure>;

/// Makes an object in `vcl_init`.
pub type ObjectConstructor =
    fn(&mut Ctx<'_>, &ObjectIdentity<'_>, &[Value]) -> Result<Arc<dyn Object>, ProgramFailure>;

/// The name and number of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectIdentity<'a> {
    /// Name of the object in the program.
    pub name: &'a str,
    /// Number of the object in the program.
    pub number: u32,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Type of the parameter.
    pub kind: ArgumentType,
    /// The default; `None` if the parameter is required.
    pub default: Option<ParameterDefault>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentType {
    /// A value of this type.
    Of(Type),
    /// One of these values.
    Enum(&'static [&'static str]),
    /// A parameter of Varnish's function that Larder does not support, with the reason as a
    /// sentence. A BOOL may still be given as `false`.
    Refused(Type, &'static str),
}

/// Default of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParameterDefault {
    /// [`Value::Void`]: the function sees that the argument was not given.
    Absent,
    /// This string.
    Str(&'static str),
    /// This number, of the parameter's type.
    Number(f64),
    /// This BOOL.
    Bool(bool),
    /// This value of an enumeration.
    Enum(&'static str),
}

/// A class.
#[derive(Debug)]
pub struct Class {
    /// Name of the class, without the module's.
    pub name: &'static str,
    /// Purpose of the class.
    pub about: &'static str,
    /// Parameters of `new`.
    pub params: &'static [Parameter],
    /// Constructor.
    pub construct: ObjectConstructor,
    /// Methods of the class.
    pub methods: &'static [Method],
}

/// A method of a class.
#[derive(Debug)]
pub struct Method {
    /// Name of the method, without the object's.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Type of the result.
    pub returns: Type,
    /// Parameters of the method.
    pub params: &'static [Parameter],
    /// Subroutines that may call the method.
    pub from: Subs,
    /// The method.
    pub call: MethodCall,
}
