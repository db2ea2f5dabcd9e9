//! Extra reading: the request that `vcl_recv` of the VCL beside a site's settings makes of a
//! reader's request, as the declared steps take it. A purge of a URL must reach what is stored
//! under that.
//!
//! For a purge the subroutine runs without a request and without effects: it sees no files, no
//! names and no memory of other requests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{Limit, Now};
use bytes::Bytes;
use message::{HeaderBlock, HeaderId, Request, target};
use policy::ConnectionPeer;
use vcl::ctx::{Ctx, ProgramEnvironment, PurgeMode, Req, ReqState, Session, Tag, Task};
use vcl::program::Instance;
use vcl::rules::heads;
use vcl::rules::lifetime::{self, Lifetime};
use vcl::sub::{Action, Sub};
use vcl::vmod::VmodState;
use vcl::workspace::Workspace;

use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;

/// The request that `vcl_recv` of `instance` makes of `asked`; `None` if it fails.
pub(crate) fn as_read(
    live: &LiveConfiguration,
    site: &Site,
    instance: &Arc<Instance>,
    asked: &Request,
    client: ConnectionPeer,
    now: Now,
) -> Option<Request> {
    let now_s = now.unix_ms as f64 / 1000.0;
    let world = ReadingWorld { live, now_s, memory: VmodState::new(&live.limits) };
    let mut request = asked.clone();
    let mut session = Session::without_client();
    set_client(&mut session, client);
    let limits = &live.limits;
    let mut task = Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
    let mut state = ReqState { time: now_s, ..ReqState::default() };
    let head = &mut request;
    let action = instance.run(&mut Ctx {
        sub: Sub::Recv,
        instance,
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
        key: None,
    });
    // Readers of others may get further than the reader that a purge imagines.
    let goes_on = matches!(action, Action::Hash | Action::Pass(_) | Action::Synth(_));
    (goes_on && adopt(live, site, &mut request, asked).is_ok()).then_some(request)
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
