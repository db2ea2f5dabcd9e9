//! Hits on their way through policy, cache and delivery: everything between the bytes read and the
//! bytes written.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use base::{Account, KeyBuf, Limits};
use cache::{CacheLookup, Flags};
use codec::Coding;
use flow::purge::PurgeContext;
use flow::tier::Cache;
use flow::vcl::VclConnection;
use flow::{
    CacheOutcome, Client, ConnectionPeer, CoreState, LiveConfiguration, ProxyFields, SharedState,
    Site, SiteTable, Start,
};
use h1::encode::{self, BodyFraming, ConnectionHeader};
use message::{ClassifiedClient, Request};
use policy::{Notes, Policy, ReceiveCtx, ReceiveVerdict, StoreUse};

use crate::samples::{self, BROWSER_REQUEST, NOW, PLAIN_REQUEST};
use crate::stores;

const CLIENT: ConnectionPeer = ConnectionPeer::Host(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// The policy's decision for a request that matches none of three routes.
pub(crate) fn policy(rounds: u32) {
    let site = samples::site();
    let mut request = samples::request(PLAIN_REQUEST);
    for _ in 0..rounds {
        let mut notes = Notes::default();
        let request = black_box(&mut request);
        let mut ctx = ReceiveCtx {
            request,
            client: CLIENT,
            now: NOW,
            store: StoreUse::ByRules,
            notes: &mut notes,
        };
        let verdict = site.receive(&mut ctx);
        assert!(matches!(verdict, ReceiveVerdict::Lookup));
        black_box(notes);
    }
}

/// A hit, from the parsed request to the written head.
pub(crate) fn hit(rounds: u32) {
    let mut request = samples::request(PLAIN_REQUEST);
    let core = core();
    store_for(&core, &request);
    serve(rounds, &core, &mut request, None);
}

/// A browser's hit on a body without coded forms, as a baseline.
pub(crate) fn hit_browser(rounds: u32) {
    hit_with(rounds, BROWSER_REQUEST, |_| {}, None);
}

/// A browser's hit on a body that is stored as gzip and delivered as such.
pub(crate) fn hit_coded(rounds: u32) {
    hit_with(rounds, BROWSER_REQUEST, in_gzip, None);
}

/// A browser's hit on such a body with a form in the coding that the browser prefers.
pub(crate) fn hit_form(rounds: u32) {
    hit_with(rounds, BROWSER_REQUEST, in_gzip, Some(Coding::Brotli));
}

/// A hit on uncompressed text by a client without Accept-Encoding.
pub(crate) fn hit_text(rounds: u32) {
    hit_with(rounds, PLAIN_REQUEST, as_text, None);
}

/// A browser's hit on text that has no coded form yet.
pub(crate) fn hit_text_browser(rounds: u32) {
    hit_with(rounds, BROWSER_REQUEST, as_text, None);
}

/// A browser's hit on text with a gzip form.
pub(crate) fn hit_text_gzip(rounds: u32) {
    hit_with(rounds, BROWSER_REQUEST, as_text, Some(Coding::Gzip));
}

fn in_gzip(flags: &mut Flags) {
    (flags.coding, flags.negotiated) = (Coding::Gzip, true);
}

fn as_text(flags: &mut Flags) {
    flags.negotiated = true;
}

/// Adds a form to the object under `key`.
fn put_form(cache: &Cache, key: &KeyBuf, coding: Coding) {
    let CacheLookup::Object(object) = cache.lookup(key, &mut |_, _| {}, NOW.mono_ms) else {
        panic!("it has been stored");
    };
    let (number, effort) = (coding as usize, 2);
    assert!(cache.begin_form(&object, number, effort));
    assert!(cache.put_form(&object, key.hash(), number, effort, samples::BODY.to_vec()));
}

fn hit_with(rounds: u32, wire: &[u8], change: impl FnOnce(&mut Flags), form: Option<Coding>) {
    let mut request = samples::request(wire);
    let mut live = live(site());
    // There is no runtime in which a further form could be made.
    live.limits.coding_time = 0;
    let core =
        CoreState::new(SharedState::with_seed(stores::store(1 << 20), live, samples::seed()));
    let mut key = KeyBuf::new();
    flow::begin_key(&request, &mut key);
    key.finish(&core.shared.seed);
    let mut new = stores::object();
    change(&mut new.flags);
    stores::put(&core.shared.cache, &key, new, None);
    if let Some(coding) = form {
        put_form(&core.shared.cache, &key, coding);
    }
    serve(rounds, &core, &mut request, None);
}

/// A hit on `site` by `client`, whose class has been found before.
pub(crate) fn hit_of(rounds: u32, site: Site, wire: &[u8], client: Option<ClassifiedClient>) {
    let mut request = samples::request(wire);
    request.client = client;
    let store = stores::store(1 << 20);
    let core = CoreState::new(SharedState::with_seed(store, live(site), samples::seed()));
    store_for(&core, &request);
    serve(rounds, &core, &mut request, None);
}

/// A purge, from its URL to the key's removal.
pub(crate) fn purge_url(rounds: u32) {
    let request = samples::request(PLAIN_REQUEST);
    let core = core();
    let live = core.live();
    let site = &live.sites.listed[0];
    let page = PurgeContext { live: &live, site, request: &request, client: CLIENT, now: NOW };
    for _ in 0..rounds {
        let purge =
            pin!(core.shared.invalidator.purge_url(&page, black_box(&request.target), false, None));
        let purged = purge.poll(&mut Context::from_waker(Waker::noop()));
        assert!(purged.is_ready(), "a key is removed without waiting");
        _ = black_box(purged);
    }
}

/// Serves `request`, which is a hit, over a cleartext connection that VCL programs see as `line`.
pub(crate) fn serve(
    rounds: u32,
    core: &Rc<CoreState>,
    request: &mut Request,
    vcl_connection: Option<&VclConnection>,
) {
    let account = Account::open(core.shared.cache.memory(), u64::MAX);
    let client =
        &Client { peer: CLIENT, near: false, secured: None, vcl_connection, account: &account };
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds {
        out.clear();
        let live = core.live();
        let (start, _) = core.start(&live, black_box(&mut *request), client, NOW);
        let Start::Reply(reply) = start else {
            panic!("a stored response needs no waiting");
        };
        assert_eq!(reply.served, CacheOutcome::Hit);
        reply.write_head(&live, &mut out);
        let length = reply.length().expect("a stored body has a length");
        let framing = BodyFraming::Length(length);
        encode::response_tail(&mut out, framing, ConnectionHeader::KeepAliveDefault);
        black_box(&mut out);
    }
}

/// A core with the sample site only, and an empty cache.
fn core() -> Rc<CoreState> {
    CoreState::new(SharedState::with_seed(stores::store(1 << 20), live(site()), samples::seed()))
}

/// The sample site.
pub(crate) fn site() -> Site {
    Site::new("www.example.com", Arc::new(samples::site()))
}

/// A configuration with this site only.
pub(crate) fn live(site: Site) -> LiveConfiguration {
    let mut sites = SiteTable::new(samples::seed());
    let site = Arc::new(site);
    sites.by_host.insert(&site.name, Arc::clone(&site)).expect("a host name");
    sites.listed.push(site);
    let announce = ProxyFields { cache_status: true, ..ProxyFields::new("larder") };
    LiveConfiguration { announce, ..LiveConfiguration::new(sites, Limits::default()) }
}

/// Stores the sample response under the key of `request`. The site adds nothing to keys.
fn store_for(core: &CoreState, request: &Request) {
    let mut key = KeyBuf::new();
    flow::begin_key(request, &mut key);
    key.finish(&core.shared.seed);
    stores::put(&core.shared.cache, &key, stores::object(), None);
}
