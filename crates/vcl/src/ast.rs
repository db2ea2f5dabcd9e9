//! Syntax tree of a program: declarations of all files in order, with includes resolved. Only the
//! grammar is checked here, never names or types.

use crate::source::SourceSpan;

/// A program: `vcl 4.1;` and its declarations.
#[derive(Clone, Debug)]
pub struct Ast {
    /// Version of the first file, 40 or 41. Included files may name this version or a lower one,
    /// without effect.
    pub version: u32,
    /// Declarations; those of an included file stand in place of its `include`.
    pub items: Vec<Declaration>,
}

/// A name with its position. It may have dots (`directors.round_robin`, `req.http.host`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name. A quoted header (`req.http."a.b"`) is stored without quotes; no other name that
    /// begins with `req.http.` has more dots.
    pub text: Box<str>,
    /// Position in the sources.
    pub span: SourceSpan,
}

/// A declaration.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// `import std;`, `import std from "path";`, `import std as s;`
    Import {
        /// The module.
        module: Name,
        /// Name by which the program calls the module.
        alias: Option<Name>,
        /// The path of `from`, which is ignored: VMODs are built in.
        from: Option<(Box<str>, SourceSpan)>,
    },
    /// `acl name { ... }`
    Acl(AclDeclaration),
    /// `backend name { ... }`, `backend name none;`. The first backend is the default, unless one
    /// is named `default`.
    Backend {
        /// Name as written.
        name: Name,
        /// The attributes; `None` for `backend name none;`.
        fields: Option<Vec<Field>>,
    },
    /// `probe name { ... }`
    Probe {
        /// Name as written.
        name: Name,
        /// The attributes.
        fields: Vec<Field>,
    },
    /// `unused name;`: the declaration may stay unused.
    Unused(Name),
    /// `sub name { ... }`
    Sub {
        /// Name as written.
        name: Name,
        /// The statements.
        body: StatementBlock,
    },
}

/// An access list.
#[derive(Clone, Debug)]
pub struct AclDeclaration {
    /// Name as written.
    pub name: Name,
    /// `+log`, `-table`, `+pedantic`, `+fold(-report)`.
    pub flags: Vec<AclFlag>,
    /// The entries in order.
    pub entries: Vec<AclEntry>,
}

/// A flag of an access list.
#[derive(Clone, Debug)]
pub struct AclFlag {
    /// True for `+`.
    pub is_on: bool,
    /// Name as written.
    pub name: Name,
    /// Flags in parentheses behind the flag: `+fold(-report)`.
    pub inner: Vec<Self>,
}

/// An entry of an access list: `! "192.168.0.0"/16;`, `("host"/24);`
#[derive(Clone, Debug)]
pub struct AclEntry {
    /// True if the entry excludes its addresses.
    pub negated: bool,
    /// True for an entry in parentheses: an unknown host name is then no error.
    pub optional: bool,
    /// Address or host name.
    pub host: (Box<str>, SourceSpan),
    /// Length of the mask in bits, as written.
    pub mask: Option<(u32, SourceSpan)>,
    /// Position of the whole entry.
    pub span: SourceSpan,
}

/// `.name = value;` of a backend or probe.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name of the attribute, without its dot.
    pub name: Name,
    /// The value.
    pub value: FieldValue,
}

/// The value of a backend's or probe's attribute.
#[derive(Clone, Debug)]
pub enum FieldValue {
    /// An expression: for most attributes a constant.
    Expr(Expr),
    /// Several strings in a row, as in `.request`.
    Strings(Vec<(Box<[u8]>, SourceSpan)>),
    /// `.probe = { ... }`
    Probe(Vec<Field>, SourceSpan),
}

/// `{ ... }`
#[derive(Clone, Debug)]
pub struct StatementBlock {
    /// The statements.
    pub statements: Vec<Statement>,
    /// Position, from brace to brace.
    pub span: SourceSpan,
}

