//! Programs: hits under VCL, and compilation.

use std::cell::RefCell;
use std::hint::black_box;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use flow::vcl::{ProgramWorld, VclConnection};
use flow::{CoreState, LiveConfiguration, SharedState};
use vcl::program::{CompileSettings, Input, Instance, Program, ProgramRole};
use vcl::source::Loader;

use crate::hits::{self, live, site};
use crate::samples::{self, NOW, PLAIN_REQUEST};
use crate::stores;

/// A site's VCL of 400 lines, as operators write it; benchmarks use it, too.
const SITE: &str = include_str!("../../../lab/bench/site.vcl");
const BUILTIN: &str = "vcl 4.1; backend default none;";

/// A loader with one name and no file.
struct FixedLoader;

impl Loader for FixedLoader {
    fn load(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("there is no {name}"))
    }

    fn glob(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let address = if name == "localhost" { "127.0.0.1" } else { name };
        address.parse().map(|address| vec![address]).map_err(|_| format!("there is no {name}"))
    }
}

fn site_program() -> String {
    SITE.replace("{port}", "8080")
}

fn compiled(text: &str) -> Arc<Program> {
    let rules = CompileSettings {
        storages: &["s0"],
        labels: &[],
        include_depth: 10,
        unused_is_error: true,
        role: ProgramRole::Whole,
    };
    let input = Input { name: "default.vcl", text: text.as_bytes(), loader: &FixedLoader, rules };
    Program::compile(&input).expect("a right program").program
}

/// A hit under the builtin VCL alone.
pub(crate) fn hit_builtin(rounds: u32) {
    hit(rounds, BUILTIN, &[b"vcl", b"/articles/a-slow-page", b"www.example.com"]);
}

/// A hit under a site's VCL.
pub(crate) fn hit_site(rounds: u32) {
    let key: &[&[u8]] = &[b"vcl", b"/articles/a-slow-page", b"www.example.com", b"desktop"];
    hit(rounds, &site_program(), key);
}

/// Compiles five programs of 400 lines.
pub(crate) fn compile(rounds: u32) {
    let text = site_program();
    for _ in 0..5 * rounds {
        black_box(compiled(black_box(&text)));
    }
}

fn hit(rounds: u32, text: &str, key: &[&[u8]]) {
    let core = core(text);
    let mut stored = KeyBuf::new();
    key.iter().for_each(|part| stored.field(part));
    stored.finish(&core.shared.seed);
    stores::put(&core.shared.cache, &stored, stores::object(), None);
    let line = VclConnection::default();
    hits::serve(rounds, &core, &mut samples::request(PLAIN_REQUEST), Some(&line));
}

/// A core whose only site runs the program.
fn core(text: &str) -> Rc<CoreState> {
    let shared = SharedState::with_seed(stores::store(1 << 20), live(site()), samples::seed());
    let instance = started(&shared, &shared.live(), text);
    shared.replace(live(flow::Site { vcl: Some(instance), ..site() }));
    CoreState::new(shared)
}

fn started(shared: &Arc<SharedState>, live: &LiveConfiguration, text: &str) -> Arc<Instance> {
    let log = RefCell::default();
    let world = ProgramWorld::without_request(shared, live, NOW, &log);
    compiled(text).start(&world, NOW.unix_ms as f64 / 1000.0).expect("it starts")
}
