"""Measures hits on every server in turn, round after round, and prints the medians.

Usage: bench.py WORK_FOLDER [PEER...]; see run.sh.
"""

import http.client
import http.server
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import peers
from processes import CORES, PINNED, TICKS, cpu_ticks, end, free_ports, pinned

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = int(os.environ.get("SECONDS_EACH", "4"))
CONNECTIONS = int(os.environ.get("CONNECTIONS", "64"))
SIZES = {"1 KiB": 1 << 10, "26 KiB": 26 << 10, "256 KiB": 256 << 10}
# Over HTTP/2: bytes, connections, and requests under way on each.
STREAMS = {
    "h2, 1 KiB, 16 connections of 32": (1 << 10, 16, 32),
    "h2, 26 KiB, 16 connections of 32": (26 << 10, 16, 32),
    "h2, 1 KiB, 64 connections of 1": (1 << 10, 64, 1),
    "h2, 26 KiB, 64 connections of 1": (26 << 10, 64, 1),
}


class Origin(http.server.BaseHTTPRequestHandler):
    """`/N` is N bytes, good for an hour; `/health` is what probes ask for."""

    protocol_version = "HTTP/1.1"
    fetches = 0

    def do_GET(self):
        Origin.fetches += self.path != "/health"
        body = b"" if self.path == "/health" else b"x" * int(self.path[1:])
        self.send_response(200)
        self.send_header("Cache-Control", "public, max-age=3600")
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class OriginServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Peers that end cut their connections; that is nothing to report."""


def start_origin():
    server = OriginServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Server:
    """A running server."""

    def __init__(self, name, work, origin):
        self.name = name
        self.log = os.path.join(work, f"{name}.log")
        self.port, self.secure = free_ports(2)
        self.place = peers.Place(work, self.port, origin)
        if peers.ALL[name].secure and has_http2(work):
            self.place.secure = self.secure
        else:
            self.secure = None
        command = peers.ALL[name].command(self.place)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                pinned(0, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )

    def warm(self):
        """Waits for the server, and fills it; says what is wrong, if anything."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                for _ in range(3):
                    for size in SIZES.values():
                        self.fetch(size)
                    time.sleep(0.1)
                before = Origin.fetches
                for size in SIZES.values():
                    self.fetch(size)
                return None if Origin.fetches == before else "it does not keep what it fetched"
            except (OSError, http.client.HTTPException, ValueError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        with open(self.log, errors="replace") as log:
            return "it does not answer: " + " ".join(log.read().split())[-300:]

    def fetch(self, size):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            client.request("GET", f"/{size}")
            response = client.getresponse()
            if response.status != 200 or len(response.read()) != size:
                raise ValueError("a wrong answer")
        finally:
            client.close()

    def stop(self):
        end(self.process)
        peers.remove_files(self.place)


def first_number(pattern, text):
    found = re.search(pattern, text)
    return float(found[1]) if found else 0.0


def load(server, size):
    """One run: CPU microseconds per request and requests/s."""
    url = f"http://127.0.0.1:{server.port}/{size}"
    if shutil.which("wrk"):
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", url]
        done, rate = r"(\d+) requests in", r"Requests/sec:\s+([\d.]+)"
        failed = r"Non-2xx or 3xx responses: (\d+)"
    else:
        command = ["ab", "-q", "-k", "-c", str(CONNECTIONS), "-t", str(SECONDS), "-n", "100000000", url]
        done, rate = r"Complete requests:\s+(\d+)", r"Requests per second:\s+([\d.]+)"
        failed = r"(?:Failed requests|Non-2xx responses):\s+([1-9]\d*)"
    before = cpu_ticks(server.process.pid)
    ran = subprocess.run(pinned(1, command), capture_output=True, text=True, check=False)
    spent = cpu_ticks(server.process.pid) - before
    said = ran.stdout + ran.stderr
    requests = first_number(done, said)
    if not requests or first_number(failed, said) or "Socket errors" in said:
        raise RuntimeError(f"{server.name}, {size} bytes: {said.strip()}")
    return spent / TICKS * 1e6 / requests, first_number(rate, said)


def has_http2(work):
    """Whether there is a certificate, and what asks over HTTP/2."""
    return os.path.exists(f"{work}/both.pem") and shutil.which("h2load")


def load_streams(server, size, connections, streams):
    """One run over HTTP/2: CPU microseconds per request and requests/s."""
    command = [
        "h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{SECONDS}", "--npn-list=h2",
        "--tls13-ciphers=TLS_AES_128_GCM_SHA256", f"https://127.0.0.1:{server.secure}/{size}",
    ]
    before = cpu_ticks(server.process.pid)
    ran = subprocess.run(pinned(1, command), capture_output=True, text=True, check=False)
    spent = cpu_ticks(server.process.pid) - before
    requests = first_number(r"(\d+) succeeded", ran.stdout)
    if not requests or first_number(r"(\d+) failed", ran.stdout):
        raise RuntimeError(f"{server.name}, {size} bytes over HTTP/2: {ran.stdout.strip()}")
    return spent / TICKS * 1e6 / requests, first_number(r", ([\d.]+) req/s", ran.stdout)


def measure(servers):
    """All runs, by what was asked for and server."""
    results = {}
    for number in range(ROUNDS):
        for size, length in SIZES.items():
            for server in servers:
                results.setdefault((size, server.name), []).append(load(server, length))
        for what, asked in STREAMS.items():
            for server in servers:
                if server.secure:
                    results.setdefault((what, server.name), []).append(load_streams(server, *asked))
        print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    return results


def report(servers, results):
    for what in [*SIZES, *STREAMS]:
        there = [server for server in servers if (what, server.name) in results]
        if not there:
            continue
        titles = f"{'CPU us/request':>15} {'beside larder':>14} {'requests/s':>12}   rounds (CPU us)"
        print(f"\n{what}\n{'':<14} {titles}")
        median = {s.name: statistics.median(cpu for cpu, _ in results[what, s.name]) for s in there}
        for server in there:
            runs = results[what, server.name]
            rate = statistics.median(rate for _, rate in runs)
            larder = median.get("larder")
            ratio = f"{median[server.name] / larder:.2f}x" if larder else "-"
            rounds = " ".join(f"{cpu:.1f}" for cpu, _ in runs)
            print(
                f"{server.name:<14} {median[server.name]:>15.1f} {ratio:>14} {rate:>12.0f}   {rounds}"
            )


def chosen(names):
    """The peers to start, and why others are not."""
    wanted, skipped = [], {}
    for name in names or peers.ALL:
        if name not in peers.ALL:
            sys.exit(f"no such peer: {name}; there are {', '.join(peers.ALL)}")
        if peers.ALL[name].path():
            wanted.append(name)
        else:
            skipped[name] = "not installed"
    return wanted, skipped


def main():
    work = sys.argv[1]
    wanted, skipped = chosen(sys.argv[2:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if PINNED:
        os.sched_setaffinity(0, {CORES[1]})
    origin = start_origin()
    write_files(work)
    servers = []
    try:
        for name in wanted:
            server = Server(name, work, origin)
            servers.append(server)
            wrong = server.warm()
            if wrong:
                skipped[name] = wrong
                server.stop()
                servers.remove(server)
        describe(servers, skipped)
        report(servers, measure(servers))
    finally:
        for server in servers:
            server.stop()
    return 1 if "larder" in skipped else 0


def write_files(work):
    """What the origin says, as files."""
    os.mkdir(f"{work}/files")
    for length in SIZES.values():
        with open(f"{work}/files/{length}", "wb") as file:
            file.write(b"x" * length)


def describe(servers, skipped):
    tool = "wrk" if shutil.which("wrk") else "ab"
    where = f"servers on core {CORES[0]}, load on core {CORES[1]}" if PINNED else "all on one core"
    print(f"hits, {CONNECTIONS} connections, {tool}, {SECONDS} s a run, medians of {ROUNDS} interleaved rounds;")
    print(f"{where}; Linux {platform.release()}")
    if any(server.secure for server in servers):
        print("h2: HTTP/2 over TLS 1.3, P-256, AES-128-GCM, h2load")
    for server in servers:
        peer = peers.ALL[server.name]
        print(f"  {server.name:<14} {peers.version(peer.path(), peer.version)}")
    for name, why in skipped.items():
        print(f"  {name:<14} SKIPPED: {why}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
