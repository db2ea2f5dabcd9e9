//! Include of Varnish's dialect: its attributes, and the fragment that they name.

use crate::address::AddressRules;
use crate::attribute::{decoded, is_space};
use crate::fragment::{Fragment, Include, OnError};
use crate::remark::RemarkKind;

use super::rules::VarnishRules;

/// Attributes of an include that were read so far.
#[derive(Debug, Default)]
pub(super) struct IncludeAttributes {
    value: Option<Vec<u8>>,
    is_continue: bool,
}

impl IncludeAttributes {
    /// Takes an attribute with a value.
    pub(super) fn take(
        &mut self,
        name: &[u8],
        value: &[u8],
        rules: VarnishRules,
    ) -> Result<(), RemarkKind> {
        match name {
            b"onerror" if rules.include_onerror => self.is_continue = value == b"continue",
            b"src" if self.value.is_some() => return Err(RemarkKind::TwoSrc),
            b"src" if value.iter().any(|byte| is_space(*byte)) => {
                return Err(RemarkKind::SpaceInSrc);
            }
            b"src" => {
                // In Varnish, a string ends with a NUL.
                let end = memchr::memchr(0, value).unwrap_or(value.len());
                self.value = Some(value[..end].to_vec());
            }
            _ => {}
        }
        Ok(())
    }

    /// The include, if its address is valid.
    pub(super) fn include(
        &mut self,
        rules: VarnishRules,
        mut remark: impl FnMut(RemarkKind),
    ) -> Option<Include> {
        let Some(value) = self.value.take() else {
            remark(RemarkKind::NoSrc);
            return None;
        };
        let src = match address(&value, rules, &mut remark) {
            Ok(src) => src,
            Err(kind) => {
                remark(kind);
                return None;
            }
        };
        let onerror = match (rules.include_onerror, self.is_continue) {
            (false, _) => OnError::Unsaid,
            (true, true) => OnError::Continue,
            (true, false) => OnError::Fail,
        };
        let rules = AddressRules::Varnish;
        Some(Include::fixed(Fragment { src, onerror, rules, ..Fragment::default() }))
    }
}

/// The fragment's address. References are decoded in its path, but not in its host.
fn address(
    value: &[u8],
    rules: VarnishRules,
    remark: &mut impl FnMut(RemarkKind),
) -> Result<Vec<u8>, RemarkKind> {
    let rest = match (value.strip_prefix(b"http://"), value.strip_prefix(b"https://")) {
        (Some(rest @ [_, ..]), _) => rest,
        (_, Some(rest @ [_, ..])) if rules.ignore_https => {
            remark(RemarkKind::HttpsAsHttp);
            rest
        }
        (_, Some([_, ..])) => return Err(RemarkKind::HttpsIgnored),
        _ => return Ok(decoded(value)),
    };
    let slash = memchr::memchr(b'/', rest).ok_or(RemarkKind::BadSrc)?;
    Ok([b"http://", &rest[..slash], &decoded(&rest[slash..])].concat())
}
