//! Fixtures for tests and fuzz targets: the messages of one task, and an environment and a
//! connection that record calls. A daemon must never use them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Limit};
use bytes::Bytes;
use message::{HeaderBlock, Request, Response, Status};

use crate::input::{CompileSettings, Input, ProgramRole};
use crate::params::Params;
use crate::rules::lifetime::{self, Lifetime};
use crate::source::NoFiles;
use crate::state::backend::{Backend, BackendSpec, Leaf};
use crate::state::ctx::{
    Bereq, BereqState, Beresp, BerespState, Connection, ConnectionTimeouts, Ctx, Obj, Req,
    ReqState, Resp, RespState, Session, Task, TcpInfo,
};
use crate::state::environment::{ProgramEnvironment, PurgeMode};
use crate::state::program::{Instance, Program};
use crate::sub::{Action, Sub, TaskSide};
use crate::tag::Tag;
use crate::vmod::VmodState;
use crate::workspace::Workspace;

/// The time in these tests: Sun, 06 Nov 1994 08:49:37.5 GMT.
pub const NOW: f64 = 784_111_777.5;

/// Compiles `text` without includes, with storages `s0` and `Transient` and a label `other`.
///
/// # Errors
/// The compiler's messages.
pub fn compile(text: &str) -> Result<Arc<Program>, String> {
    compile_all(text).map(|compiled| compiled.program)
}

/// Compiles `text` like [`compile`], and returns the warnings too.
///
/// # Errors
/// The compiler's messages.
pub fn compile_all(text: &str) -> Result<crate::state::program::CompilationResult, String> {
    compile_as(text, ProgramRole::Whole)
}

/// Compiles `text` for this part in a site.
///
/// # Errors
/// The compiler's messages.
pub fn compile_as(
    text: &str,
    role: ProgramRole,
) -> Result<crate::state::program::CompilationResult, String> {
    Program::compile(&Input {
        name: "test.vcl",
        text: text.as_bytes(),
        loader: &NoFiles,
        rules: CompileSettings {
            storages: &["s0", "Transient"],
            labels: &["other"],
            include_depth: 10,
            unused_is_error: true,
            role,
        },
    })
}

/// Fixture of one task: all that a subroutine may see, with distinct values.
pub struct SubroutineFixture {
    /// The program.
    pub instance: Arc<Instance>,
    /// The environment.
    pub environment: RecordingEnvironment,
    /// Seconds since 1970.
    pub now: f64,
    /// The session.
    pub session: Session,
    /// Connection of the session.
    pub connection: Rc<RecordingConnection>,
    /// State of the task.
    pub task: Task,
    /// `req`
    pub req: Request,
    /// State of `req`.
    pub req_state: ReqState,
    /// `req` as received.
    pub req_original: Request,
    /// `bereq`
    pub bereq: Request,
    /// State of `bereq`.
    pub bereq_state: BereqState,
    /// `bereq` as first made.
    pub bereq_original: Request,
    /// `beresp`
    pub beresp: Response,
    /// State of `beresp`.
    pub beresp_state: BerespState,
    /// `obj`
    pub obj: Obj<'static>,
    /// `resp`
    pub resp: Response,
    /// State of `resp`.
    pub resp_state: RespState,
    /// The key that `hash_data` has appended to.
    pub key: KeyBuf,
}

/// The head of `obj` in a [`SubroutineFixture`].
pub const OBJ_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Obj: stored\r\n";

impl SubroutineFixture {
    /// A fixture for the program `text`, whose `vcl_init` has run.
    ///
    /// # Errors
    /// The message of the compiler or of `vcl_init`.
    pub fn of(text: &str) -> Result<Self, String> {
        let environment = RecordingEnvironment::default();
        let instance = compile(text)?.start(&environment, NOW)?;
        Ok(Self { environment, ..Self::with(instance) })
    }

    /// A fixture for a program with only a backend `b`.
    pub fn bare() -> Self {
        let spec =
            BackendSpec { host: "127.0.0.1".into(), port: "80".into(), ..BackendSpec::default() };
        Self::with(Instance::of_backends(vec![Backend::Leaf(Leaf::new("b", spec))]))
    }

