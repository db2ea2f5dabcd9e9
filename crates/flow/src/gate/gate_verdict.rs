//! Gate verdict: a core's first look at the checks of a site. A cached grant decides at once;
//! otherwise a check is pending.

use std::sync::Arc;

use base::{Counter, Now};
use message::{HeaderId, Request, Scheme};
use policy::users::basic_credentials;

use super::check::ask_for_password;
use crate::state::gate::SiteAdmission;
use crate::state::gate::check::PendingAuthCheck;
use crate::state::gate::{
    AuthGrant, AuthMemory, AuthResult, BasicAuthCheck, ClientIdentity, ForwardAuthCheck, digest_of,
};
use crate::state::reply::Reply;
use crate::state::site_context::SiteContext;

/// The gates' verdict on a request.
pub(crate) enum AuthVerdict {
    /// The request is admitted.
    In(SiteAdmission),
    Refused(Box<Reply>),
    /// A check is pending.
    Waits(Box<PendingAuthCheck>),
}

impl AuthMemory {
    /// Verifies a request of `identity` against the gates of a site, with the results in `results`
    /// and the cached grants.
    pub(crate) fn look(
        &self,
        SiteContext { live, site }: SiteContext<'_>,
        request: &Request,
        identity: ClientIdentity,
        results: &[AuthResult],
        now: Now,
    ) -> AuthVerdict {
        let mut admission = SiteAdmission::default();
        let Some(gates) = &site.gates else { return AuthVerdict::In(admission) };
        let known = |digest: &[u8; 32]| {
            let result = results.iter().find(|result| result.digest == *digest);
            let proven = result.map(|result| result.grant.clone());
            proven.or_else(|| self.get(digest, now.mono_ms))
        };
        let routes = site.policy.routes(request, identity.who);
        let most = live.limits.gate_memory;
        let mut is_any = false;
        for gate in gates.of(routes) {
            is_any |= gate.password.is_some() || gate.forward_auth.is_some();
            if let Some(gate) = &gate.password {
                match gate.look(request, known) {
                    Ok(grant) => gate.let_in(grant, &mut admission),
                    Err(Some(check)) => match self.learn(check.digest(), now.mono_ms, most) {
                        Some(grant) => gate.let_in(grant, &mut admission),
                        None => return AuthVerdict::Waits(Box::new(check)),
                    },
                    Err(None) => {
                        let reply = ask_for_password(&self.counters, site, request, gate);
                        return AuthVerdict::Refused(Box::new(reply));
                    }
                }
            }
            if let Some(gate) = &gate.forward_auth {
                let digest = gate.digest_of(request, identity);
                match known(&digest) {
                    Some(grant) => gate.let_in(grant, &mut admission),
                    None => {
                        let keeps_password = admission.keeps_password;
                        let gate = Arc::clone(gate);
                        return AuthVerdict::Waits(Box::new(PendingAuthCheck::ForwardAuth {
                            gate,
                            digest,
                            keeps_password,
                        }));
                    }
                }
            }
        }
        // The cache key belongs to one route, and may lack the fields of the other route's gates.
        admission.is_personal |= routes.also.is_some() && !admission.own.is_empty();
        if is_any && results.is_empty() {
            self.counters.inc(Counter::GateRemembered);
        }
        AuthVerdict::In(admission)
    }
}

impl BasicAuthCheck {
    /// Returns the cached grant for a password; otherwise the check to run, if a password was sent.
    fn look(
        self: &Arc<Self>,
        request: &Request,
        known: impl Fn(&[u8; 32]) -> Option<AuthGrant>,
    ) -> Result<AuthGrant, Option<PendingAuthCheck>> {
        let mut values = request.headers.values(HeaderId::Authorization);
        let (Some(shown), None) = (values.next(), values.next()) else { return Err(None) };
        let digest = digest_of([&self.users.digest()[..], shown]);
        if let Some(grant) = known(&digest) {
            return Ok(grant);
        }
        let Some((user, password)) = basic_credentials(shown) else { return Err(None) };
        let gate = Arc::clone(self);
        Err(Some(PendingAuthCheck::Password { gate, digest, user, password }))
    }

    fn let_in(&self, grant: AuthGrant, admission: &mut SiteAdmission) {
        if let Some(field) = &self.rule.user_field {
            let user = grant.user.as_ref().map_or("", |user| &user.0);
            admission.add(field, [user.as_bytes()]);
        }
        admission.user = grant.user;
        admission.keeps_password |= !self.rule.forward;
        admission.is_personal |= self.is_personal;
    }
}

impl ForwardAuthCheck {
    /// A digest of everything that the authentication server may decide by, as far as the rule
    /// names it.
    fn digest_of(&self, request: &Request, identity: ClientIdentity) -> [u8; 32] {
        let client = identity.who.to_string();
        let port = request.port.unwrap_or_default().to_be_bytes();
        let mut parts = vec![&self.digest[..], client.as_bytes(), &request.host, &port];
        parts.push(if identity.scheme == Scheme::Https { b"s" } else { b"" });
        if !self.rule.whole_site {
            parts.extend([request.method.token(), &request.target]);
        }
        let headers = &request.headers;
        // Without the number of values, one could be taken for a value of the next field.
        let counts =
            self.rule.by.iter().map(|name| (name.values(headers).count() as u64).to_le_bytes());
        let counts: Vec<_> = counts.collect();
        for (name, count) in self.rule.by.iter().zip(&counts) {
            parts.push(count);
            parts.extend(name.values(headers));
        }
        digest_of(parts)
    }

    fn let_in(&self, grant: AuthGrant, admission: &mut SiteAdmission) {
        for field in &self.rule.copy {
            let values = grant.fields.iter().filter(|(name, _)| name == field);
            admission.add(field, values.map(|(_, value)| &**value));
        }
        admission.is_personal |= self.is_personal;
    }
}
