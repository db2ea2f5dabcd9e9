//! Balancing: selects the server for a request.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Balance;
use crate::health::EjectionState;
use crate::server::Server;

/// The balancer of an origin's servers.
#[derive(Debug)]
pub(crate) struct Balancer {
    how: Balance,
    /// The debt to each server, for the round robin. The lock is taken for misses only, and held
    /// for one pass over a short list.
    owed: Mutex<Vec<i64>>,
}

impl Balancer {
    pub(crate) fn new(how: Balance, servers: usize) -> Self {
        Self { how, owed: Mutex::new(vec![0; servers]) }
    }

    /// Selects the server for a request with `hash` that the servers in `tried` have failed; `None`
    /// if probes report every server sick.
    ///
    /// In this order: a half-open server whose trial is due; one in use that was not tried; both of
    /// these among the backups; one in use; then ejected ones, since an earlier failure does not
    /// prove that the next request fails, too (nginx does this when all peers are down).
    pub(crate) fn pick(
        &self,
        servers: &[Arc<Server>],
        hash: u64,
        tried: &[usize],
        now_ms: u64,
    ) -> Option<usize> {
        let of = BalanceContext { servers, hash, now_ms };
        self.pick_by(&of, tried, |server| server.claim_trial(now_ms))
    }

    /// The server that [`Balancer::pick`] would select now; changes no state.
    pub(crate) fn likely(&self, servers: &[Arc<Server>], hash: u64, now_ms: u64) -> Option<usize> {
        let copy = Self { how: self.how, owed: Mutex::new(self.owed.lock().clone()) };
        copy.pick_by(&BalanceContext { servers, hash, now_ms }, &[], |_| true)
    }

    /// As [`Balancer::pick`]; `claims` claims the trial of a half-open server.
    fn pick_by(
        &self,
        of: &BalanceContext<'_>,
        tried: &[usize],
        claims: impl Fn(&Server) -> bool,
    ) -> Option<usize> {
        let BalanceContext { servers, now_ms, .. } = *of;
        let is = |at: usize, backup: bool| servers[at].config.backup == backup;
        let open = |at: usize| {
            !servers[at].is_sick() && servers[at].standing(now_ms) == EjectionState::Open
        };
        let fresh = |at: usize| !tried.contains(&at);
        let trial = |backup| {
            let due = |at: &usize| is(*at, backup) && is_due(&servers[*at], now_ms);
            (0..servers.len()).filter(due).find(|at| claims(&servers[*at]))
        };
        let usable = |backup| {
            trial(backup).or_else(|| self.choose(of, |at| is(at, backup) && fresh(at) && open(at)))
        };
        let first = |may: &dyn Fn(usize) -> bool| {
            self.choose(of, |at| is(at, false) && may(at))
                .or_else(|| self.choose(of, |at| is(at, true) && may(at)))
        };
        usable(false)
            .or_else(|| usable(true))
            .or_else(|| first(&open))
            .or_else(|| first(&|at| fresh(at) && !servers[at].is_sick()))
            .or_else(|| first(&|at| !servers[at].is_sick()))
    }

    fn choose(
        &self,
        of: &BalanceContext<'_>,
        may: impl Fn(usize) -> bool + Clone,
    ) -> Option<usize> {
        let servers = of.servers;
        let candidates = (0..servers.len()).filter(|at| may(*at));
        match self.how {
            Balance::RoundRobin => {
                // A server without free slots is skipped while another has some; if none has,
                // requests queue in turn.
                let roomy = |at: &usize| may(*at) && servers[*at].has_room();
                self.in_turn(of, (0..servers.len()).filter(roomy))
                    .or_else(|| self.in_turn(of, candidates))
            }
            Balance::LeastRequests => self.least(of, candidates),
            Balance::Hash => candidates
                .map(|at| (score(&servers[at], of.hash, of.now_ms), at))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, at)| at),
        }
    }

    /// Smooth weighted round robin: every candidate is credited its weight, and the one with the
    /// largest credit is selected and pays for all. Servers of large weight are selected often, but
    /// not consecutively.
    fn in_turn(
        &self,
        of: &BalanceContext<'_>,
        candidates: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let mut owed = self.owed.lock();
        let mut all = 0;
        let mut chosen: Option<usize> = None;
        for at in candidates {
            let weight = of.servers[at].weight(of.now_ms) as i64;
            all += weight;
            owed[at] += weight;
            if chosen.is_none_or(|best| owed[at] > owed[best]) {
                chosen = Some(at);
            }
        }
        if let Some(at) = chosen {
            owed[at] -= all;
        }
        chosen
    }

    /// Those with the fewest exchanges for their weight, in turn.
    fn least(
        &self,
        of: &BalanceContext<'_>,
        candidates: impl Iterator<Item = usize> + Clone,
    ) -> Option<usize> {
        let load = |at: usize| {
            let server = &of.servers[at];
            (u64::from(server.in_flight()), server.weight(of.now_ms))
        };
        // Exchanges by weight, compared without the division.
        let order = |a: (u64, u64), b: (u64, u64)| (a.0 * b.1).cmp(&(b.0 * a.1));
        let least = candidates.clone().map(load).min_by(|a, b| order(*a, *b))?;
        self.in_turn(of, candidates.filter(|at| order(load(*at), least).is_le()))
    }
}

/// The servers to select from, the request's hash, and the time.
struct BalanceContext<'a> {
    servers: &'a [Arc<Server>],
    hash: u64,
    now_ms: u64,
}

/// Returns true if a trial of an ejected server is due.
fn is_due(server: &Server, now_ms: u64) -> bool {
    !server.is_sick() && server.standing(now_ms) == EjectionState::HalfOpen
}

/// Rendezvous hashing with weights: the server with the highest score gets the request. A server's
/// score depends on itself and the hash only, so that a server that leaves moves only its own
/// share.
fn score(server: &Server, hash: u64, now_ms: u64) -> f64 {
    // A double has 53 bits; the half keeps the logarithm off zero.
    let uniform = ((mix(hash ^ server.seed) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -(server.weight(now_ms) as f64) / uniform.ln()
}

/// The finalizer of splitmix64: every bit of the input moves every bit of the output.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
