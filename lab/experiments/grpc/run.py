"""gRPC calls through Larder, HAProxy and nginx: what a call costs each, and how many calls end as they should."""

import json
import os
import subprocess
import sys

import peers
from experiment import LARDER, ROUNDS, SMOKE, Page, bench, median
from processes import TICKS, cpu_ticks, end, free_ports, pinned, started

work = sys.argv[1]
WORKERS = 50
# By each worker: calls that are measured, and calls of which one in eight is given up.
CALLS, MIXED = (8, 8) if SMOKE else (1200, 232)

LARDER_TOML = """
listen = ["127.0.0.1:{port} h2c"]
workers = 1

[limits]
h2_resets = 10_000

[[origin]]
name = "calls"
servers = ["http://127.0.0.1:{origin}"]
http_version = "2"

[[site]]
host = ["grpc.localhost"]
origin = "calls"
"""
HAPROXY = """
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend calls
  bind 127.0.0.1:{port} proto h2
  default_backend servers
backend servers
  http-reuse always
  server one 127.0.0.1:{origin} proto h2
"""
NGINX = """
  upstream calls {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} http2;
    http2_max_concurrent_streams 1000;
    location / {{ grpc_pass grpc://calls; }}
  }}
"""


def larder(place):
    conf = peers.write(place, "larder.toml", LARDER_TOML)
    return peers.serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")


def haproxy(place):
    return ["haproxy", "-f", peers.write(place, "haproxy.cfg", HAPROXY)]


def nginx(place):
    return peers.nginx_command(place, "nginx", NGINX)


PROXIES = {"Larder": larder, "HAProxy": haproxy, "nginx": nginx}


def loaded(port, calls, mix=""):
    """The ends of so many calls by each worker."""
    command = [f"{work}/grpc", "load", f"127.0.0.1:{port}", str(calls), mix]
    ran = subprocess.run(pinned(1, command), capture_output=True, text=True, check=True, timeout=300)
    return json.loads(ran.stdout)


def measured(name, origin):
    """One round of a proxy: what its calls cost, how those ended of which some are given up, and the machine."""
    folder = f"{work}/{name.lower()}"
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    [port] = free_ports(1)
    place = peers.Place(folder, port, origin)
    process = started(PROXIES[name](place), port, f"{folder}/log", core=0)
    try:
        loaded(port, max(1, CALLS // 10))
        before = cpu_ticks(process.pid)
        seen = loaded(port, CALLS)
        seen["cpu"] = (cpu_ticks(process.pid) - before) / TICKS
        mixed = loaded(port, MIXED, "given-up")
        # The others take nothing but HTTP/2 at their port.
        url = f"http://127.0.0.1:{port}/status"
        asks = name == "Larder"
        facts = bench(work, [process.pid], "-c", 1, "-n", 1, "--warm-up", "0", url)["machine"] if asks else {}
        return seen, mixed, facts
    finally:
        end(process)


def table(runs):
    lines = [
        f"| proxy | CPU a call | times HAProxy's | calls/s | failed | of {WORKERS * MIXED:,} mixed calls: answered "
        "| given up | failed |",
        f"|{'---|' * 8}",
    ]
    cost = {
        name: median([one["cpu"] / max(1, one["answered"]) for one, _, _ in rounds]) * 1e6 for name, rounds in runs.items()
    }
    for name, rounds in runs.items():
        rate = median([one["answered"] / one["seconds"] for one, _, _ in rounds])
        sums = {part: sum(mixed[part] for _, mixed, _ in rounds) for part in ("answered", "given_up", "wrong")}
        failed = sum(one["wrong"] for one, _, _ in rounds)
        times = f"{cost[name] / cost['HAProxy']:.2f}" if cost["HAProxy"] else "–"
        cells = [name, f"{cost[name]:.1f} µs", times, f"{rate:,.0f}", f"{failed:,}"]
        cells += [f"{sums[part] / len(rounds):,.0f}" for part in ("answered", "given_up", "wrong")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    page = Page("grpc", work)
    runs = {name: [] for name in PROXIES}
    [origin] = free_ports(1)
    server = started([f"{work}/grpc", "serve", f"127.0.0.1:{origin}"], origin, f"{work}/server.log", core=1)
    try:
        names = list(PROXIES)
        for number in range(ROUNDS):
            for name in names[number % len(names):] + names[:number % len(names)]:
                runs[name].append(measured(name, origin))
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    finally:
        end(server)
    named = {"larder": (LARDER, "--version"), "haproxy": ("haproxy", "-v"), "nginx": ("nginx", "-v")}
    page.machine({
        "machine": {**runs["Larder"][-1][2], "cores": str(os.cpu_count())},
        "versions": {name: peers.version(*of) for name, of in named.items()},
    })
    page.put("calls", f"{WORKERS * CALLS:,}")
    page.put("mixed", f"{WORKERS * MIXED:,}")
    page.put("seen", table(runs))
    print(page.parts["seen"])
    page.write()


main()
