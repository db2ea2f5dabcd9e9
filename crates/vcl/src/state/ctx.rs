//! The view of a running subroutine: the messages of its task, their state beside the heads, and
//! the world outside.
//!
//! The caller that runs a program owns all of this and lends it for the time of one subroutine.
//! Parts that a subroutine must not see are absent.

use std::any::Any;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::{fmt, io};

use base::{KeyBuf, Limit};
use bytes::Bytes;
use message::{HeaderId, Request, Response};

use crate::failure::ProgramFailure;
use crate::source::StatementNumber;
use crate::state::backend::{Backend, Leaf};
use crate::state::program::Instance;
use crate::sub::{Action, Sub};
use crate::workspace::Workspace;

pub use crate::state::environment::{ProgramEnvironment, PurgeMode};
pub use crate::tag::Tag;

/// The context of one run of one subroutine.
pub struct Ctx<'a> {
    /// The subroutine that was called.
    pub sub: Sub,
    /// The program and its objects.
    pub instance: &'a Arc<Instance>,
    /// The world outside.
    pub world: &'a dyn ProgramEnvironment,
    /// `now`, in seconds since 1970; stays the same while the subroutine runs.
    pub now: f64,
    /// The session: the client's connection.
    pub session: &'a mut Session,
    /// State kept for the time of the task: the rest of its budget, and data of VMODs.
    pub task: &'a mut Task,
    /// `req`; of backend subroutines none.
    pub req: Option<Req<'a>>,
    /// `req_top`, where it is not `req` itself.
    pub req_top: Option<&'a Request>,
    /// `bereq`: in `vcl_pipe` and backend subroutines.
    pub bereq: Option<Bereq<'a>>,
    /// `beresp`
    pub beresp: Option<Beresp<'a>>,
    /// `obj`; in `vcl_backend_refresh` `obj_stale`.
    pub obj: Option<&'a Obj<'a>>,
    /// `resp`
    pub resp: Option<Resp<'a>>,
    /// Where `hash_data` puts what it is given: in `vcl_hash`.
    pub key: Option<&'a mut KeyBuf>,
}

impl Ctx<'_> {
    /// Notes that a limit is reached.
    pub(crate) fn note_limit(&mut self, limit: Limit) {
        self.world.limit(limit);
        self.task.limit = Some(limit);
    }

    /// Takes a step.
    ///
    /// # Errors
    /// None is left.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), ProgramFailure> {
        match self.task.steps.checked_sub(1) {
            Some(left) => {
                self.task.steps = left;
                Ok(())
            }
            None => {
                self.note_limit(Limit::VclSteps);
                Err(ProgramFailure::new("too many steps for one request (vcl_steps)"))
            }
        }
    }
}

/// The client's connection.
#[derive(Clone, Debug)]
pub struct Session {
    /// `client.ip`
    pub client: Option<SocketAddr>,
    /// `server.ip`
    pub server: Option<SocketAddr>,
    /// `remote.ip`
    pub remote: Option<SocketAddr>,
    /// `local.ip`
    pub local: Option<SocketAddr>,
    /// `client.identity`, once it is set; until then the address of `client.ip`.
    pub identity: Option<Bytes>,
    /// `local.endpoint`: the listener as configured.
    pub endpoint: Arc<str>,
    /// `local.socket`: the listener's name.
    pub socket: Arc<str>,
    /// `sess.xid`
    pub xid: u64,
    /// TLS between client and listener, as the PROXY header or our own listener tells it.
    pub tls: Option<Arc<TlsFacts>>,
    /// The process at the other end of a unix socket, for `unix`.
    pub peer: Option<PeerCredentials>,
    /// The part of the connection that programs control: its timeouts, its socket. `None` where
    /// there is no connection.
    pub control: Option<Rc<dyn Connection>>,
}

impl Session {
    /// The session of work that no client asked for, as `vcl_init`.
    pub fn without_client() -> Self {
        Self {
            client: None,
            server: None,
            remote: None,
            local: None,
            identity: None,
            endpoint: Arc::from(""),
            socket: Arc::from(""),
            xid: 0,
            tls: None,
            peer: None,
            control: None,
        }
    }
}

/// The process at the other end of a unix socket (`SO_PEERCRED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// `unix.uid`
    pub uid: u32,
    /// `unix.gid`
    pub gid: u32,
}

/// A program's control of the client's connection. Every change takes effect at once, and lasts as
/// long as the connection. Nothing here waits.
pub trait Connection: fmt::Debug {
    /// The timeouts that programs have set.
    fn times(&self) -> ConnectionTimeouts;

