"""One run, inside the hub's namespace: starts everything, plays a seed's faults while clients change, purge and read,
heals, waits until all have caught up, and prints what it found as one line of JSON.

  run.py SEED TAG FOLDER

`checker.py` starts it in namespaces of its own, for processes too: whatever it leaves behind ends with it.
"""

import asyncio
import gzip
import json
import os
import random
import re
import sys
import time
from dataclasses import asdict

from arena import Arena
from clients import Clients, Connection, tags_of
from faults import SERVERS, Faults, draw
from history import History
from larder import Node
from natsd import Servers, ask
from origin import Origin

WRITERS = 5
READERS_EACH = 2
STARTS_S, RECOVERS_S, CATCHES_UP_S = 60, 60, 60


class Broken(RuntimeError):
    """What the run needs did not come up: nothing is known of Larder."""


async def until(what, seconds, condition, pause_s=0.05):
    """Waits for a condition; returns what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := await condition():
            return found
        await asyncio.sleep(pause_s)
    raise Broken(what)


async def jetstream(arena):
    """Returns true if JetStream has a leader, which a server then knows."""
    try:
        answer = ask(Arena.address(random.choice(arena.servers)), "$JS.API.STREAM.NAMES")
        return "error" not in await asyncio.wait_for(answer, 0.5)
    except (OSError, asyncio.TimeoutError, ValueError, asyncio.IncompleteReadError):
        return False


async def joined(nodes):
    """Returns true if all nodes are in touch and know each other."""
    for node in nodes:
        if node.process.poll() is not None:
            raise Broken(f"{node.name} has ended: {node.log()}")
        status = await node.status()
        if not status or not (status["connected"] and status["trusted"]):
            return False
        if sum(own["live"] for own in status["members"]) < len(nodes):
            return False
    return True


def doubts(nodes):
    """The reasons for which nodes had everything validated, each with the number of times."""
    found = {}
    for node in nodes:
        for why in re.findall(r"validated before it is used again: (.*)", node.log()):
            found[why] = found.get(why, 0) + 1
    return found


class Run:
    """A run."""

    def __init__(self, seed, tag, folder):
        self.plan = draw(seed)
        self.seed, self.folder = seed, folder
        self.began = time.monotonic()
        self.arena = Arena(tag, len(self.plan["nodes"]), SERVERS)
        small = self.arena.servers if any(own["kind"].startswith("full") for own in self.plan["faults"]) else ()
        self.servers = Servers(self.arena, folder, small)
        self.nodes = [Node(self.arena, folder, own["name"], own) for own in self.plan["nodes"]]
        tags = tags_of(WRITERS)
        self.origin = Origin(tags, tags, seed)
        self.history = History([node.name for node in self.nodes], self.plan["max_isolation_ms"] / 1000)
        self.faults = Faults(
            self.plan, self.arena, self.servers, self.nodes, self.origin, self.history, self.clock
        )
        self.clients = Clients(seed, self.nodes, self.origin, self.history, self.clock, WRITERS)
        self.result = {"seed": seed, "faults": [own["kind"] for own in self.plan["faults"]]}

    def clock(self):
        """Seconds since the run began."""
        return time.monotonic() - self.began

    async def start(self):
        """Starts everything, and waits until all nodes know each other."""
        await self.origin.start()
        for server in self.arena.servers:
            self.servers.begin(server)
        await until("JetStream has no leader", STARTS_S, lambda: jetstream(self.arena))
        for node in self.nodes:
            node.begin()
        await until("the nodes have not joined", STARTS_S, lambda: joined(self.nodes))

    async def play(self):
        """Clients and faults, then healing and what follows."""
        clients = self.clients
        readers = [
            asyncio.create_task(clients.reader(node, at)) for node in self.nodes for at in range(READERS_EACH)
        ]
        writers = [asyncio.create_task(clients.writer(number)) for number in range(WRITERS)]
        await asyncio.sleep(0.3)
        await self.faults.play()
        healed = self.clock()
        self.faults.note("healed")
        clients.writing = False
        if self.faults.for_good():
            await asyncio.gather(*writers)
            last = max([own.ended for own in self.history.purges if own.status == 200], default=0)
            await asyncio.sleep(max(0, last + self.history.max_isolation_s + 1 - self.clock()))
        else:
            await asyncio.gather(self.catch_up(healed), *writers)
            # What was answered last has been told, too.
            await self.settle()
        await self.read_all()
        self.result["shared"] = sum([await node.figure("peers_found_total") for node in self.nodes])
        clients.reading = False
        await asyncio.gather(*readers)

    async def catch_up(self, healed):
        """Waits until all nodes have applied all there is; how long that took is a figure."""
        watched = asyncio.create_task(self._watch(healed))
        info = await until("the stream has no leader", RECOVERS_S, self.servers.stream)
        up = self.clock()
        self.result["stream_up_s"] = round(up - healed, 3)
        self.faults.note(f"the stream is led by {info['cluster']['leader']}")
        try:
            times = await watched
        except Broken:
            self.result["never"] = {node.name: await node.status() for node in self.nodes}
            return
        self.result["caught_up_s"] = {name: round(max(0, at - up), 3) for name, at in times.items()}
        self.result["healed_s"] = {name: round(max(0, at - healed), 3) for name, at in times.items()}
        self.faults.note("all have caught up")

    async def settle(self):
        """Waits until what has been answered is applied by all: from here on nothing may be lost."""
        if "never" not in self.result:
            try:
                await self._watch(self.clock())
            except Broken:
                self.result["never"] = {node.name: await node.status() for node in self.nodes}
                return
            self.history.converged = self.clock()
            self.faults.note("nothing is on its way")

    async def _watch(self, healed):
        """The moments from which on each node was in touch, trusted, and had nothing left to tell or to apply."""
        since = {}

        async def look():
            states = await asyncio.gather(*(node.status() for node in self.nodes))
            last = max((own["last"] for own in states if own), default=0)
            for node, own in zip(self.nodes, states):
                good = own and own["connected"] and own["trusted"] and own["queued"] == 0 and own["sequence"] >= last
                since[node.name] = since.get(node.name) or self.clock() if good else None
            if not all(since.values()):
                return None
            info = await self.servers.stream()
            at_end = info and all(own["sequence"] == info["state"]["last_seq"] for own in states)
            return dict(since) if at_end else None

        return await until("the nodes have not caught up", RECOVERS_S + CATCHES_UP_S, look, 0.02)

    async def read_all(self):
        """Reads every key from every node."""
        async def one(node):
            connection = Connection(node)
            for key in self.clients.keys:
                for _ in range(2):
                    await self.clients.read(connection, key)
            connection.close()

        await asyncio.gather(*(one(node) for node in self.nodes))

    def judge(self):
        """What is found, into the result."""
        history = self.history
        found = history.violations()
        statuses = {}
        for own in history.purges:
            word = f"{own.level} {own.status}"
            statuses[word] = statuses.get(word, 0) + 1
        self.result |= {
            "violations": len(found),
            "promises": sorted({own["promise"] for own in found}),
            "reads": sum(own.status == 200 for own in history.reads),
            "hits": sum("; hit" in own.how for own in history.reads),
            "failed": sum(own.status not in (0, 200) for own in history.reads),
            "foreign": sum(own.version < 0 for own in history.reads),
            "purges": statuses,
            "confirmed": self.origin.confirmed,
            "doubts": doubts(self.nodes),
            "seconds": round(self.clock(), 1),
        }
        if found:
            shown = sorted(found, key=lambda own: own["read"]["sent"])[:3]
            self.result["shown"] = [
                [f"{own['promise']} since {own['since']:.3f}: wanted {own['wanted']}, {own['read']}"]
                + history.around(own)
                for own in shown
            ]
        return found

    def keep(self):
        """Writes the whole history into the run's folder."""
        history = self.history
        with gzip.open(f"{self.folder}/history.json.gz", "wt") as file:
            json.dump({
                "plan": self.plan, "events": history.events, "purges": [asdict(own) for own in history.purges],
                "reads": [asdict(own) for own in history.reads], "converged": history.converged,
            }, file)


async def main(seed, tag, folder):
    run = Run(seed, tag, folder)
    try:
        await run.start()
        await run.play()
    except Broken as why:
        run.result["broken"] = str(why)
    run.judge()
    run.keep()
    panics = [node.name for node in run.nodes if "panicked" in node.log()]
    if panics:
        run.result["panics"] = panics
    print(json.dumps(run.result), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])))
