//! Web Bot Auth: signatures by which agents name themselves (RFC 9421,
//! draft-ietf-webbotauth-httpsig-protocol).
//!
//! Must never have keys fetched that a request names: an agent counts only if the operator has
//! named it. What cannot be decided is [`SignatureVerdict::Open`], which is neither a proof nor a
//! fault.

use std::fmt;
use std::num::NonZeroU16;

use data_encoding::BASE64_NOPAD;
use message::sf::{BareItem, InnerList, Parameters, Value, parse_dictionary, parse_item};
use message::{HttpsOrigin, Request, Scheme};

use crate::key_directory::{DirectoryKey, KeyDirectory};
use crate::signature_base::{BaseFault, lines, signature_base};

/// The tag of the signatures that agents make.
const TAG: &[u8] = b"web-bot-auth";
/// Most members of Signature-Input: an agent's, and those of browsers and gateways on its way.
const SIGNATURES_MAX: usize = 8;
/// Seconds by which the clocks of agent and server may differ.
const SKEW_S: u64 = 60;

/// An agent that the operator trusts to name itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedAgent {
    /// The number of its name in the list of crawlers.
    pub(crate) number: NonZeroU16,
    /// The origin of its directory, which its requests name.
    pub(crate) origin: HttpsOrigin,
    /// Its keys, if they came from a file.
    pub(crate) keys: Option<KeyDirectory>,
}

/// Keys that were fetched, by the origin of their directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedKeys(Vec<(HttpsOrigin, KeyDirectory)>);

impl FetchedKeys {
    /// The keys with those of `origin` replaced.
    #[must_use]
    pub fn with(&self, origin: &HttpsOrigin, keys: KeyDirectory) -> Self {
        let mut all = self.only(|own| own != origin);
        all.0.push((origin.clone(), keys));
        all
    }

    /// The keys of the origins for which `is_kept` returns true.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&HttpsOrigin) -> bool) -> Self {
        Self(self.0.iter().filter(|(origin, _)| is_kept(origin)).cloned().collect())
    }

    /// The keys of an origin, if they have been fetched.
    pub fn of(&self, origin: &HttpsOrigin) -> Option<&KeyDirectory> {
        self.0.iter().find(|(own, _)| own == origin).map(|(_, keys)| keys)
    }
}

/// The verdict on the signatures of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// None is by an agent that the operator trusts.
    Absent,
    /// It is by the agent of this number.
    True(NonZeroU16),
    /// It claims to be by the agent of this number, and is not.
    False(NonZeroU16, SignatureFault),
    /// It claims to be by the agent of this number, and could not be verified.
    Open(NonZeroU16, OpenReason),
}

/// The fault of a false signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureFault {
    /// It lacks `created` or `expires`, or has no bytes.
    Incomplete,
    /// It expired, or was made longer ago than signatures count.
    Expired,
    /// It was made in the future.
    Early,
    /// It covers neither `@authority` nor `@target-uri`, so it could be from another site.
    Unbound,
    /// It covers a field that the request lacks.
    Missing,
    /// The key has not signed this request.
    Wrong,
}

/// The reason why a signature could not be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenReason {
    /// The agent's keys have not been fetched yet.
    NoKeys,
    /// The agent has no such key.
    UnknownKey,
    /// It is by another algorithm than Ed25519.
    Algorithm,
    /// It covers a component that cannot be rebuilt.
    Component,
    /// Too many signatures are verified already.
    Busy,
}

impl fmt::Display for SignatureFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "it lacks `created`, `expires` or its 64 bytes",
            Self::Expired => "it has expired",
            Self::Early => "it was made in the future",
            Self::Unbound => "it covers neither @authority nor @target-uri",
            Self::Missing => "it covers a field that the request lacks",
            Self::Wrong => "its key has not signed this request",
        })
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKeys => "the agent's keys have not been fetched yet",
            Self::UnknownKey => "its key is not in the agent's directory",
            Self::Algorithm => "its algorithm is not ed25519",
            Self::Component => "it covers a component that Larder cannot rebuild",
            Self::Busy => "too many signatures are being verified (limit: signature_checks)",
        })
    }
}

