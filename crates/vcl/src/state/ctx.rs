//! Context of a running subroutine: the messages of its task, their VCL state, and the environment.
//! The runner owns all of it and lends it for one subroutine; parts that the subroutine must never
//! see are absent.

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

/// Context of one run of one subroutine.
pub struct Ctx<'a> {
    /// The subroutine that was called.
    pub sub: Sub,
    /// The program and its objects.
    pub instance: &'a Arc<Instance>,
    /// The environment outside of the program.
    pub environment: &'a dyn ProgramEnvironment,
    /// `now`, in seconds since 1970; constant while the subroutine runs.
    pub now: f64,
    /// The session: the client's connection.
    pub session: &'a mut Session,
    /// State of the task: its budget, and data of VMODs.
    pub task: &'a mut Task,
    /// `req`; `None` in backend subroutines.
    pub req: Option<Req<'a>>,
    /// `req_top`, if it is not `req`.
    pub req_top: Option<&'a Request>,
    /// `bereq`: in `vcl_pipe` and backend subroutines.
    pub bereq: Option<Bereq<'a>>,
    /// `beresp`
    pub beresp: Option<Beresp<'a>>,
    /// `obj`, or `obj_stale` in `vcl_backend_refresh`.
    pub obj: Option<&'a Obj<'a>>,
    /// `resp`
    pub resp: Option<Resp<'a>>,
    /// The key that `hash_data` appends to, in `vcl_hash`.
    pub key: Option<&'a mut KeyBuf>,
}

impl Ctx<'_> {
    /// Records that a limit was reached.
    pub(crate) fn note_limit(&mut self, limit: Limit) {
        self.environment.limit(limit);
        self.task.limit = Some(limit);
    }

    /// Takes a step of the budget.
    ///
    /// # Errors
    /// If the budget is used up.
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
    /// `client.identity`, once set; otherwise `client.ip` applies.
    pub identity: Option<Bytes>,
    /// `local.endpoint`: the listener's address as configured.
    pub endpoint: Arc<str>,
    /// `local.socket`: the listener's name.
    pub socket: Arc<str>,
    /// `sess.xid`
    pub xid: u64,
    /// TLS between client and listener, from the PROXY header or from Larder's listener.
    pub tls: Option<Arc<TlsFacts>>,
    /// The peer process of a unix socket, for `unix`.
    pub peer: Option<PeerCredentials>,
    /// Control over the connection: its timeouts and its socket. `None` without a connection.
    pub control: Option<Rc<dyn Connection>>,
}

impl Session {
    /// The session of work without a client, such as `vcl_init`.
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

/// Credentials of the peer process of a unix socket (`SO_PEERCRED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// `unix.uid`
    pub uid: u32,
    /// `unix.gid`
    pub gid: u32,
}

/// Control over the client's connection. A change takes effect at once and lasts until the
/// connection ends. No method waits.
pub trait Connection: fmt::Debug {
    /// Timeouts that programs have set.
    fn times(&self) -> ConnectionTimeouts;

    /// Sets timeouts.
    fn set_times(&self, times: ConnectionTimeouts);

    /// Sets the type of service (IPv4) or traffic class (IPv6) of outgoing packets. No effect on a
    /// unix socket.
    ///
    /// # Errors
    /// The system's error; `Ok` for a socket that is closed.
    fn set_tos(&self, tos: u8) -> io::Result<()>;

    /// Selects the congestion control algorithm.
    ///
    /// # Errors
    /// The system's error, mostly for an unknown name. `Unsupported` without TCP.
    fn set_congestion(&self, algorithm: &str) -> io::Result<()>;

    /// The congestion control algorithm in use.
    ///
    /// # Errors
    /// The system's error; `Unsupported` without TCP.
    fn congestion(&self) -> io::Result<String>;

    /// The kernel's measurements.
    ///
    /// # Errors
    /// The system's error; `Unsupported` without TCP.
    fn measured(&self) -> io::Result<TcpInfo>;

    /// Limits sending to this rate; 0 for no limit.
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

/// The kernel's measurements of a TCP connection: fields of Linux's `tcp_info`, in its units
/// (bytes, microseconds, segments).
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
    /// Head of the request: method, target (`req.url`) and headers, with Host. The runner derives
    /// host and port from Host afterwards.
    pub head: &'a mut Request,
    /// VCL's state beside the head.
    pub state: &'a mut ReqState,
    /// The head as received, for `std.rollback`; present only if the program uses that.
    pub original: Option<&'a Request>,
    /// The key, once `vcl_hash` has run; `req.hash` is its digest.
    pub key: Option<&'a [u8]>,
}

/// VCL's state of a request beside its head.
#[derive(Clone, Debug, Default)]
pub struct ReqState {
    /// `req.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// `req.backend_hint`; the runner sets the default backend first.
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
    /// `req.esi`, inverted, so that the default is false.
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
    /// `std.late_100_continue`: a 100 response is sent only when the body is read.
    pub late_continue: bool,
}

/// `bereq`
pub struct Bereq<'a> {
    /// Head of the request.
    pub head: &'a mut Request,
    /// VCL's state beside the head.
    pub state: &'a mut BereqState,
    /// The head as first made, for `std.rollback`.
    pub original: Option<&'a Request>,
    /// The key, for `bereq.hash`.
    pub key: &'a [u8],
}