    /// Sets them.
    fn set_times(&self, times: ConnectionTimeouts);

    /// Marks what is sent from now on with this type of service (IPv4), or traffic class (IPv6).
    /// Over a unix socket nothing happens.
    ///
    /// # Errors
    /// The system's; none of a socket that is gone.
    fn set_tos(&self, tos: u8) -> io::Result<()>;

    /// Has the kernel go by this congestion control algorithm.
    ///
    /// # Errors
    /// The system's: mostly that it has none of this name. `Unsupported` where there is no TCP.
    fn set_congestion(&self, algorithm: &str) -> io::Result<()>;

    /// The congestion control algorithm.
    ///
    /// # Errors
    /// The system's; `Unsupported` where there is no TCP.
    fn congestion(&self) -> io::Result<String>;

    /// Returns the kernel's measurements.
    ///
    /// # Errors
    /// The system's; `Unsupported` where there is no TCP.
    fn measured(&self) -> io::Result<TcpInfo>;

    /// Sends at most so many bytes per second from now on; 0 as many as go.
    fn set_pace(&self, bytes_per_second: u64);
}

/// Timeouts of a connection that programs have set, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionTimeouts {
    /// `sess.timeout_idle`
    pub idle: Option<f64>,
    /// `sess.timeout_linger`
    pub linger: Option<f64>,
    /// `sess.idle_send_timeout`
    pub idle_send: Option<f64>,
    /// `sess.send_timeout`
    pub send: Option<f64>,
}

/// Measurements of a TCP connection by the kernel: the fields of Linux's `tcp_info` by their names,
/// in its units (bytes, microseconds, segments).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of tcp(7)")]
pub struct TcpInfo {
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub lost: u32,
    pub retrans: u32,
    pub pmtu: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
}

/// TLS on the client's connection, for `proxy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// `proxy.is_ssl`
    pub is_tls: bool,
    /// `proxy.alpn`
    pub alpn: Option<Box<str>>,
    /// `proxy.authority`
    pub authority: Option<Box<str>>,
    /// `proxy.ssl_version`
    pub version: Option<Box<str>>,
    /// `proxy.cipher`
    pub cipher: Option<Box<str>>,
    /// `proxy.cert_sign`
    pub cert_sign: Option<Box<str>>,
    /// `proxy.cert_key`
    pub cert_key: Option<Box<str>>,
    /// `proxy.client_cert_cn`
    pub client_cert_cn: Option<Box<str>>,
    /// `proxy.client_has_cert_sess`
    pub has_cert_session: bool,
    /// `proxy.client_has_cert_conn`
    pub has_cert_connection: bool,
    /// `proxy.ssl_verify_result`
    pub verify_result: i64,
}

/// `req`
pub struct Req<'a> {
    /// The head: method, target (`req.url`) and headers, Host among them. Whoever runs the
    /// program brings host and port into line with Host afterwards.
    pub head: &'a mut Request,
    /// The rest.
    pub state: &'a mut ReqState,
    /// The head as it came, for `std.rollback`; there is one where the program uses that.
    pub original: Option<&'a Request>,
    /// The key's bytes, once `vcl_hash` has run: what `req.hash` is made from.
    pub key: Option<&'a [u8]>,
}

/// State of a request that VCL knows beside its head.
#[derive(Clone, Debug, Default)]
pub struct ReqState {
    /// `req.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// `req.backend_hint`; whoever runs the program begins with the default one.
    pub backend_hint: Backend,
    /// `req.grace`, seconds.
    pub grace: Option<f64>,
    /// `req.ttl`, seconds.
    pub ttl: Option<f64>,
    /// `req.hash_always_miss`
    pub hash_always_miss: bool,
    /// `req.hash_ignore_busy`
    pub hash_ignore_busy: bool,
    /// `req.hash_ignore_vary`
    pub hash_ignore_vary: bool,
    /// `req.esi`, inverted so that the default is false.
    pub no_esi: bool,
    /// `req.esi_level`
    pub esi_level: u32,
    /// `req.restarts`
    pub restarts: u32,
    /// `req.is_hitmiss`
    pub is_hitmiss: bool,
    /// `req.is_hitpass`
    pub is_hitpass: bool,
    /// `req.storage`
    pub storage: Option<Arc<str>>,
    /// `req.time`, seconds since 1970.
    pub time: f64,
    /// `req.xid`
    pub xid: u64,
    /// `req.trace`
    pub trace: bool,
    /// `req.filters`
    pub filters: Bytes,
    /// `std.late_100_continue`: a 100 is sent only when the body is read.
    pub late_continue: bool,
}

