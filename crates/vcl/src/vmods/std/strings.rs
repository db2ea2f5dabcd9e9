//! String functions of `std`, and functions on headers.

use base::fnmatch::{Options, fnmatch};
use bytes::Bytes;
use message::HeaderBlock;

use super::query;
use crate::failure::ProgramFailure;
use crate::headers;
use crate::state::ctx::Ctx;
use crate::state::value::{Header, Value, VclMessage};
use crate::text::calendar;
use crate::vmods::args::{Args, owned};

pub(super) fn toupper(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(args.bytes(0).to_ascii_uppercase()))
}

pub(super) fn tolower(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(args.bytes(0).to_ascii_lowercase()))
}

pub(super) fn querysort(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    // Copying a short string costs less than sharing it.
    let sorted = |url: &Bytes| query::sorted(url).unwrap_or_else(|| url.to_vec());
    Ok(Value::String(args.string(0).map(|url| sorted(url).into())))
}

pub(super) fn strstr(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (Some(text), Some(part)) = (args.string(0), args.string(1)) else {
        return Ok(Value::String(None));
    };
    Ok(Value::String(memchr::memmem::find(text, part).map(|at| text.slice(at..))))
}

pub(super) fn matches(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let none = |what| ProgramFailure::new(format!("std.fnmatch(): {what} is NULL"));
    let pattern = args.string(0).ok_or_else(|| none("pattern"))?;
    let subject = args.string(1).ok_or_else(|| none("subject"))?;
    let options = Options {
        pathname: args.truth(2).unwrap_or(true),
        noescape: args.truth(3).unwrap_or(false),
        period: args.truth(4).unwrap_or(false),
    };
    Ok(Value::Bool(fnmatch(pattern, subject, options)))
}

pub(super) fn strftime(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(calendar::strftime(args.real(0).unwrap_or_default(), args.bytes(1))))
}

pub(super) fn collect(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(header) = args.header(0) else { return Ok(Value::Void) };
    if matches!(header.message, VclMessage::Obj | VclMessage::ReqTop) {
        return Err(ProgramFailure::new("std.collect(): header argument is immutable"));
    }
    let joined = headers::block(ctx, header.message).and_then(|block| {
        let sep = args.bytes(1);
        let values: Vec<&[u8]> = values(block, header).collect();
        (values.len() > 1).then(|| values.join(sep))
    });
    if let Some(joined) = joined {
        headers::set(ctx, header, &joined)?;
    }
    Ok(Value::Void)
}

fn values<'b>(block: &'b HeaderBlock, header: &'b Header) -> impl Iterator<Item = &'b [u8]> {
    block.values_named(header.name.as_bytes())
}