/// VCL's state of a backend request beside its head. Times in seconds.
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
    /// True if there is a request body, and `unset bereq.body` has not removed it.
    pub has_body: bool,
    /// `bereq.trace`
    pub trace: bool,
    /// `bereq.filters`
    pub filters: Bytes,
    /// `bereq.task_deadline`
    pub task_deadline: Option<f64>,
    /// `bereq.retry_connect`, inverted, so that the default is false.
    pub no_retry_connect: bool,
}

/// `beresp`
pub struct Beresp<'a> {
    /// Head of the response. Its status is [`BerespState::status`], as far as HTTP has it.
    pub head: &'a mut Response,
    /// VCL's state beside the head.
    pub state: &'a mut BerespState,
}

impl Beresp<'_> {
    /// `beresp.filters` as set, or derived from `beresp.do_*` and Content-Encoding.
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

/// VCL's state of a backend's response beside its head. Times in seconds.
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
    /// True if there is no body to filter.
    pub unfiltered: bool,
    /// True if `http_gzip_support` is off: `do_gzip` and `do_gunzip` have no effect.
    pub gzip_off: bool,
    /// `beresp.filters`, once set.
    pub filters: Option<Bytes>,
    /// `beresp.storage`
    pub storage: Option<Arc<str>>,
    /// `beresp.time`, seconds since 1970.
    pub time: f64,
    /// `beresp.transit_buffer` in bytes; 0 for no limit of its own.
    pub transit_buffer: Option<i64>,
    /// `beresp.was_304`
    pub was_304: bool,
    /// `beresp.backend`: the backend that answered.
    pub backend: Option<Arc<Leaf>>,
    /// `beresp.backend.ip`
    pub backend_ip: Option<SocketAddr>,
    /// Body of `vcl_backend_error`: `beresp.body`, `synthetic()`.
    pub body: Vec<u8>,
    /// `xkey`: keys beside those in headers.
    pub keys: Vec<Bytes>,
    /// True after `std.rollback(bereq)`: the backend's connection is closed, and the body lost.
    pub cut_off: bool,
}

/// `obj`: a stored response. Times in seconds.
#[derive(Clone, Debug, Default)]
pub struct Obj<'a> {
    /// Stored head: a status line and fields, each with CRLF.
    pub head: &'a [u8],
    /// `obj.status`
    pub status: u16,
    /// `obj.age`
    pub age: f64,
    /// `obj.ttl`: the remaining time. A purge of the delivered object changes `ttl`, `grace` and
    /// `keep`.
    pub ttl: Cell<f64>,
    /// `obj.grace`
    pub grace: Cell<f64>,
    /// `obj.keep`
    pub keep: Cell<f64>,
    /// `obj.hits`: 0 for an object that was just fetched.
    pub hits: u32,
    /// `obj.uncacheable`
    pub uncacheable: bool,
    /// `obj.can_esi`
    pub can_esi: bool,
    /// `obj.time`, seconds since 1970.
    pub time: f64,
    /// `obj.storage`
    pub storage: Option<&'a Arc<str>>,
    /// `obj_stale.is_valid`: false after a purge or ban.
    pub is_valid: bool,
}

/// `resp`
pub struct Resp<'a> {
    /// Head of the response.
    pub head: &'a mut Response,
    /// VCL's state beside the head.
    pub state: &'a mut RespState,
}

/// VCL's state of a response beside its head.
#[derive(Clone, Debug, Default)]
pub struct RespState {
    /// `resp.status`: up to 65535.
    pub status: u16,
    /// `resp.proto`, where VCL 4.0 has set it.
    pub proto: Option<Box<[u8]>>,
    /// Body of `vcl_synth`: `resp.body`, `synthetic()`.
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

/// Data of VMODs, by module and object.
type ModuleData = ((&'static str, u32), Box<dyn Any>);

/// State of one task: from request to response on the client side, from request to body on the
/// backend side.
pub struct Task {
    /// Steps (statements and calls) left in the budget.
    pub steps: u64,
    /// Memory left for strings.
    pub workspace: Workspace,
    /// `req.trace` or `bereq.trace` of the running subroutine.
    pub(crate) traced: bool,
    /// The statement that ended the last subroutine: a `return`, or the failed one.
    pub at: Option<StatementNumber>,
    /// The action of that statement, until the subroutine's caller takes it.
    pub(crate) action: Option<Action>,
    /// The last limit that was reached.
    pub limit: Option<Limit>,
    /// Buffers for building strings, kept for reuse.
    buffers: Vec<Vec<u8>>,
    /// Data of VMODs, by module and object.
    kept: Vec<ModuleData>,
}

impl Task {
    /// A task with a budget of `steps`, and `workspace` for its strings.
    pub fn new(steps: u64, workspace: Workspace) -> Self {
        let (buffers, kept) = (Vec::new(), Vec::new());
        let (at, action, limit, traced) = (None, None, None, false);
        Self { steps, workspace, traced, at, action, limit, buffers, kept }
    }

    /// Resets the task for another request; buffers are kept.
    pub fn renew(&mut self, steps: u64, workspace: Workspace) {
        (self.steps, self.at, self.limit) = (steps, None, None);
        self.workspace = workspace;
        self.kept.clear();
    }

    /// An empty buffer; [`Task::give_buffer`] returns it.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.push(buffer);
    }

    /// Drops the data of VMODs, as a rollback does.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    /// The data of `module` under `number` (of an object, or 0), created on first use.
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
