"""Figures of a cluster in namespaces where nothing fails: how soon a purge on one node is effective on the others, and
how many purges a second all nodes apply for how long, with what memory.

  LARDER_BIN=target/release/larder lab/cluster/checker/checker.py --figures [--nodes 10] [--rate 10000] [--seconds 30]

Inside the hub's namespace: figures.py TAG FOLDER NODES ROUNDS RATE SECONDS
"""

import asyncio
import json
import os
import sys
import time

from arena import Arena
from clients import Connection, keys_of, tags_of
from faults import SERVERS
from larder import Node
from natsd import Servers
from origin import Origin
from run import doubts, joined, jetstream, until

PLAN = {"disk": False, "workers": 1, "slow": False, "monotonic_s": 0, "max_isolation_ms": 30_000, "shares": False}
# Purges that are on their way over one connection.
WINDOW = 64


def memory_bytes(node):
    """What a node's process has in memory."""
    with open(f"/proc/{node.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def quantiles(values):
    """The quantiles that are told, in milliseconds."""
    ordered = sorted(values)
    parts = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1))
    return {name: round(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2) for name, part in parts}


async def effective(nodes, origin, rounds):
    """Rounds of a change, a purge on one node, and reads from all others until each shows the change. A time is from
    when the purge was sent to when the first right answer had come: more than the purge took, never less."""
    connections = [Connection(node) for node in nodes]
    key, late, acknowledged, stale = keys_of(0)[0], [], {"local": [], "all": []}, 0
    for at in range(rounds):
        for connection in connections:
            for _ in range(2):
                await connection.ask("GET", key)
        version = origin.raise_version(key)
        begin = time.monotonic()
        level = "all" if at % 4 == 0 else "local"
        status, _, text = await connections[0].ask("PURGE", key, f"Larder-Wait: {level}\r\n")
        assert status == 200, text
        acknowledged[level].append(time.monotonic() - begin)

        async def shows(connection):
            tries = 0
            while True:
                _, _, body = await connection.ask("GET", key)
                if body.split()[-1:] == [str(version)]:
                    return time.monotonic() - begin, tries
                tries += 1

        seen = await asyncio.gather(*(shows(connection) for connection in connections[1:]))
        if level == "local":
            late += [when for when, _ in seen]
        else:
            stale += sum(tries for _, tries in seen)
        connections = connections[1:] + connections[:1]
    return {
        "nodes": len(nodes), "rounds": rounds, "effective_on_the_others_ms": quantiles(late),
        "local_answered_ms": quantiles(acknowledged["local"]), "all_answered_ms": quantiles(acknowledged["all"]),
        "stale_after_all": stale,
    }


async def purge_at(node, key, rate, seconds):
    """Purges over one connection, several on their way at a time; the number that was answered with 200."""
    reader, writer = await asyncio.open_connection(node.front, 80)
    site, _, path = key.partition("/")
    request = f"PURGE /{path} HTTP/1.1\r\nHost: {site}.test\r\nLarder-Wait: local\r\n\r\n".encode()
    sent = done = 0
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        due = min(int(rate * now) - sent, WINDOW)
        if due <= 0:
            await asyncio.sleep(0.002)
            continue
        writer.write(request * due)
        sent += due
        for _ in range(due):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            done += head.startswith(b"HTTP/1.1 200")
    writer.close()
    return done


async def sustained(nodes, rate, seconds):
    """Purges on all nodes, a part of the rate on each; then what each has applied, and memory before and after."""
    async def counts():
        return [(await node.status())["counts"] for node in nodes]

    before, memory = await counts(), [[memory_bytes(node) for node in nodes]]
    begin = time.monotonic()
    for half in range(2):
        part = [purge_at(node, keys_of(0)[0], rate / len(nodes), seconds / 2) for node in nodes]
        done = (done if half else 0) + sum(await asyncio.gather(*part))
        memory.append([memory_bytes(node) for node in nodes])
    lasted = time.monotonic() - begin

    async def all_applied():
        after = await counts()
        return after if all(own["applied"] - was["applied"] >= done for own, was in zip(after, before)) else None

    waited = time.monotonic()
    try:
        after = await until("not all is applied", 60, all_applied)
    except RuntimeError:
        after = await counts()
    mib = [[round(own / (1 << 20), 1) for own in row] for row in memory]
    return {
        "answered": done, "seconds": round(lasted, 2), "rate": round(done / lasted),
        "applied": [own["applied"] - was["applied"] for own, was in zip(after, before)],
        "overflows": sum(own["overflows"] for own in after), "doubts": doubts(nodes),
        "caught_up_s": round(time.monotonic() - waited, 2),
        "memory_mib": {"before": mib[0], "half way": mib[1], "after": mib[2]},
    }


async def main(tag, folder, count, rounds, rate, seconds):
    arena = Arena(tag, count, SERVERS)
    servers = Servers(arena, folder)
    nodes = [Node(arena, folder, name, PLAN) for name in arena.nodes]
    tags = tags_of(1)
    origin = Origin(tags, tags, 0, late=False)
    await origin.start()
    for server in arena.servers:
        servers.begin(server)
    await until("JetStream has no leader", 60, lambda: jetstream(arena))
    for node in nodes:
        node.begin()
    await until("the nodes have not joined", 60, lambda: joined(nodes))
    result = {"purge": await effective(nodes, origin, rounds)}
    if seconds:
        result["sustained"] = await sustained(nodes, rate, seconds)
    print(json.dumps(result, indent=1), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])))
