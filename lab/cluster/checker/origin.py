"""The origin of a run: a version for each key, in the body and as ETag, which the writers raise.

A response says the version that was current when the request came, also where it is sent late: as a page does that an
application has begun to render before an edit.
"""

import asyncio
import random

from arena import Arena
from larder import ORIGIN_PORT


class Origin:
    """Versions by key (`host/path`), and a server that says them."""

    def __init__(self, keys, tags, seed, late=True):
        self.versions = dict.fromkeys(keys, 1)
        self.tags = tags
        self.rng = random.Random(f"{seed} origin")
        # The part of responses that is late.
        self.late = 0.2 if late else 0
        # Addresses of nodes for which it is away.
        self.refused = set()
        self.asked = self.confirmed = 0

    async def start(self):
        """Listens on the front bridge."""
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: _Connection(self), Arena.front("hub"), ORIGIN_PORT, backlog=512)

    def raise_version(self, key):
        """A change of a page: from here on nobody is given the version before. Returns the new one."""
        self.versions[key] += 1
        return self.versions[key]

    def reply(self, head):
        """The response to a request, and by how much it is late."""
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        path = lines[0].split()[1]
        key = fields["host"].partition(".")[0] + path
        self.asked += 1
        late_s = self.rng.uniform(0.02, 0.4) if self.rng.random() < self.late else 0
        version = self.versions.get(key)
        if version is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 0
        common = f'ETag: "{version}"\r\nCache-Control: max-age=600\r\nSurrogate-Key: {self.tags[key]}\r\n'
        if fields.get("if-none-match") == f'"{version}"':
            self.confirmed += 1
            return f"HTTP/1.1 304 Not Modified\r\n{common}\r\n".encode(), late_s
        body = f"{key} {version}\n"
        head = f"HTTP/1.1 200 OK\r\n{common}Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode(), late_s


class _Connection(asyncio.Protocol):
    def __init__(self, origin):
        self.origin, self.read = origin, b""

    def connection_made(self, transport):
        self.transport = transport
        self.peer = transport.get_extra_info("peername")[0]

    def data_received(self, data):
        self.read += data
        while b"\r\n\r\n" in self.read:
            head, _, self.read = self.read.partition(b"\r\n\r\n")
            if self.peer in self.origin.refused:
                self.transport.abort()
                return
            reply, late_s = self.origin.reply(head)
            if late_s:
                asyncio.get_running_loop().call_later(late_s, self._send, reply)
            else:
                self._send(reply)

    def _send(self, reply):
        if not self.transport.is_closing():
            self.transport.write(reply)
