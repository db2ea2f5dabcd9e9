//! Signatures that functions, `regex` and `set` share.

use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Method, MethodCall, Parameter};
use crate::vmods::args::{number, refused, required_parameter, truth};

const SYNTAX: &str = "Patterns are read in RE2's own syntax.";
const LONGEST: &str = "Of several alternatives the first that matches counts, as is RE2's default.";
const NEWLINES: &str = "A newline in a pattern matches one.";

pub(super) const UTF8: Parameter = truth("utf8", false);
pub(super) const POSIX_SYNTAX: Parameter = refused("posix_syntax", Type::Bool, SYNTAX);
pub(super) const LONGEST_MATCH: Parameter = refused("longest_match", Type::Bool, LONGEST);
pub(super) const MAX_MEM: Parameter = number("max_mem", Type::Int, 8_388_608.0);
pub(super) const LITERAL: Parameter = truth("literal", false);
pub(super) const NEVER_NL: Parameter = refused("never_nl", Type::Bool, NEWLINES);
pub(super) const DOT_NL: Parameter = truth("dot_nl", false);
pub(super) const NEVER_CAPTURE: Parameter = truth("never_capture", false);
pub(super) const CASE_SENSITIVE: Parameter = truth("case_sensitive", true);
pub(super) const PERL_CLASSES: Parameter = truth("perl_classes", false);
pub(super) const WORD_BOUNDARY: Parameter = truth("word_boundary", false);
pub(super) const ONE_LINE: Parameter = truth("one_line", false);

pub(super) const TEXT: Parameter = required_parameter("text", Type::String);
pub(super) const REWRITE: Parameter = required_parameter("rewrite", Type::String);
/// A method that all subroutines may call.
pub(super) const fn method(
    name: &'static str,
    about: &'static str,
    returns: Type,
    params: &'static [Parameter],
    call: MethodCall,
) -> Method {
    Method { name, about, returns, params, from: Subs::ALL, call }
}
