//! Strings, evaluated: borrowed where possible, otherwise built in a buffer of the task.

use std::borrow::Cow;

use bytes::Bytes;

use super::string_conversion;
use crate::failure::ProgramFailure;
use crate::headers;
use crate::run::{Regsub, StringTerm};
use crate::state::ctx::Ctx;
use crate::state::value::Value;

impl StringTerm {
    /// The string, if it can be borrowed.
    #[inline]
    pub(super) fn peek<'c>(&'c self, ctx: &'c Ctx<'_>) -> Option<Option<&'c [u8]>> {
        match self {
            Self::Const(bytes) => Some(Some(bytes)),
            Self::Header(header) => Some(headers::get(ctx, header)),
            Self::Borrowed(borrow) => Some(borrow(ctx)),
            _ => None,
        }
    }

    /// Passes the string to `then`; `None` if absent.
    #[inline]
    pub(super) fn with<R>(
        &self,
        ctx: &mut Ctx<'_>,
        then: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, ProgramFailure> {
        if let Some(lies) = self.peek(ctx) {
            return Ok(then(lies));
        }
        self.with_scratch(ctx, |_, is_some, bytes| then(is_some.then_some(bytes)))
    }

    /// Passes the string to `then` with the context, which `then` may change.
    pub(super) fn with_ctx<'a, R>(
        &self,
        ctx: &mut Ctx<'a>,
        then: impl FnOnce(&mut Ctx<'a>, &[u8]) -> R,
    ) -> Result<R, ProgramFailure> {
        if let Self::Const(bytes) = self {
            return Ok(then(ctx, bytes));
        }
        self.with_scratch(ctx, |ctx, _, bytes| then(ctx, bytes))
    }

    /// Like [`Self::with_ctx`], with a copy in one of the task's buffers.
    #[inline(never)]
    fn with_scratch<'a, R>(
        &self,
        ctx: &mut Ctx<'a>,
        then: impl FnOnce(&mut Ctx<'a>, bool, &[u8]) -> R,
    ) -> Result<R, ProgramFailure> {
        let mut buffer = ctx.task.take_buffer();
        let result = match self.append(ctx, &mut buffer) {
            Ok(is_some) => Ok(then(ctx, is_some, &buffer)),
            Err(failure) => Err(failure),
        };
        ctx.task.give_buffer(buffer);
        result
    }

    /// Appends the string. Returns false if it is absent.
    pub(super) fn append(
        &self,
        ctx: &mut Ctx<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ProgramFailure> {
        match self {
            Self::Const(bytes) => out.extend_from_slice(bytes),
            Self::Header(header) => return Ok(append(headers::get(ctx, header), out)),
            Self::Borrowed(borrow) => return Ok(append(borrow(ctx), out)),
            Self::Join(parts) => {
                for part in parts {
                    part.append(ctx, out)?;
                }
            }
            Self::Regsub(regsub) => regsub.append(ctx, out)?,
            Self::Lower(inner) | Self::Upper(inner) => {
                let start = out.len();
                inner.append(ctx, out)?;
                match self {
                    Self::Lower(_) => out[start..].make_ascii_lowercase(),
                    _ => out[start..].make_ascii_uppercase(),
                }
                // In Varnish an empty result becomes an absent string.
                return Ok(out.len() > start);
            }
            Self::Shown(expr) => {
                let value = expr.eval(ctx)?;
                string_conversion::append(ctx, &value, out)?;
                return Ok(!string_conversion::is_none(ctx, &value));
            }
            Self::OrNull(inner) => {
                if !inner.append(ctx, out)? {
                    out.extend_from_slice(b"(null)");
                }
            }
        }
        Ok(true)
    }

    /// The string as an owned value.
    pub(super) fn bytes(&self, ctx: &mut Ctx<'_>) -> Result<Option<Bytes>, ProgramFailure> {
        if let Self::Const(bytes) = self {
            return Ok(Some(bytes.clone()));
        }
        if let Self::Shown(expr) = self {
            let value = expr.eval(ctx)?;
            if let Value::String(bytes) = value {
                return Ok(bytes);
            }
            let mut out = Vec::new();
            string_conversion::append(ctx, &value, &mut out)?;
            return Ok((!string_conversion::is_none(ctx, &value)).then(|| out.into()));
        }
        if let Some(lies) = self.peek(ctx) {
            ctx.task.workspace.charge(lies.map_or(0, <[u8]>::len))?;
            return Ok(lies.map(Bytes::copy_from_slice));
        }
        self.with_scratch(ctx, |ctx, is_some, bytes| {
            ctx.task.workspace.charge(bytes.len())?;
            Ok(is_some.then(|| Bytes::copy_from_slice(bytes)))
        })?
    }
}

impl Regsub {
    /// The result, if subject and replacement can be borrowed. Without a match it borrows the
    /// subject.
    pub(super) fn peek<'c>(
        &'c self,
        ctx: &'c Ctx<'_>,
    ) -> Option<Result<Cow<'c, [u8]>, ProgramFailure>> {
        let (subject, replacement) = self.subject.peek(ctx).zip(self.replacement.peek(ctx))?;
        let (subject, replacement) = (subject.unwrap_or_default(), replacement.unwrap_or_default());
        Some(self.regex.replace(subject, replacement, self.all, &ctx.task.workspace))
    }

    fn append(&self, ctx: &mut Ctx<'_>, out: &mut Vec<u8>) -> Result<(), ProgramFailure> {
        if let Some(replaced) = self.peek(ctx) {
            out.extend_from_slice(&replaced?);
            return Ok(());
        }
        let mut subject = ctx.task.take_buffer();
        let mut replacement = ctx.task.take_buffer();
        let made = self.subject.append(ctx, &mut subject);
        let made = made.and_then(|_| self.replacement.append(ctx, &mut replacement));
        let made = made.and_then(|_| {
            let room = &ctx.task.workspace;
            let replaced = self.regex.replace(&subject, &replacement, self.all, room)?;
            out.extend_from_slice(&replaced);
            Ok(())
        });
        ctx.task.give_buffer(subject);
        ctx.task.give_buffer(replacement);
        made
    }
}

fn append(bytes: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(bytes.unwrap_or_default());
    bytes.is_some()
}