/// `bereq`
pub struct Bereq<'a> {
    /// The head.
    pub head: &'a mut Request,
    /// The rest.
    pub state: &'a mut BereqState,
    /// The head as it was first made, for `std.rollback`.
    pub original: Option<&'a Request>,
    /// The key's bytes, for `bereq.hash`.
    pub key: &'a [u8],
}

/// State of a backend request that VCL knows beside its head. Times in seconds.
#[derive(Clone, Debug, Default)]
pub struct BereqState {
    /// `bereq.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// `bereq.backend`
    pub backend: Backend,
    /// `bereq.connect_timeout`
    pub connect_timeout: Option<f64>,
    /// `bereq.first_byte_timeout`
    pub first_byte_timeout: Option<f64>,
    /// `bereq.between_bytes_timeout`
    pub between_bytes_timeout: Option<f64>,
    /// `bereq.is_bgfetch`
    pub is_bgfetch: bool,
    /// `bereq.is_hitmiss`
    pub is_hitmiss: bool,
    /// `bereq.is_hitpass`
    pub is_hitpass: bool,
    /// `bereq.retries`
    pub retries: u32,
    /// `bereq.time`, seconds since 1970.
    pub time: f64,
    /// `bereq.uncacheable`
    pub uncacheable: bool,
    /// `bereq.xid`
    pub xid: u64,
    /// There is a request body, and `unset bereq.body` has not removed it.
    pub has_body: bool,
    /// `bereq.trace`
    pub trace: bool,
    /// `bereq.filters`
    pub filters: Bytes,
    /// `bereq.task_deadline`
    pub task_deadline: Option<f64>,
    /// `bereq.retry_connect`, inverted so that the default is false.
    pub no_retry_connect: bool,
}

/// `beresp`
pub struct Beresp<'a> {
    /// The head. Its status is that of [`BerespState::status`] as far as HTTP knows one.
    pub head: &'a mut Response,
    /// The rest.
    pub state: &'a mut BerespState,
}

impl Beresp<'_> {
    /// `beresp.filters` as set, or as `beresp.do_*` and Content-Encoding make them.
    pub fn filters(&self) -> Bytes {
        let state = &*self.state;
        if let Some(filters) = &state.filters {
            return filters.clone();
        }
        if state.unfiltered {
            return Bytes::from_static(if state.do_esi { b" esi" } else { b"" });
        }
        let coding = self.head.headers.value(HeaderId::ContentEncoding);
        let is_gzip = coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"));
        let gunzips = state.do_gunzip && is_gzip && !state.gzip_off;
        let gzips = state.do_gzip && coding.is_none() && !state.gzip_off;
        let mut filters = String::new();
        if gunzips || is_gzip && state.do_esi {
            filters.push_str(" gunzip");
        }
        match (state.do_esi, gzips, is_gzip && !gunzips) {
            (true, false, false) => filters.push_str(" esi"),
            (true, ..) => filters.push_str(" esi_gzip"),
            (false, true, _) => filters.push_str(" gzip"),
            (false, false, true) => filters.push_str(" testgunzip"),
            (false, false, false) => {}
        }
        filters.into()
    }
}

/// State of a backend's response that VCL knows beside its head. Times in seconds.
#[derive(Clone, Debug, Default)]
pub struct BerespState {
    /// `beresp.status`: up to 65535.
    pub status: u16,
    /// `beresp.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// `beresp.ttl`, from now.
    pub ttl: f64,
    /// `beresp.grace`
    pub grace: f64,
    /// `beresp.keep`
    pub keep: f64,
    /// `beresp.age`
    pub age: f64,
    /// `beresp.uncacheable`
    pub uncacheable: bool,
    /// `beresp.do_esi`
    pub do_esi: bool,
    /// `beresp.do_gzip`
    pub do_gzip: bool,
    /// `beresp.do_gunzip`
    pub do_gunzip: bool,
    /// `beresp.do_stream`
    pub do_stream: bool,
    /// There is no body to filter.
    pub unfiltered: bool,
    /// `http_gzip_support` is off: `do_gzip` and `do_gunzip` do nothing.
    pub gzip_off: bool,
    /// `beresp.filters`, once set.
    pub filters: Option<Bytes>,
    /// `beresp.storage`
    pub storage: Option<Arc<str>>,
    /// `beresp.time`, seconds since 1970.
    pub time: f64,
    /// `beresp.transit_buffer`, bytes; 0 for no bound of its own.
    pub transit_buffer: Option<i64>,
    /// `beresp.was_304`
    pub was_304: bool,
    /// `beresp.backend`: who has answered.
    pub backend: Option<Arc<Leaf>>,
    /// `beresp.backend.ip`
    pub backend_ip: Option<SocketAddr>,
    /// The body of `vcl_backend_error`: `beresp.body`, `synthetic()`.
    pub body: Vec<u8>,
    /// `xkey`: keys beside those in the headers.
    pub keys: Vec<Bytes>,
    /// The backend's connection is gone, and the body with it: `std.rollback(bereq)`.
    pub cut_off: bool,
}

