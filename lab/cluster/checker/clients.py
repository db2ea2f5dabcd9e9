"""Clients of a run: readers, which ask each node for keys over and over, and writers, which change keys at the origin,
have a node purge them and wait for its answer."""

import asyncio
import random

from history import Purge, Read

# The keys of a writer at each of the sites: `hard` has grace and stale-if-error for an hour, `soft` none of either, as a soft
# purge may be answered from grace.
KEYS_EACH = 2
PATIENCE_S = 8


def keys_of(writer):
    """The keys that a writer changes; nobody else does."""
    return [f"{site}/w{writer}-{at}" for site in ("hard", "soft") for at in range(KEYS_EACH)]


def tags_of(writers):
    """The tags of each key: one of its own, and one of its writer and site."""
    tags = {}
    for writer in range(writers):
        for key in keys_of(writer):
            site, _, path = key.partition("/")
            tags[key] = f"{path} {site}-w{writer}"
    return tags


class Connection:
    """A connection to a node, opened again where it was closed."""

    def __init__(self, node):
        self.node = node
        self.reader = self.writer = None

    def close(self):
        """Closes it."""
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def ask(self, method, key, fields=""):
        """Asks, and reads the answer: status, fields and body. A connection that fails is closed."""
        site, _, path = key.partition("/")
        request = f"{method} /{path} HTTP/1.1\r\nHost: {site}.test\r\n{fields}\r\n".encode()
        try:
            return await asyncio.wait_for(self._ask(request), PATIENCE_S)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError, IndexError):
            self.close()
            return 0, {}, ""

    async def _ask(self, request):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.node.front, 80)
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            self.close()
        return int(head[0].split()[1]), fields, body.decode()


class Clients:
    """All clients of a run."""

    def __init__(self, seed, nodes, origin, history, clock, writers):
        self.seed, self.nodes, self.origin = seed, nodes, origin
        self.history, self.clock, self.writers = history, clock, writers
        self.keys = list(origin.versions)
        self.reading = self.writing = True

    async def read(self, connection, key):
        """Reads a key once."""
        sent = self.clock()
        status, fields, body = await connection.ask("GET", key)
        version = 0
        if status == 200:
            said, _, number = body.strip().partition(" ")
            version = int(number) if said == key else -1
        own = Read(sent, self.clock(), connection.node.name, key, status, version, fields.get("cache-status", ""))
        self.history.reads.append(own)
        return own

    async def reader(self, node, number):
        """Reads until it is told to end."""
        rng = random.Random(f"{self.seed} reader {node.name} {number}")
        connection = Connection(node)
        while self.reading:
            read = await self.read(connection, rng.choice(self.keys))
            await asyncio.sleep(rng.uniform(0.002, 0.02) if read.status else 0.1)
        connection.close()

    async def writer(self, number):
        """Changes its keys and purges them until it is told to end."""
        rng = random.Random(f"{self.seed} writer {number}")
        own, last = keys_of(number), None
        while self.writing:
            node = rng.choice(self.nodes)
            level = rng.choice(["all"] * 5 + ["quorum"] * 4 + ["local"])
            site = rng.choice(["hard", "soft"])
            keys = [key for key in own if key.startswith(site)]
            kinds = ["url", "tag", "group", "regex", "ban"] if site == "hard" else ["url", "soft-url", "soft-group"]
            # Once more soon, while what was asked for behind the first purge is still on its way.
            key = last if last in keys and rng.random() < 0.5 else rng.choice(keys)
            await self.purge(node, rng.choice(kinds), level, key, keys)
            last = key
            await asyncio.sleep(rng.uniform(0.0, 0.08))

    async def purge(self, node, kind, level, key, group):
        """Changes a key, or its group, and purges it."""
        site, _, path = key.partition("/")
        method, target, fields = "PURGE", key, f"Larder-Wait: {level}\r\n"
        changed = group if kind.endswith("group") else [key]
        if kind.startswith("soft"):
            fields += "Fastly-Soft-Purge: 1\r\n"
        if kind == "tag":
            fields += f"Surrogate-Key: {path}\r\n"
        if kind.endswith("group"):
            fields += f"Surrogate-Key: {site}-{path.partition('-')[0]}\r\n"
        if kind == "regex":
            fields += "X-Purge-Method: regex\r\n"
        if kind == "ban":
            method = "BAN"
            fields += f"X-Host: {site}.test\r\nX-Url: ^/{path}$\r\nX-Content-Type: .*\r\n"
        versions = {own: self.origin.raise_version(own) for own in changed}
        connection = Connection(node)
        run, sent = node.runs, self.clock()
        status, _, text = await connection.ask(method, target, fields)
        connection.close()
        self.history.purges.append(
            Purge(sent, self.clock(), node.name, run, kind, level, versions, status, text)
        )
