//! The world as a program sees it that is only rehearsed: what can be looked at is there, and what
//! would change something is noted instead.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ban::Expression;
use base::Limit;
use bytes::Bytes;
use policy::told::shown;
use vcl::ctx::{Purging, Tag, World};
use vcl::told::Line;

use crate::live::{Live, Shared};
use crate::vcl::outside::Outside;

/// The world of a rehearsal.
pub(super) struct Onlooker<'a> {
    shared: &'a Shared,
    live: &'a Live,
    /// Memory of VMODs: nothing yet, and nobody else's.
    memory: vcl::vmod::Shared,
    /// Lines logged since they were last taken.
    pub(super) log: RefCell<Vec<Line>>,
    /// Actions that the program would have caused.
    pub(super) would: RefCell<Vec<String>>,
}

impl<'a> Onlooker<'a> {
    pub(super) fn new(shared: &'a Shared, live: &'a Live) -> Self {
        let memory = vcl::vmod::Shared::new(&live.limits);
        Self { shared, live, memory, log: RefCell::default(), would: RefCell::default() }
    }

    fn outside(&self) -> Option<Arc<Box<dyn Outside>>> {
        self.shared.vcl.outside()
    }

    fn note(&self, what: String) {
        self.would.borrow_mut().push(what);
    }
}

impl World for Onlooker<'_> {
    fn shared(&self) -> &vcl::vmod::Shared {
        &self.memory
    }

    fn log(&self, tag: Tag, text: &[u8]) {
        self.log.borrow_mut().push((tag, text.into()));
    }

    fn syslog(&self, _: i64, text: &[u8]) {
        self.note(format!("write to syslog: {}", shown(text)));
    }

    fn ban(&self, expression: &str) -> Result<(), String> {
        Expression::of_program(expression).map_err(|error| error.to_string())?;
        self.note(format!("ban {expression}"));
        Ok(())
    }

    fn purge(&self, _: &[u8], how: Purging) -> Result<u64, String> {
        self.note(match how {
            Purging::Hard => "purge what is stored under its key".to_owned(),
            Purging::Soft { .. } => "shorten the times of what is stored under its key".to_owned(),
        });
        Ok(0)
    }

    fn purge_keys(&self, keys: &[&[u8]], _: bool) -> Result<u64, String> {
        let keys: Vec<String> = keys.iter().map(|key| shown(key)).collect();
        self.note(format!("purge what has one of the keys {}", keys.join(", ")));
        Ok(0)
    }

    fn random(&self) -> f64 {
        self.shared.vcl.random.next()
    }

    fn env(&self, name: &str) -> Option<Bytes> {
        self.outside()?.env(name)
    }

    fn file(&self, path: &str) -> Option<Bytes> {
        self.outside()?.file(path)
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes> {
        self.outside().ok_or(io::ErrorKind::NotFound)?.read(path, bytes_max)
    }

    fn exists(&self, path: &str) -> bool {
        self.outside().is_some_and(|outside| outside.exists(path))
    }

    fn resolve(&self, host: &str, port: &str) -> Vec<SocketAddr> {
        let known = self.outside().and_then(|outside| outside.resolve(host, port, false).ok());
        known.unwrap_or_default()
    }

    fn body(&self) -> Option<&[u8]> {
        None
    }

    fn keep_body(&self, _: u64) -> bool {
        false
    }

    fn param(&self, name: &str) -> Option<f64> {
        self.live.params.by_name(name)
    }

    fn has_feature(&self, word: &str) -> bool {
        self.live.params.has_feature(word)
    }

    fn storage(&self, name: &str) -> Option<(u64, u64)> {
        self.outside()?.storage(name)
    }

    /// Nothing is counted.
    fn limit(&self, _: Limit) {}

    fn hostname(&self) -> &str {
        &self.live.hostname
    }

    fn identity(&self) -> &str {
        &self.live.identity
    }
}
