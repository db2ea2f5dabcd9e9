//! VMOD `querysort`: sorts the parameters of a URL as `std.querysort` does.

use bytes::Bytes;

use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, required_parameter};
use crate::vmods::std::query;

/// The module.
pub static MODULE: Module = Module {
    name: "querysort",
    about: "Sorts the query parameters of a URL. Same as `std.querysort`, which needs no import of \
            this module.",
    functions: &[Function {
        name: "sort",
        about: "The URL with its query parameters sorted by bytes, without empty ones.",
        returns: Type::String,
        params: &[required_parameter("url", Type::String)],
        from: Subs::ALL,
        call: |_, args| {
            let sorted = |url: &Bytes| query::sorted(url).map_or_else(|| url.clone(), Bytes::from);
            Ok(Value::String(args.string(0).map(sorted)))
        },
    }],
    classes: &[],
    refused: &[],
};
