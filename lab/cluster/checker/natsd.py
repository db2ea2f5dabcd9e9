"""The NATS servers of a run, and the little of NATS' protocol with which the checker asks them itself."""

import asyncio
import json
import os
import shutil
import signal
import subprocess

from arena import Arena

STREAMS = ("larder-invalidations", "larder-members")
PORT, ROUTES = 4222, 6222


def program():
    """The server that `NATS_SERVER` names, or the one on the path."""
    named = os.environ.get("NATS_SERVER")
    return named or shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Servers:
    """Three servers as one cluster, each in its namespace."""

    def __init__(self, arena, folder, small_disk=()):
        self.arena, self.folder = arena, folder
        self.running = {}
        for name in arena.servers:
            os.makedirs(self.store(name))
            if name in small_disk:
                mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", self.store(name)]
                subprocess.run(mount, check=True)
            with open(f"{folder}/{name}.conf", "w") as file:
                file.write(self._config(name))

    def store(self, name):
        """The folder in which a server stores."""
        return f"{self.folder}/{name}.store"

    def _config(self, name):
        own = Arena.address(name)
        others = ", ".join(f"nats-route://{Arena.address(at)}:{ROUTES}" for at in self.arena.servers)
        return (
            f"server_name: {name}\nlisten: \"{own}:{PORT}\"\n"
            f"jetstream {{ store_dir: \"{self.store(name)}\", max_mem: 64MB, max_file: 4GB }}\n"
            f"cluster {{ name: lab, listen: \"{own}:{ROUTES}\", no_advertise: true, routes: [{others}] }}\n"
        )

    def begin(self, name):
        """Starts a server, with what it has stored."""
        if name in self.running:
            return
        log = open(f"{self.folder}/{name}.log", "ab")
        enter = ["nsenter", f"--net=/run/netns/{self.arena.space(name)}"]
        command = [*enter, program(), "-c", f"{self.folder}/{name}.conf"]
        self.running[name] = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()

    def kill(self, name):
        """Ends a server at once."""
        process = self.running.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def pause(self, name, is_paused):
        """Has a server stand still, or go on."""
        if name in self.running:
            self.running[name].send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)

    def fill(self, name, is_full):
        """Fills the small disk of a server, or makes room on it."""
        path = f"{self.store(name)}/filler"
        if not is_full:
            if os.path.exists(path):
                os.remove(path)
            return
        with open(path, "wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def wipe(self, name):
        """Has a server that does not run forget all it stored."""
        for entry in os.listdir(self.store(name)):
            path = f"{self.store(name)}/{entry}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    async def stream(self, name=STREAMS[0]):
        """What a server says of a stream that has a leader now: a dict; `None` if nobody says anything."""
        for server in list(self.running):
            try:
                info = await asyncio.wait_for(ask(Arena.address(server), f"$JS.API.STREAM.INFO.{name}"), 0.7)
            except (OSError, asyncio.TimeoutError, ValueError, asyncio.IncompleteReadError):
                continue
            if "state" in info and info.get("cluster", {}).get("leader"):
                return info
        return None

    async def leader(self, name=STREAMS[0]):
        """The name of the server that leads a stream; `None` if it is not known."""
        info = await self.stream(name)
        return info and info["cluster"]["leader"]


async def ask(host, subject, payload=b""):
    """Puts one request to a server, and reads its answer as JSON."""
    reader, writer = await asyncio.open_connection(host, PORT)
    try:
        writer.write(b'CONNECT {"verbose":false,"pedantic":false,"name":"checker"}\r\nSUB _CHECK 1\r\n')
        writer.write(f"PUB {subject} _CHECK {len(payload)}\r\n".encode() + payload + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"MSG "):
                return json.loads(await reader.readexactly(int(line.split()[-1])))
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        raise ValueError("the server has closed the connection")
    finally:
        writer.close()