/// `obj`: a stored response. Times in seconds.
#[derive(Clone, Debug, Default)]
pub struct Obj<'a> {
    /// The head as it is stored: a status line and lines of fields, each with CRLF.
    pub head: &'a [u8],
    /// `obj.status`
    pub status: u16,
    /// `obj.age`
    pub age: f64,
    /// `obj.ttl`: what is left. These three can be changed by purging what is delivered.
    pub ttl: Cell<f64>,
    /// `obj.grace`
    pub grace: Cell<f64>,
    /// `obj.keep`
    pub keep: Cell<f64>,
    /// `obj.hits`: 0 for what has just been fetched.
    pub hits: u32,
    /// `obj.uncacheable`
    pub uncacheable: bool,
    /// `obj.can_esi`
    pub can_esi: bool,
    /// `obj.time`, seconds since 1970.
    pub time: f64,
    /// `obj.storage`
    pub storage: Option<&'a Arc<str>>,
    /// `obj_stale.is_valid`: neither purge nor ban has ended it.
    pub is_valid: bool,
}

/// `resp`
pub struct Resp<'a> {
    /// The head.
    pub head: &'a mut Response,
    /// The rest.
    pub state: &'a mut RespState,
}

/// State of a response that VCL knows beside its head.
#[derive(Clone, Debug, Default)]
pub struct RespState {
    /// `resp.status`: up to 65535.
    pub status: u16,
    /// `resp.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// The body of `vcl_synth`: `resp.body`, `synthetic()`.
    pub body: Vec<u8>,
    /// `resp.do_esi`
    pub do_esi: bool,
    /// `resp.filters`, once set.
    pub filters: Option<Bytes>,
    /// `resp.time`, seconds since 1970.
    pub time: f64,
    /// `resp.is_streaming`
    pub is_streaming: bool,
}

/// Data that a VMOD keeps, by module and object.
type ModuleData = ((&'static str, u32), Box<dyn Any>);

/// State kept for the time of one task: from request to response on the client's side, from request
/// to body on the backend's.
pub struct Task {
    /// Steps (statements and calls) that are left to it.
    pub steps: u64,
    /// The memory that is left to its strings.
    pub workspace: Workspace,
    /// `req.trace` or `bereq.trace` of the subroutine that runs.
    pub(crate) traced: bool,
    /// The statement that ended the last subroutine: its `return`, or what failed.
    pub at: Option<StatementNumber>,
    /// The result of that statement, until the subroutine's caller takes it.
    pub(crate) action: Option<Action>,
    /// The limit that it has reached, the last one of several.
    pub limit: Option<Limit>,
    /// Memory for strings that are being put together, kept from one to the next.
    buffers: Vec<Vec<u8>>,
    /// Data that VMODs keep, by module and object.
    kept: Vec<ModuleData>,
}

impl Task {
    /// A task that may take `steps`, and `workspace` for its strings.
    pub fn new(steps: u64, workspace: Workspace) -> Self {
        let (buffers, kept) = (Vec::new(), Vec::new());
        let (at, action, limit, traced) = (None, None, None, false);
        Self { steps, workspace, traced, at, action, limit, buffers, kept }
    }

    /// Makes it that of another request, which may take as much; keeps the memory.
    pub fn renew(&mut self, steps: u64, workspace: Workspace) {
        (self.steps, self.at, self.limit) = (steps, None, None);
        self.workspace = workspace;
        self.kept.clear();
    }

    /// An empty buffer; [`Task::give_buffer`] takes it back.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.push(buffer);
    }

    /// Forgets what VMODs keep, as a rollback does.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    /// The data that `module` keeps under `number` (of an object, or 0), made on first use.
    pub fn keep<T: Any + Default>(&mut self, module: &'static str, number: u32) -> &mut T {
        let key = (module, number);
        let is_it = |(k, kept): &ModuleData| *k == key && kept.is::<T>();
        let at = self.kept.iter().position(is_it).unwrap_or_else(|| {
            self.kept.push((key, Box::new(T::default())));
            self.kept.len() - 1
        });
        self.kept[at].1.downcast_mut().expect("it was found by its type")
    }
}
