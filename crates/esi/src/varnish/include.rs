//! `<esi:include>` in Varnish's dialect.

use crate::address::Rules;
use crate::attribute::{decoded, is_space};
use crate::fragment::{Fragment, Include, OnError};
use crate::remark::What;

use super::rules::VarnishRules;

/// Attributes of an include, as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Src {
    value: Option<Vec<u8>>,
    is_continue: bool,
}

impl Src {
    /// Takes an attribute that has a value.
    pub(super) fn take(
        &mut self,
        name: &[u8],
        value: &[u8],
        rules: VarnishRules,
    ) -> Result<(), What> {
        match name {
            b"onerror" if rules.include_onerror => self.is_continue = value == b"continue",
            b"src" if self.value.is_some() => return Err(What::TwoSrc),
            b"src" if value.iter().any(|byte| is_space(*byte)) => {
                return Err(What::SpaceInSrc);
            }
            b"src" => {
                // To Varnish, a string ends with a NUL.
                let end = memchr::memchr(0, value).unwrap_or(value.len());
                self.value = Some(value[..end].to_vec());
            }
            _ => {}
        }
        Ok(())
    }

    /// The include, if its address is one.
    pub(super) fn include(
        &mut self,
        rules: VarnishRules,
        mut remark: impl FnMut(What),
    ) -> Option<Include> {
        let Some(value) = self.value.take() else {
            remark(What::NoSrc);
            return None;
        };
        let src = match address(&value, rules, &mut remark) {
            Ok(src) => src,
            Err(what) => {
                remark(what);
                return None;
            }
        };
        let onerror = match (rules.include_onerror, self.is_continue) {
            (false, _) => OnError::Unsaid,
            (true, true) => OnError::Continue,
            (true, false) => OnError::Fail,
        };
        let rules = Rules::Varnish;
        Some(Include::fixed(Fragment { src, onerror, rules, ..Fragment::default() }))
    }
}

/// The address that a value means. References are decoded in its path, and not in its host.
fn address(
    value: &[u8],
    rules: VarnishRules,
    remark: &mut impl FnMut(What),
) -> Result<Vec<u8>, What> {
    let rest = match (value.strip_prefix(b"http://"), value.strip_prefix(b"https://")) {
        (Some(rest @ [_, ..]), _) => rest,
        (_, Some(rest @ [_, ..])) if rules.ignore_https => {
            remark(What::HttpsAsHttp);
            rest
        }
        (_, Some([_, ..])) => return Err(What::HttpsIgnored),
        _ => return Ok(decoded(value)),
    };
    let slash = memchr::memchr(b'/', rest).ok_or(What::BadSrc)?;
    Ok([b"http://", &rest[..slash], &decoded(&rest[slash..])].concat())
}