/// The circumstances in which signatures are judged.
#[derive(Clone, Copy, Debug)]
pub struct SignatureContext<'a> {
    /// The keys that were fetched.
    pub fetched: &'a FetchedKeys,
    /// The scheme that the client used.
    pub scheme: Scheme,
    /// The time, in seconds since 1970.
    pub now_secs: u64,
    /// Seconds for which a signature counts, whatever it says itself.
    pub lifetime_s: u64,
}

/// Judges the signatures of a request: the first one that is by a trusted agent. Asks `may_verify`
/// before the one step that takes long.
pub(crate) fn judge(
    agents: &[TrustedAgent],
    request: &Request,
    context: SignatureContext<'_>,
    may_verify: impl FnOnce() -> bool,
) -> SignatureVerdict {
    let signatures = signatures(request);
    let mut claims = signatures.iter().filter_map(|signature| {
        let origin = signature.agent(request)?;
        Some((signature, agents.iter().find(|agent| agent.origin == origin)?))
    });
    let Some((signature, agent)) = claims.next() else { return SignatureVerdict::Absent };
    match signature.verify(agent, request, context, may_verify) {
        Ok(()) => SignatureVerdict::True(agent.number),
        Err(Doubt::Fault(fault)) => SignatureVerdict::False(agent.number, fault),
        Err(Doubt::Open(why)) => SignatureVerdict::Open(agent.number, why),
    }
}

/// A signature that is not proved.
enum Doubt {
    Fault(SignatureFault),
    Open(OpenReason),
}

impl From<SignatureFault> for Doubt {
    fn from(fault: SignatureFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<OpenReason> for Doubt {
    fn from(why: OpenReason) -> Self {
        Self::Open(why)
    }
}

/// A member of Signature-Input with the tag of agents.
#[derive(Clone, Copy, Debug)]
struct AgentSignature<'r> {
    label: &'r [u8],
    components: InnerList<'r>,
    parameters: Parameters<'r>,
}

/// The agents' signatures of a request, in order; none if the field is malformed.
fn signatures(request: &Request) -> Vec<AgentSignature<'_>> {
    let mut found = Vec::new();
    let parsed = parse_dictionary(lines(request, b"signature-input"), |member| {
        let Value::List(components) = member.value else { return };
        let (label, parameters) = (member.key, member.parameters);
        let own = AgentSignature { label, components, parameters };
        if own.parameter(b"tag") == Some(BareItem::String(TAG)) {
            found.push(own);
        }
    });
    let is_one_each = found.iter().enumerate().all(|(at, own)| {
        found[..at].iter().all(|earlier: &AgentSignature<'_>| earlier.label != own.label)
    });
    match parsed {
        Ok(count) if count <= SIGNATURES_MAX && is_one_each => found,
        _ => Vec::new(),
    }
}

impl<'r> AgentSignature<'r> {
    fn parameter(&self, name: &[u8]) -> Option<BareItem<'r>> {
        self.parameters.iter().filter(|(own, _)| *own == name).last().map(|(_, value)| value)
    }

    fn time(&self, name: &[u8]) -> Option<u64> {
        match self.parameter(name)? {
            BareItem::Integer(secs) => u64::try_from(secs).ok(),
            _ => None,
        }
    }

    fn covers(&self, name: &[u8]) -> bool {
        self.components.members().any(|own| own.bare == BareItem::String(name))
    }

