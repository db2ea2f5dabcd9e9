//! Reading of a URL by the VCL beside a site's settings: the request that `vcl_recv` makes of a
//! reader's request for it. A purge of the URL must reach what is stored under that.
//!
//! The subroutine runs without a request and without effects: it sees no files, no names and no
//! memory of other requests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{Limit, Now};
use bytes::Bytes;
use message::{HeaderBlock, Request};
use policy::ConnectionPeer;
use vcl::ctx::{Ctx, ProgramEnvironment, PurgeMode, Req, ReqState, Session, Tag, Task};
use vcl::program::Instance;
use vcl::rules::lifetime::{self, Lifetime};
use vcl::sub::{Action, Sub};
use vcl::vmod::VmodState;
use vcl::workspace::Workspace;

use super::call::seconds;
use super::extra::{adopt, set_client};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;

/// The request that `vcl_recv` of `instance` makes of `asked`; `None` if it answers or fails.
pub(crate) fn as_read(
    live: &LiveConfiguration,
    site: &Site,
    instance: &Arc<Instance>,
    asked: &Request,
    client: ConnectionPeer,
    now: Now,
) -> Option<Request> {
    let world = ReadingWorld { live, memory: VmodState::new(&live.limits) };
    let mut request = asked.clone();
    let mut session = Session::without_client();
    set_client(&mut session, client);
    let limits = &live.limits;
    let mut task = Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
    let mut state = ReqState { time: seconds(now), ..ReqState::default() };
    let head = &mut request;
    let action = instance.run(&mut Ctx {
        sub: Sub::Recv,
        instance,
        environment: &world,
        now: seconds(now),
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
    let goes_on = matches!(action, Action::Hash | Action::Pass(_));
    (goes_on && adopt(live, site, &mut request, asked).is_ok()).then_some(request)
}

/// The environment of a reading: nothing outside of the program.
struct ReadingWorld<'a> {
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
        seconds(rt::now())
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