    /// A fixture for `instance`.
    pub fn with(instance: Arc<Instance>) -> Self {
        let mut req = Request::new();
        req.target = b"/path?q=1".to_vec();
        req.host = b"example.com".to_vec();
        req.headers.push_named(b"Host", b"example.com");
        req.headers.push_named(b"X-Req", b"asked");
        let mut bereq = req.clone();
        bereq.headers.push_named(b"X-Bereq", b"fetched");
        let mut beresp = Response::new(Status::OK);
        beresp.headers.push_named(b"X-Beresp", b"answered");
        let mut resp = Response::new(Status::OK);
        resp.headers.push_named(b"X-Resp", b"delivered");
        let hint = instance.default_backend().clone();
        let connection = Rc::<RecordingConnection>::default();
        Self {
            environment: RecordingEnvironment::default(),
            now: NOW,
            session: Session { control: Some(connection.clone()), ..session() },
            connection,
            task: Task::new(10_000, Workspace::of(64 << 10)),
            req_original: req.clone(),
            req_state: ReqState {
                backend_hint: hint.clone(),
                time: NOW - 1.0,
                xid: 1001,
                ..ReqState::default()
            },
            req,
            bereq_original: bereq.clone(),
            bereq_state: BereqState {
                backend: hint,
                time: NOW - 0.5,
                xid: 1002,
                ..BereqState::default()
            },
            bereq,
            beresp,
            beresp_state: BerespState {
                status: 200,
                ttl: 120.0,
                grace: 10.0,
                do_stream: true,
                time: NOW - 0.25,
                ..BerespState::default()
            },
            obj: Obj {
                head: OBJ_HEAD,
                status: 200,
                age: 7.0,
                ttl: 113.0.into(),
                grace: 10.0.into(),
                hits: 3,
                time: NOW - 7.0,
                ..Obj::default()
            },
            resp,
            resp_state: RespState { status: 200, time: NOW - 0.125, ..RespState::default() },
            key: KeyBuf::new(),
            instance,
        }
    }