    /// The agent that the signature is by, as far as it covers that.
    fn agent(&self, request: &Request) -> Option<HttpsOrigin> {
        const FIELD: &[u8] = b"signature-agent";
        let covered = self.components.members().find(|own| own.bare == BareItem::String(FIELD))?;
        let (value, parameters) = match covered.parameters.iter().next() {
            Some((b"key", BareItem::String(key))) => {
                let mut found = None;
                parse_dictionary(lines(request, FIELD), |member| {
                    if member.key == key {
                        found = Some((member.value, member.parameters));
                    }
                })
                .ok()?;
                found?
            }
            Some(_) => return None,
            // The form of earlier drafts, which agents still send: one string.
            None => {
                let mut lines = lines(request, FIELD);
                let item = parse_item(lines.next()?).ok()?;
                lines.next().is_none().then_some((Value::Item(item.bare), item.parameters))?
            }
        };
        let kind = parameters.iter().filter(|(name, _)| *name == b"type").last();
        if kind.is_some_and(|(_, kind)| kind != BareItem::Token(b"directory")) {
            return None;
        }
        match value {
            Value::Item(BareItem::String(origin)) => HttpsOrigin::parse(origin).ok(),
            _ => None,
        }
    }

    /// The 64 bytes of the signature.
    fn bytes(&self, request: &Request) -> Option<[u8; 64]> {
        let mut found = None;
        parse_dictionary(lines(request, b"signature"), |member| {
            if member.key == self.label {
                found = Some(member.value);
            }
        })
        .ok()?;
        let Value::Item(BareItem::Bytes(text)) = found? else { return None };
        let data = text.split(|b| *b == b'=').next()?;
        BASE64_NOPAD.decode(data).ok()?.try_into().ok()
    }

    fn verify(
        &self,
        agent: &TrustedAgent,
        request: &Request,
        context: SignatureContext<'_>,
        may_verify: impl FnOnce() -> bool,
    ) -> Result<(), Doubt> {
        let bytes = self.bytes(request).ok_or(SignatureFault::Incomplete)?;
        self.check_times(context)?;
        if !self.covers(b"@authority") && !self.covers(b"@target-uri") {
            return Err(SignatureFault::Unbound.into());
        }
        let algorithm = self.parameter(b"alg");
        if algorithm.is_some_and(|own| own != BareItem::String(b"ed25519")) {
            return Err(OpenReason::Algorithm.into());
        }
        let key = self.key(agent, context)?;
        let base = signature_base(request, context.scheme, self.components, self.parameters);
        let base = base.map_err(|fault| match fault {
            BaseFault::Unsupported => Doubt::Open(OpenReason::Component),
            BaseFault::Missing => Doubt::Fault(SignatureFault::Missing),
        })?;
        if !may_verify() {
            return Err(OpenReason::Busy.into());
        }
        match key.has_signed(&base, &bytes) {
            true => Ok(()),
            false => Err(SignatureFault::Wrong.into()),
        }
    }

    fn check_times(&self, context: SignatureContext<'_>) -> Result<(), SignatureFault> {
        let SignatureContext { now_secs, lifetime_s, .. } = context;
        let created = self.time(b"created").ok_or(SignatureFault::Incomplete)?;
        let expires = self.time(b"expires").ok_or(SignatureFault::Incomplete)?;
        if created > now_secs.saturating_add(SKEW_S) {
            return Err(SignatureFault::Early);
        }
        let until = expires.min(created.saturating_add(lifetime_s));
        if until.saturating_add(SKEW_S) <= now_secs || expires < created {
            return Err(SignatureFault::Expired);
        }
        Ok(())
    }

    fn key<'k>(
        &self,
        agent: &'k TrustedAgent,
        context: SignatureContext<'k>,
    ) -> Result<&'k DirectoryKey, OpenReason> {
        let keys = agent.keys.as_ref().or_else(|| context.fetched.of(&agent.origin));
        let keys = keys.ok_or(OpenReason::NoKeys)?;
        let Some(BareItem::String(id)) = self.parameter(b"keyid") else {
            return Err(OpenReason::UnknownKey);
        };
        keys.key(id, context.now_secs).ok_or(OpenReason::UnknownKey)
    }
}

#[cfg(test)]
mod tests;
