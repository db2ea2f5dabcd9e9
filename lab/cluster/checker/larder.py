"""The Larder nodes of a run: real processes, each in its namespace, killed and stopped as a schedule says."""

import asyncio
import json
import os
import signal
import subprocess

from arena import Arena
from natsd import PORT

ORIGIN_PORT = 8000
DELAYED = 4300
PEERS = 7800


class Node:
    """A node, with a disk below its memory or without."""

    def __init__(self, arena, folder, name, plan):
        self.arena, self.name, self.plan = arena, name, plan
        self.folder = f"{folder}/{name}"
        self.front = Arena.front(name)
        self.process, self.line = None, None
        self.runs = 0
        os.makedirs(self.folder)
        with open(f"{self.folder}/larder.toml", "w") as file:
            file.write(self._config())

    def _config(self):
        plan, servers = self.plan, self.arena.servers
        urls = [f"nats://{Arena.address(at)}:{PORT}" for at in servers]
        if plan["slow"]:
            urls = [f"nats://127.0.0.1:{DELAYED + at}" for at in range(len(servers))]
        disk = f'[disk]\npath = "{self.folder}/disk"\nsize = "256MiB"\nadmission = "all"\n' if plan["disk"] else ""
        sites = "".join(
            f'[[site]]\nhost = "{host}.test"\norigin = "http://{Arena.front("hub")}:{ORIGIN_PORT}"\n'
            f'cache = {{ stale_while_revalidate = "{stale}", stale_if_error = "{stale}", '
            f'stale_if_unreachable = "{stale}" }}\n'
            f'purge = {{ allow = ["0.0.0.0/0"], dialects = ["purge", "fastly", "foshttpcache"] }}\n'
            for host, stale in (
                ("hard", "1h"), ("soft", "0s"),
            )
        )
        peer = f"{Arena.address(self.name)}:{PEERS}"
        shared = f'mode = "share"\npeer = "{peer}"\n' if plan["shares"] else ""
        return (
            f'listen = "{self.front}:80"\nworkers = {plan["workers"]}\nlog_ring = "off"\n'
            f'[memory]\nsize = "64MiB"\n[run]\nuser = "root"\n{disk}'
            f'[limits]\ncluster_wait = "3s"\nkeepalive_requests = 1000000\n'
            f'[cluster]\nservers = {json.dumps(urls)}\nname = "{self.name}"\nreplicas = 3\n'
            f'max_isolation = "{plan["max_isolation_ms"]}ms"\n{shared}{sites}'
        )

    def begin(self):
        """Starts it, with what its disk has kept."""
        if self.process:
            return
        enter = ["nsenter", f"--net=/run/netns/{self.arena.space(self.name)}"]
        if self.plan["slow"] and not self.line:
            here = os.path.dirname(os.path.abspath(__file__))
            targets = [f"{Arena.address(at)}:{PORT}" for at in self.arena.servers]
            line = [*enter, "python3", f"{here}/delay.py", str(DELAYED), *targets]
            self.line = subprocess.Popen(line, stdin=subprocess.PIPE)
        if self.plan["monotonic_s"]:
            # A clock of its own, which is another with each start, as after the restart of a machine. (The wall clock
            # has no namespace, and what `libfaketime` takes the place of is not what the daemon asks.)
            offset = str(self.plan["monotonic_s"] * (1 + self.runs))
            enter += ["unshare", "--time", "--monotonic", offset, "--boottime", offset]
        log = open(f"{self.folder}/log", "ab")
        serve = ["serve", "--config", f"{self.folder}/larder.toml", "--admin-socket", f"{self.folder}/admin.sock"]
        command = [*enter, os.environ["LARDER_BIN"], *serve]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.runs += 1
        log.close()

    def kill(self):
        """Ends it at once."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self, is_paused):
        """Has it stand still, or go on."""
        if self.process:
            self.process.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)

    def slow(self, delay_ms):
        """Has its delay line keep everything for so long."""
        if self.line:
            self.line.stdin.write(f"{delay_ms}\n".encode())
            self.line.stdin.flush()

    async def status(self):
        """What `larder cluster status` is made of; `None` if it does not answer."""
        return await self._admin("GET", "/api/v1/cluster")

    async def order(self, word):
        """Has an operator's word reach it: `leave` or `join`."""
        return await self._admin("POST", "/api/v1/cluster/order", {"order": word})

    async def figure(self, name):
        """A figure of this run of it; 0 if it does not answer."""
        rows = (await self._text("GET", "/metrics") or "").splitlines()
        return int(next((row.split()[1] for row in rows if row.startswith(f"larder_{name} ")), 0))

    async def _admin(self, method, path, body=None):
        text = await self._text(method, path, body)
        try:
            return json.loads(text) if text else None
        except ValueError:
            return None

    async def _text(self, method, path, body=None):
        text = json.dumps(body).encode() if body else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        try:
            reader, writer = await asyncio.open_unix_connection(f"{self.folder}/admin.sock")
            writer.write(head.encode() + text)
            reply = await asyncio.wait_for(reader.read(), 4 if body else 1)
            writer.close()
            return reply.partition(b"\r\n\r\n")[2].decode()
        except (OSError, asyncio.TimeoutError, UnicodeDecodeError):
            return None

    def log(self):
        """What it has said."""
        with open(f"{self.folder}/log", errors="replace") as file:
            return file.read()
