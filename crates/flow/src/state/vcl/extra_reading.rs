//! Extra reading: the request that `vcl_recv` of the VCL beside a site's settings makes of a
//! reader's request, as the declared steps take it. A purge of a URL must reach what is stored
//! under that, and an unsafe request what is stored under the key of a GET.
//!
//! For these the subroutines run without a request and without effects: they see no files, no
//! names and no memory of other requests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{KeyBuf, Limit, Now};
use bytes::Bytes;
use message::{HeaderBlock, HeaderId, Method, Request, target};
use policy::ConnectionPeer;
use vcl::ctx::{Ctx, ProgramEnvironment, PurgeMode, Req, ReqState, Session, Tag, Task};
use vcl::program::Instance;
use vcl::rules::heads;
use vcl::rules::lifetime::{self, Lifetime};
use vcl::sub::{Action, Sub};
use vcl::vmod::VmodState;
use vcl::workspace::Workspace;

use super::extra_request::add_hashed;
use crate::key::KeyAddition;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;

/// A run of a site's VCL for a reader's request that did not come.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) live: &'a LiveConfiguration,
    pub(crate) instance: &'a Arc<Instance>,
    /// The reader.
    pub(crate) client: ConnectionPeer,
    pub(crate) now: Now,
}

/// The addition of `vcl_hash` to the key of a reader's request.
pub(crate) struct ReadKeyAddition(KeyBuf);

impl KeyAddition for ReadKeyAddition {
    fn add_to(&self, key: &mut KeyBuf) {
        add_hashed(self.0.bytes(), key);
    }
}

impl Reading<'_> {
    /// The request of a reader at `site` that `vcl_recv` makes of `asked`; `None` if it fails.
    pub(crate) fn received(&self, site: &Site, asked: &Request) -> Option<Request> {
        let mut asked = asked.clone();
        heads::show_host(&mut asked);
        let mut request = asked.clone();
        let action = self.run(Sub::Recv, &mut request, &asked, None);
        // Readers of others may get further than the reader that a purge imagines.
        let goes_on = matches!(action, Action::Hash | Action::Pass(_) | Action::Synth(_));
        (goes_on && adopt(self.live, site, &mut request, &asked).is_ok()).then_some(request)
    }

    /// The addition of `vcl_hash` to the key of a GET with the other parts of `asked`, which has
    /// gone through `vcl_recv`; `None` without one, or if it fails.
    pub(crate) fn key_addition(&self, asked: &Request) -> Option<ReadKeyAddition> {
        if !self.instance.program().uses().own.has(Sub::Hash) {
            return None;
        }
        let mut request = Request { method: Method::Get, ..asked.clone() };
        let mut key = KeyBuf::new();
        let action = self.run(Sub::Hash, &mut request, asked, Some(&mut key));
        (action == Action::Lookup).then_some(ReadKeyAddition(key))
    }

    fn run(
        &self,
        sub: Sub,
        head: &mut Request,
        asked: &Request,
        key: Option<&mut KeyBuf>,
    ) -> Action {
        let now_s = self.now.unix_ms as f64 / 1000.0;
        let (live, limits) = (self.live, &self.live.limits);
        let world = ReadingWorld { live, now_s, memory: VmodState::new(limits) };
        let mut session = Session::without_client();
        set_client(&mut session, self.client);
        let mut task = Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
        let mut state = ReqState { time: now_s, ..ReqState::default() };
        self.instance.run(&mut Ctx {
            sub,
            instance: self.instance,
            environment: &world,
            now: now_s,
            session: &mut session,
            task: &mut task,
            req: Some(Req { head, state: &mut state, original: Some(asked), key: None }),
            req_top: None,
            bereq: None,
            beresp: None,
            obj: None,
            resp: None,
            key,
        })
    }
}

/// Brings the request that `vcl_recv` has made of `asked` into canonical form.
///
/// # Errors
/// The reason for which it must not go on, for the log.
pub(crate) fn adopt(
    live: &LiveConfiguration,
    site: &Site,
    request: &mut Request,
    asked: &Request,
) -> Result<(), &'static str> {
    if request.headers.value(HeaderId::Host) != asked.headers.value(HeaderId::Host) {
        heads::follow_host(request);
        // Keys begin with the host: another site's responses must not be met.
        if live.sites.by_host.find(&request.host).is_none_or(|other| other.name != site.name) {
            return Err("vcl_recv has set a Host that is not one of this site's");
        }
    }
    if request.target != asked.target {
        heads::escape_target(&mut request.target);
        if target::check(request).is_err() {
            return Err("vcl_recv has set a req.url that is no path");
        }
        target::canonical(request);
    }
    Ok(())
}

/// The client whom the site's other rules see, at the connection's port if it is its peer.
pub(crate) fn set_client(session: &mut Session, client: ConnectionPeer) {
    let known = session.client;
    session.client = match client {
        ConnectionPeer::Host(address) => match known {
            Some(known) if known.ip().to_canonical() == address.to_canonical() => Some(known),
            _ => Some((address, 0).into()),
        },
        // Such a client is in no list of addresses.
        ConnectionPeer::Local | ConnectionPeer::Unnamed(_) => None,
    };
}

/// The environment of a reading: nothing outside of the program.
struct ReadingWorld<'a> {
    now_s: f64,
    live: &'a LiveConfiguration,
    memory: VmodState,
}

impl ProgramEnvironment for ReadingWorld<'_> {
    fn shared(&self) -> &VmodState {
        &self.memory
    }

    fn log(&self, _: Tag, _: &[u8]) {}

    fn syslog(&self, _: i64, _: &[u8]) {}

    fn ban(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn purge(&self, _: &[u8], _: PurgeMode) -> Result<u64, String> {
        Ok(0)
    }

    fn purge_keys(&self, _: &[&[u8]], _: bool) -> Result<u64, String> {
        Ok(0)
    }

    fn clock(&self) -> f64 {
        self.now_s
    }

    fn random(&self) -> f64 {
        0.0
    }

    fn env(&self, _: &str) -> Option<Bytes> {
        None
    }

    fn file(&self, _: &str) -> Option<Bytes> {
        None
    }

    fn read(&self, _: &str, _: u64) -> io::Result<Bytes> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn resolve(&self, _: &str, _: &str) -> Vec<SocketAddr> {
        Vec::new()
    }

    fn body(&self) -> Option<&[u8]> {
        None
    }

    fn keep_body(&self, _: u64) -> bool {
        false
    }

    fn lifetime(&self, status: u16, headers: &HeaderBlock, now: f64) -> Lifetime {
        lifetime::of(status, headers, now, &self.live.vcl.params)
    }

    fn param(&self, name: &str) -> Option<f64> {
        self.live.vcl.params.by_name(name)
    }

    fn has_feature(&self, flag: &str) -> bool {
        self.live.vcl.params.has_feature(flag)
    }

    fn storage(&self, _: &str) -> Option<(u64, u64)> {
        None
    }

    fn limit(&self, _: Limit) {}

    fn hostname(&self) -> &str {
        &self.live.vcl.hostname
    }

    fn identity(&self) -> &str {
        &self.live.vcl.identity
    }
}
