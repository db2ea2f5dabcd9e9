//! The choice of the server that gets a request.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Balance;
use crate::health::EjectionState;
use crate::server::Server;

/// Chooses among an origin's servers.
#[derive(Debug)]
pub(crate) struct Balancer {
    how: Balance,
    /// The debt to each server, for the round robin. The lock is taken for misses only, and held
    /// for a pass over a short list.
    owed: Mutex<Vec<i64>>,
}

impl Balancer {
    pub(crate) fn new(how: Balance, servers: usize) -> Self {
        Self { how, owed: Mutex::new(vec![0; servers]) }
    }

    /// The server for a request of `hash` that the servers in `tried` failed already; `None` if
    /// probes call every server sick.
    ///
    /// In this order: a half-open server whose trial is due; an open one not tried yet; an open
    /// one; then those ejected for failed requests, since a failure in the past is no proof that
    /// the next request fails too (nginx does the same when all peers are down).
    pub(crate) fn pick(
        &self,
        servers: &[Arc<Server>],
        hash: u64,
        tried: &[usize],
        now_ms: u64,
    ) -> Option<usize> {
        let due = |at: &usize| is_due(&servers[*at], now_ms);
        let trial = (0..servers.len()).filter(due).find(|at| servers[*at].claim_trial(now_ms));
        trial.or_else(|| self.pick_standing(servers, hash, tried, now_ms))
    }

    /// The server that [`Balancer::pick`] would choose now, without any being chosen.
    pub(crate) fn likely(&self, servers: &[Arc<Server>], hash: u64, now_ms: u64) -> Option<usize> {
        let trial = (0..servers.len()).find(|at| is_due(&servers[*at], now_ms));
        let copy = || Self { how: self.how, owed: Mutex::new(self.owed.lock().clone()) };
        trial.or_else(|| copy().pick_standing(servers, hash, &[], now_ms))
    }

    /// [`Balancer::pick`] where no trial is due.
    fn pick_standing(
        &self,
        servers: &[Arc<Server>],
        hash: u64,
        tried: &[usize],
        now_ms: u64,
    ) -> Option<usize> {
        let open = |s: &Server| !s.is_sick() && s.standing(now_ms) == EjectionState::Open;
        let fresh = |at: &usize| !tried.contains(at);
        let of = BalanceContext { servers, hash, now_ms };
        self.choose(&of, |at| fresh(&at) && open(&servers[at]))
            .or_else(|| self.choose(&of, |at| open(&servers[at])))
            .or_else(|| self.choose(&of, |at| fresh(&at) && !servers[at].is_sick()))
            .or_else(|| self.choose(&of, |at| !servers[at].is_sick()))
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
                // A server at its bound is passed over while another has room; when none has,
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

    /// Smooth weighted round robin: every candidate is owed its weight, the one owed most is chosen
    /// and pays for all. Servers of large weight come often but not in a row.
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

/// Of what is chosen, for which request, and when.
struct BalanceContext<'a> {
    servers: &'a [Arc<Server>],
    hash: u64,
    now_ms: u64,
}

/// Returns true if an ejected server is to be tried again.
fn is_due(server: &Server, now_ms: u64) -> bool {
    !server.is_sick() && server.standing(now_ms) == EjectionState::HalfOpen
}

/// Rendezvous hashing with weights: the server with the highest score gets the request. Each
/// server's score depends on itself and the hash alone, so that only the share of a server that
/// leaves moves.
fn score(server: &Server, hash: u64, now_ms: u64) -> f64 {
    // 53 bits are what a double holds; the half keeps the logarithm off zero.
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