/// A statement with its position.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The kind.
    pub kind: StatementKind,
    /// Position of the whole statement.
    pub span: SourceSpan,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `{ ... }` on its own.
    Block(StatementBlock),
    /// `if (...) {...} elsif (...) {...} else {...}`
    If {
        /// Conditions with their blocks, in order.
        arms: Vec<Conditional>,
        /// The block of `else`.
        otherwise: Option<StatementBlock>,
    },
    /// `set target = value;`, also `+=`, `-=`, `*=`, `/=`.
    Set {
        /// The variable or header that is set.
        target: Name,
        /// The operator.
        op: SetOp,
        /// The value.
        value: Expr,
    },
    /// `unset target;`
    Unset(Name),
    /// `call name;`
    Call(Name),
    /// `return;`, `return (verb);`, `return (verb(arguments));`
    Return(Option<Return>),
    /// `new name = class(arguments);`
    New {
        /// The object's name.
        name: Name,
        /// `module.class`
        class: Name,
        /// The arguments.
        arguments: Vec<Argument>,
    },
    /// `unused name;`
    Unused(Name),
    /// A call as a statement: `hash_data(...)`, `ban(...)`, `synthetic(...)`, `std.log(...)`,
    /// `object.method(...)`.
    Action(CallExpr),
    /// An unknown statement, such as `error 404;` of VCL 3: only its first name, for the checker's
    /// advice. The rest was skipped.
    Unknown(Name),
}

/// One arm of an `if`: a condition and its block.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// The condition.
    pub condition: Expr,
    /// The statements.
    pub block: StatementBlock,
}

/// The verb of a `return` with its arguments.
#[derive(Clone, Debug)]
pub struct Return {
    /// The verb, not yet checked.
    pub verb: Name,
    /// Arguments of the verb (`synth(404, "x")`); empty without parentheses.
    pub arguments: Vec<Expr>,
}

/// The operator of a `set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// `=`
    Assign,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
}

/// An expression with its position.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// Position in the sources.
    pub span: SourceSpan,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A string, without its quotes.
    String(Box<[u8]>),
    /// `12`
    Int(i64),
    /// `1.5`
    Real(f64),
    /// `2.5h`, in seconds.
    Duration(f64),
    /// `2m`: minutes; megabytes where BYTES are expected.
    Minutes(f64),
    /// `10MB`, in bytes. VCL 4.x knows B, KB, MB, GB, TB.
    Bytes(i64),
    /// `-x`
    Negative(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// A bare name: a variable, a backend, an ACL, a value of an enumeration, `true`, `now`.
    Name(Name),
    /// A call.
    Call(CallExpr),
    /// `:SGVsbG8=:`, decoded.
    Blob(Box<[u8]>),
    /// A method of an expression that is no bare name: `"X".lower()`, `(a + b).upper()`, `regsub(a,
    /// b, c).lower()`. With a bare name it is a [`Self::Call`] whose name ends with the method.
    Method {
        /// The expression before the dot.
        object: Box<Expr>,
        /// The method with its arguments; its name has no dot.
        call: CallExpr,
    },
    /// Two operands of an operator. Chains of `||` and `&&` are balanced trees; chains of other
    /// operators lean to the left, with at most [`MAX_OPERATORS`](crate::parse::MAX_OPERATORS)
    /// operators.
    Binary {
        /// Left operand.
        left: Box<Expr>,
        /// Operator.
        op: BinaryOp,
        /// Position of the operator.
        op_span: SourceSpan,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `(x)`
    Parens(Box<Expr>),
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `~`
    Match,
    /// `!~`
    NoMatch,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// A call of a function or method.
#[derive(Clone, Debug)]
pub struct CallExpr {
    /// `std.tolower`, `regsub`, `object.method`
    pub name: Name,
    /// The arguments in order.
    pub arguments: Vec<Argument>,
    /// Position of the whole call.
    pub span: SourceSpan,
}

/// An argument: `value` or `name = value`.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Name of the parameter, if given.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}
