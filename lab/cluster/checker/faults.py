"""Faults: what a seed draws, and how each is done and undone.

A schedule is decided by its seed alone, before anything runs. Which server leads a stream is found out when the fault
begins.
"""

import asyncio
import random

# Each seed has one of these first, in turn, and up to two of any.
KINDS = (
    "cut", "one-way-out", "one-way-in", "flap", "island", "nats-cut", "nats-split", "kill", "kill-leader", "kill-nats",
    "kill-nats-for-good", "stop", "stop-nats", "skew", "full", "full-all", "slow", "leave",
    "wipe-nats",
)
# Decision 29 names the one case in which `all` can miss a node: cards are lost together with the run that knew them.
NOT_WITH_WIPE = ("kill", "skew", "wipe-nats")
SERVERS = 3
# The time in which faults happen.
LENGTH_S = 6.0


def seeds_of(kind, first, count):
    """Seeds whose first fault is of a kind; of any, if none is named."""
    if kind is None:
        return range(first, first + count)
    first += (KINDS.index(kind) - first) % len(KINDS)
    return range(first, first + count * len(KINDS), len(KINDS))


def draw(seed):
    """What a seed decides: nodes and faults, as a dict that JSON takes."""
    rng = random.Random(seed)
    count = rng.choice([3, 3, 4, 5])
    isolation_ms = rng.choice([1000, 2000, 2000, 3000])
    nodes = []
    for at in range(1, count + 1):
        nodes.append({
            "name": f"n{at}", "disk": rng.random() < 0.4, "workers": rng.choice([1, 2]), "slow": False,
            "monotonic_s": rng.choice([0, 0, 1000, 10_000_000]), "max_isolation_ms": isolation_ms,
        })
    faults = []
    for at in range(rng.choice([1, 2, 2, 3])):
        kind = KINDS[seed % len(KINDS)] if at == 0 else rng.choice(KINDS)
        drawn = {kind, *(fault["kind"] for fault in faults)}
        if "wipe-nats" in drawn and any(own["kind"] in NOT_WITH_WIPE or kind in NOT_WITH_WIPE for own in faults):
            continue
        begin = rng.uniform(0.2, 2.5)
        longest = LENGTH_S - begin
        fault = {
            "kind": kind, "at": round(begin, 3), "for": round(rng.uniform(min(0.4, longest), longest), 3),
            "node": rng.randrange(count), "server": rng.choice([None, None, 0, 1, 2]),
            "way": rng.choice([1, -1]), "times": rng.choice([1, 2]), "seed": rng.randrange(1 << 30),
        }
        plan = nodes[fault["node"]]
        if kind == "skew":
            plan["monotonic_s"] = 60 * fault["way"]
        plan["slow"] |= kind == "slow"
        faults.append(fault)
    faults.sort(key=lambda fault: fault["at"])
    # Every second cluster shares what it stores.
    shares = rng.random() < 0.5
    for plan in nodes:
        plan["shares"] = shares
    return {"seed": seed, "nodes": nodes, "faults": faults, "max_isolation_ms": isolation_ms}


