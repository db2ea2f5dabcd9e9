//! The way of a hit through policy, store and delivery: what happens between the bytes read and the
//! bytes written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Limits};
use flow::vcl::{Line, Sight};
use flow::{
    Announce, CertificateFields, CidrSet, Client, Core, Live, Peer, Served, Shared, Site, Start,
};
use h1::encode::{self, BodyFraming, ConnectionHeader};
use message::Request;
use policy::{HostTable, Notes, Policy, ReceiveCtx, ReceiveVerdict};
use vcl::program::{Input, Instance, Program, Rules};
use vcl::source::NoFiles;

use crate::samples::{self, NOW, PLAIN_REQUEST};
use crate::stores;

const CLIENT: Peer = Peer::Host(IpAddr::V4(Ipv4Addr::LOCALHOST));
/// A client on a plain connection.
const PLAIN: Client<'_> = Client { peer: CLIENT, secured: None, line: None };

/// Decides about a request for which a site with three routes has no route.
pub(crate) fn policy(rounds: u32) {
    let site = samples::site();
    let mut request = samples::request(PLAIN_REQUEST);
    for _ in 0..rounds {
        let mut notes = Notes::default();
        let request = black_box(&mut request);
        let mut ctx = ReceiveCtx { request, client: CLIENT, now: NOW, notes: &mut notes };
        let verdict = site.receive(&mut ctx);
        assert!(matches!(verdict, ReceiveVerdict::Lookup));
        black_box(notes);
    }
}

/// From a request that has been read to the reply's head, written.
pub(crate) fn hit(rounds: u32) {
    let mut request = samples::request(PLAIN_REQUEST);
    let core = core(None);
    store_for(&core, &request);
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds {
        out.clear();
        let live = core.live();
        let (start, _) = core.start(&live, black_box(&mut request), &PLAIN, NOW);
        let Start::Reply(reply) = start else {
            panic!("a stored response needs no waiting");
        };
        assert_eq!(reply.served, Served::Hit);
        reply.write_head(&live, &mut out);
        let length = reply.length().expect("a stored body has a length");
        let framing = BodyFraming::Length(length);
        encode::response_tail(&mut out, framing, ConnectionHeader::KeepAliveDefault);
        black_box(&mut out);
    }
}

/// The same through the builtin VCL.
pub(crate) fn hit_vcl(rounds: u32) {
    let text = b"vcl 4.1; backend b none;";
    let rules = Rules { storages: &[], labels: &[], include_depth: 1 };
    let input = Input { name: "builtin", text, loader: &NoFiles, rules };
    let program = Program::compile(&input).expect("it is right").program;
    let core = core(None);
    let (shared, live, log) = (&core.shared, core.shared.live(), RefCell::default());
    let world = Sight::without_request(shared, &live, NOW, &log);
    let instance = program.start(&world, 0.0).expect("it has no vcl_init");
    let core = self::core(Some(instance));
    let mut request = samples::request(PLAIN_REQUEST);
    let mut key = KeyBuf::new();
    for field in [&b"vcl"[..], b"/articles/a-slow-page", b"www.example.com"] {
        key.field(field);
    }
    key.finish(&core.shared.seed);
    stores::put(&core.shared.cache, &key, stores::object(), None);
    let line = Line::default();
    let client = Client { line: Some(&line), ..PLAIN };
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds {
        out.clear();
        let live = core.live();
        let (start, _) = core.start(&live, black_box(&mut request), &client, NOW);
        let Start::Reply(reply) = start else {
            panic!("a stored response needs no waiting");
        };
        assert_eq!(reply.served, Served::Hit);
        reply.write_head(&live, &mut out);
        let length = reply.length().expect("a stored body has a length");
        let framing = BodyFraming::Length(length);
        encode::response_tail(&mut out, framing, ConnectionHeader::KeepAliveDefault);
        black_box(&mut out);
    }
}

/// A core with the sample site as its only one, and an empty store.
fn core(vcl: Option<Arc<Instance>>) -> Rc<Core> {
    let site = Site {
        name: "www.example.com".to_owned(),
        number: 0,
        vcl,
        policy: Arc::new(samples::site()),
        origins: Vec::new(),
        files: Vec::new(),
        beside_scripts: Vec::new(),
        page_caches: Vec::new(),
        accel: Vec::new(),
        client_auth: None,
        certificate_fields: CertificateFields::default(),
        purge: None,
        server_timing: false,
        shows_tags: false,
        hsts: None,
    };
    let mut sites = HostTable::new(samples::seed());
    let site = Arc::new(site);
    sites.insert(&site.name, Arc::clone(&site)).expect("a host name");
    let limits = Limits::default();
    let live = Live {
        sites,
        listed: vec![site],
        tls: None,
        trusted: CidrSet::default(),
        hsts: Vec::new(),
        head_limits: samples::head_limits(),
        limits,
        announce: Announce {
            cache_status: true,
            x_cache: false,
            detail: false,
            server_timing: false,
        },
        tracing: None,
        pseudonym: "larder".to_owned(),
        params: Arc::default(),
        labels: HashMap::new(),
        identity: "".into(),
        hostname: "".into(),
        endpoints: Arc::from([]),
    };
    Core::new(Shared::with_seed(stores::store(1 << 20), live, samples::seed()))
}

/// Stores the sample response where `request` will look for it: the site adds nothing to its keys.
fn store_for(core: &Core, request: &Request) {
    let mut key = KeyBuf::new();
    flow::begin_key(request, &mut key);
    key.finish(&core.shared.seed);
    stores::put(&core.shared.cache, &key, stores::object(), None);
}
