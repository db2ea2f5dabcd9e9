//! The faults of a simulated cluster, and their end.

use super::events::{SimulatedFault, SimulationEvent};
use super::simulated_cluster::SimulatedCluster;

impl SimulatedCluster {
    pub(super) fn trouble(&mut self) {
        let most_ms = self.shape.trouble_ms;
        if most_ms == 0 || self.now_ms >= self.shape.troubles_ms {
            return;
        }
        let in_ms = self.rng.u64(most_ms / 40..most_ms);
        self.later(in_ms, SimulationEvent::Trouble);
        let trouble = self.drawn();
        self.begin(trouble);
        let in_ms = self.rng.u64(50..3 * self.shape.max_isolation_ms);
        // After that, all faults are healed.
        let left_ms = self.shape.troubles_ms - self.now_ms;
        self.later(in_ms.min(left_ms), SimulationEvent::Heal(trouble));
    }

    fn drawn(&mut self) -> SimulatedFault {
        let at = self.rng.usize(..self.nodes.len());
        if self.shape.has_twin && (at + 1 == self.nodes.len() || self.rng.u8(..4) == 0) {
            let twin = self.nodes.len() - 1;
            let of_it = [
                SimulatedFault::CutOut(twin),
                SimulatedFault::CutIn(twin),
                SimulatedFault::Stop(twin),
            ];
            return match self.nodes[twin].up {
                true => of_it[self.rng.usize(..3)],
                false => SimulatedFault::Twin(twin),
            };
        }
        if self.shape.loses_often && self.rng.u8(..3) > 0 {
            return [SimulatedFault::ServerLoses, SimulatedFault::CutIn(at)][self.rng.usize(..2)];
        }
        let regions = self.shape.regions;
        if regions > 1 && self.rng.u8(..10) == 0 {
            let ways = [(true, true), (true, true), (true, false), (false, true)];
            let region = self.rng.usize(1..regions);
            return SimulatedFault::CutRegion(region, ways[self.rng.usize(..4)]);
        }
        let most = if self.nodes.len() > 10 && self.rng.u8(..4) > 0 { 6 } else { 10 };
        match self.rng.u8(..most) {
            0 => SimulatedFault::CutOut(at),
            1 => SimulatedFault::CutIn(at),
            2 => SimulatedFault::Cut(at),
            3 => SimulatedFault::Stop(at),
            4 => SimulatedFault::Crash(at),
            5 => SimulatedFault::Leave(at),
            6 => SimulatedFault::ServerLoses,
            7 => SimulatedFault::ServerAnew,
            8 => SimulatedFault::ServerAway,
            _ => SimulatedFault::Expire,
        }
    }

    fn begin(&mut self, trouble: SimulatedFault) {
        match trouble {
            SimulatedFault::CutOut(at) => self.nodes[at].cut.0 = true,
            SimulatedFault::CutIn(at) => self.nodes[at].cut.1 = true,
            SimulatedFault::Cut(at) => self.nodes[at].cut = (true, true),
            SimulatedFault::Stop(at) => self.nodes[at].stopped = true,
            SimulatedFault::Crash(at) => self.nodes[at].up = false,
            SimulatedFault::Leave(at) => self.nodes[at].follower.leave(),
            SimulatedFault::Twin(at) => self.start(at),
            SimulatedFault::CutRegion(region, ways) => self.network.cut[region] = ways,
            SimulatedFault::ServerAway => self.server.up = false,
            SimulatedFault::ServerLoses => {
                let lost = self.rng.usize(..=self.server.log.len().min(3));
                let kept = self.server.log.len() - lost;
                self.server.lost.extend(self.server.log.drain(kept..).map(|own| own.entry.id));
                self.server.first = self.server.first.min(self.server.log.len() as u64 + 1);
                self.server.subscriptions.clear();
                self.server.up = false;
                self.server.clock.is_anothers();
            }
            SimulatedFault::ServerAnew => {
                self.server.epoch += 1;
                self.server.log.clear();
                self.server.first = 1;
                self.server.subscriptions.clear();
            }
            SimulatedFault::Expire => {
                let (first, last) = (self.server.first, self.server.log.len() as u64 + 1);
                self.server.first = self.rng.u64(first..=last);
            }
        }
    }

    pub(super) fn heal(&mut self, trouble: SimulatedFault) {
        match trouble {
            SimulatedFault::CutOut(at) | SimulatedFault::CutIn(at) | SimulatedFault::Cut(at) => {
                self.nodes[at].cut = (false, false);
                self.anew(at);
            }
            SimulatedFault::CutRegion(region, _) => {
                self.network.cut[region] = (false, false);
                for at in 0..self.nodes.len() {
                    if self.network.region_of(at) == region {
                        self.anew(at);
                    }
                }
            }
            SimulatedFault::Stop(at) => self.go_on(at),
            SimulatedFault::Crash(at) => self.start(at),
            SimulatedFault::Twin(at) => self.nodes[at].up = false,
            SimulatedFault::Leave(at) => {
                let clock = self.nodes[at].clock(self.now_ms);
                self.nodes[at].follower.come_back(clock);
            }
            SimulatedFault::ServerAway | SimulatedFault::ServerLoses => self.server.up = true,
            SimulatedFault::ServerAnew | SimulatedFault::Expire => {}
        }
    }

    /// Starts a node, as a new run.
    fn start(&mut self, at: usize) {
        let new_run = 1_000_000 + self.order;
        self.nodes[at].restart(new_run, self.shape.max_isolation_ms);
        self.server.subscriptions.remove(&at);
        self.later(1, SimulationEvent::Tick(at, new_run));
    }

    /// Gives a node a new connection, with a new session.
    fn anew(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.subscription = 0;
        (node.name_state.is_known, node.name_state.shown) = (false, None);
    }

    /// Continues a stopped process. It first serves requests.
    fn go_on(&mut self, at: usize) {
        self.nodes[at].stopped = false;
        if self.nodes[at].up {
            (0..3).for_each(|_| self.serve_at(at));
        }
        for what in std::mem::take(&mut self.nodes[at].held) {
            if self.nodes[at].up {
                self.at_node(at, what);
            }
        }
    }
}