class Faults:
    """Does a schedule's faults to what runs."""

    def __init__(self, plan, arena, servers, nodes, origin, history, clock):
        self.plan, self.arena, self.servers, self.nodes = plan, arena, servers, nodes
        self.origin, self.history, self.clock = origin, history, clock
        self.is_over = False

    def note(self, what):
        """Writes down what is done."""
        self.history.events.append((self.clock(), what))

    def for_good(self):
        """Returns true if NATS does not come back."""
        return any(fault["kind"] == "kill-nats-for-good" for fault in self.plan["faults"])

    async def play(self):
        """Plays the schedule from now on. All is undone at its end."""
        begin = self.clock()
        await asyncio.gather(*(self._one(fault, begin) for fault in self.plan["faults"]))

    async def _one(self, fault, begin):
        await asyncio.sleep(max(0, begin + fault["at"] - self.clock()))
        action = getattr(self, "_" + fault["kind"].replace("-", "_"))
        node = self.nodes[fault["node"]]
        server = await self._server(fault)
        until = begin + fault["at"] + fault["for"]
        about = f"{fault['kind']} {node.name} {server}"
        self.note(f"{about} begins")
        await action(fault, node, server, lambda: asyncio.sleep(max(0, until - self.clock())))
        self.note(f"{about} ends")

    async def _server(self, fault):
        """The name of the server that a fault means: one, or the one that leads the stream of entries."""
        at = fault["server"]
        leader = await self.servers.leader() if at is None else None
        return leader or self.arena.servers[at or 0]

    def kill(self, node):
        """Kills a node, and remembers it."""
        if node.process:
            self.history.killed[(node.name, node.runs)] = self.clock()
            node.kill()

    async def _cut(self, _, node, __, over):
        self.arena.link(node.name, False)
        await over()
        self.arena.link(node.name, True)

    async def _island(self, _, node, __, over):
        self.arena.link(node.name, False)
        self.origin.refused.add(node.front)
        await over()
        self.origin.refused.discard(node.front)
        self.arena.link(node.name, True)

    async def _one_way_out(self, _, node, __, over):
        for server in self.arena.servers:
            self.arena.mute(node.name, server, True)
        await over()
        for server in self.arena.servers:
            self.arena.mute(node.name, server, False)

    async def _one_way_in(self, _, node, __, over):
        for server in self.arena.servers:
            self.arena.mute(server, node.name, True)
        await over()
        for server in self.arena.servers:
            self.arena.mute(server, node.name, False)

    async def _flap(self, fault, node, _, over):
        rng = random.Random(fault["seed"])
        ended = asyncio.ensure_future(over())
        while not ended.done():
            self.arena.link(node.name, False)
            await asyncio.sleep(rng.uniform(0.05, 0.5))
            self.arena.link(node.name, True)
            await asyncio.sleep(rng.uniform(0.05, 0.5))

    async def _nats_cut(self, _, __, server, over):
        self.arena.link(server, False)
        await over()
        self.arena.link(server, True)

    async def _nats_split(self, _, __, server, over):
        others = [other for other in self.arena.servers if other != server]
        pairs = [pair for other in others for pair in ((server, other), (other, server))]
        for sender, receiver in pairs:
            self.arena.mute(sender, receiver, True)
        await over()
        for sender, receiver in pairs:
            self.arena.mute(sender, receiver, False)

    async def _kill(self, fault, node, _, over):
        for _ in range(fault["times"] - 1):
            self.kill(node)
            await asyncio.sleep(0.1)
            node.begin()
            await asyncio.sleep(0.4)
        self.kill(node)
        await over()
        node.begin()

    async def _kill_leader(self, _, __, server, over):
        self.servers.kill(server)
        await over()
        self.servers.begin(server)

    async def _kill_nats(self, _, __, ___, over):
        for server in self.arena.servers:
            self.servers.kill(server)
        await over()
        for server in self.arena.servers:
            self.servers.begin(server)

    async def _wipe_nats(self, fault, node, _, over):
        if fault["times"] > 1:
            # What is purged meanwhile the node can never be told by the stream.
            self.arena.link(node.name, False)
            await asyncio.sleep(fault["for"] / 2)
        for server in self.arena.servers:
            self.servers.kill(server)
        await over()
        for server in self.arena.servers:
            self.servers.kill(server)
            self.servers.wipe(server)
        for server in self.arena.servers:
            self.servers.begin(server)
        self.arena.link(node.name, True)

    async def _kill_nats_for_good(self, _, __, ___, over):
        for server in self.arena.servers:
            self.servers.kill(server)
        await over()
        # Other faults may have begun some of them again.
        for server in self.arena.servers:
            self.servers.kill(server)

    async def _stop(self, fault, node, _, over):
        rng = random.Random(fault["seed"])
        if fault["times"] > 1:
            # Many short ones: between any two steps of the process.
            ended = asyncio.ensure_future(over())
            while not ended.done():
                node.pause(True)
                await asyncio.sleep(rng.uniform(0.01, 0.4))
                node.pause(False)
                await asyncio.sleep(rng.uniform(0.001, 0.05))
            return
        node.pause(True)
        await over()
        node.pause(False)

    async def _stop_nats(self, _, __, server, over):
        self.servers.pause(server, True)
        await over()
        self.servers.pause(server, False)

    async def _skew(self, _, node, __, over):
        # What its disk has kept was written under another clock.
        self.kill(node)
        node.begin()
        await over()

    async def _full(self, _, __, server, over):
        self.servers.fill(server, True)
        await over()
        self._make_room(server)

    async def _full_all(self, _, __, ___, over):
        for server in self.arena.servers:
            self.servers.fill(server, True)
        await over()
        for server in self.arena.servers:
            self._make_room(server)

    def _make_room(self, server):
        """A server that has found its disk full stores nothing until it is started again."""
        self.servers.fill(server, False)
        self.servers.kill(server)
        self.servers.begin(server)

    async def _slow(self, fault, node, _, over):
        node.slow(random.Random(fault["seed"]).choice([20, 100, 300, 800]))
        if fault["times"] > 1:
            # Cut off with answers on their way.
            await asyncio.sleep(fault["for"] / 3)
            self.arena.link(node.name, False)
        await over()
        self.arena.link(node.name, True)
        node.slow(0)

    async def _leave(self, fault, node, _, over):
        await node.order("leave")
        if fault["times"] > 1:
            # Nobody waits for it, and nothing reaches it.
            self.arena.link(node.name, False)
        await over()
        self.arena.link(node.name, True)
        await node.order("join")