    /// The context of `sub`, with the messages that Varnish shows it.
    pub fn ctx(&mut self, sub: Sub) -> Ctx<'_> {
        let client = sub.side() == TaskSide::Client;
        let backend = sub.side() == TaskSide::Backend;
        let has_resp = matches!(sub, Sub::Deliver | Sub::Synth);
        let has_obj = matches!(sub, Sub::Hit | Sub::Deliver | Sub::BackendRefresh);
        let has_beresp =
            matches!(sub, Sub::BackendRefresh | Sub::BackendResponse | Sub::BackendError);
        Ctx {
            sub,
            instance: &self.instance,
            environment: &self.environment,
            now: self.now,
            session: &mut self.session,
            task: &mut self.task,
            req: client.then_some(Req {
                head: &mut self.req,
                state: &mut self.req_state,
                original: Some(&self.req_original),
                key: Some(b"key"),
            }),
            req_top: None,
            bereq: (backend || sub == Sub::Pipe).then_some(Bereq {
                head: &mut self.bereq,
                state: &mut self.bereq_state,
                original: Some(&self.bereq_original),
                key: b"key",
            }),
            beresp: has_beresp
                .then_some(Beresp { head: &mut self.beresp, state: &mut self.beresp_state }),
            obj: has_obj.then_some(&self.obj),
            resp: has_resp.then_some(Resp { head: &mut self.resp, state: &mut self.resp_state }),
            key: (sub == Sub::Hash).then_some(&mut self.key),
        }
    }

    /// Runs `sub`.
    pub fn run(&mut self, sub: Sub) -> Action {
        let instance = Arc::clone(&self.instance);
        instance.run(&mut self.ctx(sub))
    }

    /// Location at which the last subroutine returned or failed: `test.vcl:7`.
    pub fn place(&self) -> String {
        let mut text = Vec::new();
        if let Some(at) = self.task.at {
            self.instance.program().write_place(at, &mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A session from 192.0.2.7 to 203.0.113.1.
pub fn session() -> Session {
    let client = SocketAddr::from(([192, 0, 2, 7], 40000));
    let server = SocketAddr::from(([203, 0, 113, 1], 80));
    Session {
        client: Some(client),
        server: Some(server),
        remote: Some(client),
        local: Some(server),
        identity: None,
        endpoint: "203.0.113.1:80".into(),
        socket: "a0".into(),
        xid: 1000,
        tls: None,
        peer: None,
        control: None,
    }
}

/// A connection that records calls. Its kernel knows `reno` and `cubic`.
#[derive(Debug)]
pub struct RecordingConnection {
    /// The timeouts.
    pub times: Cell<ConnectionTimeouts>,
    /// The type of service.
    pub tos: Cell<u8>,
    /// The congestion control algorithm.
    pub congestion: RefCell<String>,
    /// The kernel's measurements; `None` if reading them fails.
    pub measured: Cell<Option<TcpInfo>>,
    /// Limit in bytes per second.
    pub pace: Cell<u64>,
}

impl Default for RecordingConnection {
    fn default() -> Self {
        Self {
            times: Cell::default(),
            tos: Cell::default(),
            congestion: RefCell::new("cubic".to_owned()),
            measured: Cell::default(),
            pace: Cell::default(),
        }
    }
}

impl Connection for RecordingConnection {
    fn times(&self) -> ConnectionTimeouts {
        self.times.get()
    }

    fn set_times(&self, times: ConnectionTimeouts) {
        self.times.set(times);
    }

    fn set_tos(&self, tos: u8) -> io::Result<()> {
        self.tos.set(tos);
        Ok(())
    }

    fn set_congestion(&self, algorithm: &str) -> io::Result<()> {
        if !matches!(algorithm, "reno" | "cubic") {
            return Err(io::ErrorKind::NotFound.into());
        }
        algorithm.clone_into(&mut self.congestion.borrow_mut());
        Ok(())
    }

    fn congestion(&self) -> io::Result<String> {
        Ok(self.congestion.borrow().clone())
    }

    fn measured(&self) -> io::Result<TcpInfo> {
        self.measured.get().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn set_pace(&self, bytes_per_second: u64) {
        self.pace.set(bytes_per_second);
    }
}

/// An environment that records calls.
#[derive(Default)]
pub struct RecordingEnvironment {
    /// State of VMODs.
    pub shared: VmodState,
    /// Log lines.
    pub log: RefCell<Vec<(Tag, Vec<u8>)>>,
    /// Lines of the system log.
    pub syslog: RefCell<Vec<(i64, Vec<u8>)>>,
    /// Bans.
    pub bans: RefCell<Vec<String>>,
    /// Purges of the request's key.
    pub purges: RefCell<Vec<(Vec<u8>, PurgeMode)>>,
    /// Purges by surrogate keys; true for soft ones.
    pub key_purges: RefCell<Vec<(Vec<Vec<u8>>, bool)>>,
    /// Number of reads of the clock.
    pub looks: Cell<u32>,
    /// Result of every call of `random`.
    pub random: f64,
    /// Files by path.
    pub files: HashMap<String, Bytes>,
    /// Environment variables.
    pub env: HashMap<String, Bytes>,
    /// Addresses by host name.
    pub hosts: HashMap<String, Vec<SocketAddr>>,
    /// The request body.
    pub body: Option<Vec<u8>>,
    /// Limits that were reached.
    pub limits: RefCell<Vec<Limit>>,
    /// Parameters by name.
    pub params: HashMap<String, f64>,
}

impl ProgramEnvironment for RecordingEnvironment {
    fn shared(&self) -> &VmodState {
        &self.shared
    }

    fn log(&self, tag: Tag, text: &[u8]) {
        self.log.borrow_mut().push((tag, text.to_vec()));
    }

    fn syslog(&self, priority: i64, text: &[u8]) {
        self.syslog.borrow_mut().push((priority, text.to_vec()));
    }

    fn ban(&self, expression: &str) -> Result<(), String> {
        if !expression.contains([' ', '=', '~']) {
            return Err("Expected conditional".to_string());
        }
        self.bans.borrow_mut().push(expression.to_string());
        Ok(())
    }

    fn purge(&self, key: &[u8], mode: PurgeMode) -> Result<u64, String> {
        self.purges.borrow_mut().push((key.to_vec(), mode));
        Ok(1)
    }

    fn purge_keys(&self, keys: &[&[u8]], soft: bool) -> Result<u64, String> {
        let owned = keys.iter().map(|key| key.to_vec()).collect();
        self.key_purges.borrow_mut().push((owned, soft));
        Ok(keys.len() as u64)
    }

    fn clock(&self) -> f64 {
        // Each read is a second later.
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        NOW + f64::from(looks)
    }

    fn lifetime(&self, status: u16, headers: &HeaderBlock, now: f64) -> Lifetime {
        lifetime::of(status, headers, now, &Params::default())
    }

    fn random(&self) -> f64 {
        self.random
    }

    fn env(&self, name: &str) -> Option<Bytes> {
        self.env.get(name).cloned()
    }

    fn file(&self, path: &str) -> Option<Bytes> {
        self.files.get(path).cloned()
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes> {
        let file = self.file(path).ok_or(io::ErrorKind::NotFound)?;
        if file.len() as u64 > bytes_max {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(file)
        }
    }

    fn resolve(&self, host: &str, port: &str) -> Vec<SocketAddr> {
        let port = port.parse().unwrap_or(80);
        let with_port = |address: &SocketAddr| SocketAddr::new(address.ip(), port);
        match host.parse() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => self
                .hosts
                .get(host)
                .map(|all| all.iter().map(with_port).collect())
                .unwrap_or_default(),
        }
    }

    fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    fn keep_body(&self, bytes_max: u64) -> bool {
        self.body.as_ref().is_none_or(|body| body.len() as u64 <= bytes_max)
    }

    fn param(&self, name: &str) -> Option<f64> {
        self.params.get(name).copied()
    }

    fn has_feature(&self, flag: &str) -> bool {
        self.params.contains_key(flag)
    }

    fn storage(&self, name: &str) -> Option<(u64, u64)> {
        (name == "s0").then_some((1000, 24))
    }

    fn limit(&self, limit: Limit) {
        self.limits.borrow_mut().push(limit);
    }

    fn hostname(&self) -> &str {
        "host.example"
    }

    fn identity(&self) -> &str {
        "larder"
    }
}
