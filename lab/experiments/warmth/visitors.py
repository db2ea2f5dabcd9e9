"""Visitors of a site of many pages, some of which are popular; a line of JSON for each request: when it was due, and how
long it took until the response was whole, in seconds.

    visitors.py PORT SECONDS REQUESTS_PER_SECOND PAGES SEED
    visitors.py PORT SECONDS crawler PAGES CONNECTIONS

A page's rank says how often visitors ask for it (Zipf's law). Each request is due at a moment of its own, whatever the
server answers, and its time begins when it is due. The crawler asks for one page after the other over its connections, and
counts.
"""

import asyncio
import bisect
import itertools
import json
import random
import sys
import time

PATIENCE = 30


class Connections:
    """Connections that are kept."""

    def __init__(self, port):
        self.port, self.idle = port, []

    async def ask(self, path):
        """The status of a response, once it is whole; 0 without one."""
        try:
            return await asyncio.wait_for(self.exchange(path), PATIENCE)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
            return 0

    async def exchange(self, path):
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: lab.localhost\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        self.idle.append((reader, writer))
        return int(head[9:12])


async def visit(connections, path, due, began):
    status = await connections.ask(path)
    print(json.dumps([due - began, time.monotonic() - due, status]))


async def visitors(port, seconds, rate, pages, seed):
    chance, connections = random.Random(seed), Connections(port)
    sums = list(itertools.accumulate(1 / rank for rank in range(1, pages + 1)))
    began = time.monotonic()
    due, visits = began, set()
    while due < began + seconds:
        await asyncio.sleep(max(0, due - time.monotonic()))
        rank = bisect.bisect(sums, chance.random() * sums[-1])
        # Popular pages are spread over the whole site, not at its beginning.
        path = f"/page/{rank * 7919 % pages}"
        one = asyncio.create_task(visit(connections, path, due, began))
        visits.add(one)
        one.add_done_callback(visits.discard)
        due += 1 / rate
    if visits:
        await asyncio.wait(visits)


async def crawler(port, seconds, pages, number):
    connections, left, until = Connections(port), iter(range(pages)), time.monotonic() + seconds
    got = 0

    async def go():
        nonlocal got
        for page in left:
            if time.monotonic() > until:
                return
            got += await connections.ask(f"/page/{page}") == 200

    await asyncio.gather(*(go() for _ in range(number)))
    print(json.dumps({"got": got}))


port, seconds, kind, pages, last = sys.argv[1:]
if kind == "crawler":
    asyncio.run(crawler(int(port), int(seconds), int(pages), int(last)))
else:
    asyncio.run(visitors(int(port), int(seconds), int(kind), int(pages), int(last)))
