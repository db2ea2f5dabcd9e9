//! The syntax tree: what the parser makes of the sources, in their order, includes resolved.
//!
//! Nothing is checked here but the grammar. Names are as they stand in the source.

use crate::source::SourceSpan;

/// A program: `vcl 4.1;` and its declarations.
#[derive(Clone, Debug)]
pub struct Ast {
    /// 40 or 41: that of the first file; included files may say the same or a lower one, which
    /// changes nothing.
    pub version: u32,
    /// The declarations, those of included files in place of the `include`.
    pub items: Vec<Declaration>,
}

/// A name and where it stands. May have dots (`directors.round_robin`, `req.http.host`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name. Of a quoted header (`req.http."a.b"`) without the quotes: only then a name that
    /// begins with `req.http.` has more dots.
    pub text: Box<str>,
    /// Where.
    pub span: SourceSpan,
}

/// A declaration.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// `import std;`, `import std from "path";`, `import std as s;`
    Import {
        /// The module.
        module: Name,
        /// The name it goes by here.
        alias: Option<Name>,
        /// `from`, which is read and not used: VMODs are built in.
        from: Option<(Box<str>, SourceSpan)>,
    },
    /// `acl name { ... }`
    Acl(AclDeclaration),
    /// `backend name { ... }`, `backend name none;`; `default` is the first unless one is so named.
    Backend {
        /// Its name.
        name: Name,
        /// Its attributes; none for `none`.
        fields: Option<Vec<Field>>,
    },
    /// `probe name { ... }`
    Probe {
        /// Its name.
        name: Name,
        /// Its attributes.
        fields: Vec<Field>,
    },
    /// `unused name;`: it may be declared and not used.
    Unused(Name),
    /// `sub name { ... }`
    Sub {
        /// Its name.
        name: Name,
        /// Its statements.
        body: StatementBlock,
    },
}

/// An access list.
#[derive(Clone, Debug)]
pub struct AclDeclaration {
    /// Its name.
    pub name: Name,
    /// `+log`, `-table`, `+pedantic`, `+fold(-report)`.
    pub flags: Vec<AclFlag>,
    /// Its entries in order.
    pub entries: Vec<AclEntry>,
}

/// A flag of an access list.
#[derive(Clone, Debug)]
pub struct AclFlag {
    /// Its sign is `+`.
    pub is_on: bool,
    /// Its name.
    pub name: Name,
    /// The flags in parentheses behind it: `+fold(-report)`.
    pub inner: Vec<Self>,
}

/// An entry of an access list: `! "192.168.0.0"/16;`, `("host"/24);`
#[derive(Clone, Debug)]
pub struct AclEntry {
    /// The entry excludes its addresses.
    pub negated: bool,
    /// The entry stands in parentheses. A name that is not found is then no error.
    pub optional: bool,
    /// Address or host name.
    pub host: (Box<str>, SourceSpan),
    /// The mask's bits, as written.
    pub mask: Option<(u32, SourceSpan)>,
    /// The whole entry.
    pub span: SourceSpan,
}

/// `.name = value;` of a backend or probe.
#[derive(Clone, Debug)]
pub struct Field {
    /// Without its dot.
    pub name: Name,
    /// Its value.
    pub value: FieldValue,
}

/// The value of a backend's or probe's attribute.
#[derive(Clone, Debug)]
pub enum FieldValue {
    /// An expression: for most attributes a constant.
    Expr(Expr),
    /// Several strings one after the other, as `.request` has them.
    Strings(Vec<(Box<[u8]>, SourceSpan)>),
    /// `.probe = { ... }`
    Probe(Vec<Field>, SourceSpan),
}

/// `{ ... }`
#[derive(Clone, Debug)]
pub struct StatementBlock {
    /// Its statements.
    pub statements: Vec<Statement>,
    /// From brace to brace.
    pub span: SourceSpan,
}

/// A statement and where it stands.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind.
    pub kind: StatementKind,
    /// From its first word to its last.
    pub span: SourceSpan,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `{ ... }` on its own.
    Block(StatementBlock),
    /// `if (...) {...} elsif (...) {...} else {...}`
    If {
        /// Conditions and what follows them, in order.
        arms: Vec<Conditional>,
        /// The `else`.
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
    /// A function for its effect: `hash_data(...)`, `ban(...)`, `synthetic(...)`,
    /// `std.log(...)`, `object.method(...)`.
    Action(CallExpr),
    /// A word that begins no statement and calls nothing: `error 404;` and others of VCL 3 come
    /// here by name so that the checker can say what replaces them. What followed is skipped.
    Unknown(Name),
}

/// A condition of an `if`, and the statements that run if it is the first that holds.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// The condition.
    pub condition: Expr,
    /// The statements.
    pub block: StatementBlock,
}

/// The contents of the parentheses of a `return`.
#[derive(Clone, Debug)]
pub struct Return {
    /// The verb; checked by the checker.
    pub verb: Name,
    /// `synth(404, "x")`: its arguments; empty without parentheses.
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

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Where.
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
    /// `2m`: minutes, or where BYTES are wanted megabytes.
    Minutes(f64),
    /// `10MB`, in bytes. VCL 4.x knows B, KB, MB, GB, TB.
    Bytes(i64),
    /// `-x`
    Negative(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// A variable, a backend, an ACL, a word of an enumeration, `true`, `now`: whatever a bare name
    /// is.
    Name(Name),
    /// A call.
    Call(CallExpr),
    /// `:SGVsbG8=:`, decoded.
    Blob(Box<[u8]>),
    /// A method of whatever stands before the dot, which is not a bare name: `"X".lower()`,
    /// `(a + b).upper()`, `regsub(a, b, c).lower()`. After a name it is a [`Self::Call`] whose name
    /// has the method as its last part.
    Method {
        /// The expression before the dot.
        object: Box<Expr>,
        /// The method, its name without a dot, and its arguments.
        call: CallExpr,
    },
    /// Two operands and what is between them. Long rows of `||` and `&&` come as balanced trees,
    /// those of other operators as lists to the left of at most
    /// [`MAX_OPERATORS`](crate::parse::MAX_OPERATORS) operators.
    Binary {
        /// Left.
        left: Box<Expr>,
        /// Between.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: SourceSpan,
        /// Right.
        right: Box<Expr>,
    },
    /// `(x)`
    Parens(Box<Expr>),
}

/// Operators between two operands.
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
    /// The whole call.
    pub span: SourceSpan,
}

/// An argument: `value` or `name = value`.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name, when given.
    pub name: Option<Name>,
    /// Its value.
    pub value: Expr,
}
