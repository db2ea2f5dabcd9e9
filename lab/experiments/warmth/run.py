"""After a purge of everything: what visitors wait with and without `rewarm`, and with a crawler that walks the sitemap."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

import peers
from experiment import LARDER, SMOKE, Page, bench
from processes import end, free_ports, pinned, started

work = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
PAGES, RATE = (200, 20) if SMOKE else (10_000, 100)
# Seconds that visitors come before the purge, and after it.
BEFORE, AFTER = (3, 4) if SMOKE else (40, 90)
PLACES, MILLISECONDS, CRAWLERS = 32, 50, 8

LARDER_TOML = """
listen = ["127.0.0.1:{port}"]
workers = 1

[memory]
size = "512MiB"

[limits]
origin_connections = {places}

[[origin]]
name = "app"
servers = ["http://127.0.0.1:{origin}"]

[[site]]
host = ["lab.localhost"]
origin = "app"
{warm}
"""
WAYS = {
    "nothing": "",
    "a crawler with the sitemap, 8 connections": "",
    "`rewarm = true`": "\n[site.warm]\nrewarm = true\n",
}


def larder(place, warm):
    conf = peers.write(place, "larder.toml", LARDER_TOML, warm=warm, places=PLACES)
    return peers.serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")


def of_origin(port):
    """The most requests that the origin had at once since the last question, and its answers."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    client.request("GET", "/status")
    told = json.loads(client.getresponse().read())
    client.close()
    return told


class Lane(threading.Thread):
    """The most fetches that warmed at once, as the daemon tells every tenth of a second."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.most, self.ended = path, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            told = json.loads(asked(self.path, "GET", "/api/v1/warm"))
            self.most = max([self.most, *(lane["running"] for lane in told["origins"])])


def asked(path, method, target):
    """The body of an answer at the admin socket."""
    client = http.client.HTTPConnection("localhost", timeout=5)
    client.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.sock.connect(path)
    client.request(method, target)
    body = client.getresponse().read()
    client.close()
    return body


def script(*arguments):
    return subprocess.Popen(
        pinned(1, ["python3", f"{HERE}/visitors.py", *map(str, arguments)]), stdout=subprocess.PIPE, text=True,
    )


def visits(process):
    text, _ = process.communicate(timeout=600)
    if process.returncode:
        raise RuntimeError("the visitors failed")
    return [json.loads(line) for line in text.splitlines()]


def measured(number, name, warm, origin):
    """What visitors waited before a purge and after it, and what the origin had to do."""
    folder = f"{work}/way-{number}"
    os.makedirs(f"{folder}/state", exist_ok=True)
    os.chmod(folder, 0o755)
    [port] = free_ports(1)
    place = peers.Place(folder, port, origin)
    env = {**os.environ, "STATE_DIRECTORY": f"{folder}/state"}
    process = started(larder(place, warm), port, f"{folder}/log", core=0, env=env)
    path = f"{folder}/larder.sock"
    lane = Lane(path)
    try:
        # Everything is stored, and what is popular has been asked for.
        filling = script(port, 600, "crawler", PAGES, PLACES)
        filling.communicate(timeout=600)
        before = visits(script(port, BEFORE, RATE, PAGES, 1))
        of_origin(origin)
        asked_before = of_origin(origin)["answered"]
        lane.start()
        subprocess.run([LARDER, "purge", "--admin-socket", path, "--all"], check=True, stdout=subprocess.DEVNULL)
        people = script(port, AFTER, RATE, PAGES, 2)
        beside = script(port, AFTER, "crawler", PAGES, CRAWLERS) if "crawler" in name else None
        after = visits(people)
        if beside:
            beside.communicate(timeout=600)
        told = of_origin(origin)
        facts = bench(work, [process.pid], "-c", 1, "-n", 1, "--warm-up", "0", f"http://127.0.0.1:{port}/")["machine"]
        return {
            "before": before, "after": after, "most": told["most"], "lane": lane.most,
            "answered": told["answered"] - asked_before, "machine": facts,
        }
    finally:
        lane.ended.set()
        end(process)
        shutil.rmtree(folder, ignore_errors=True)


def quantile(of, share):
    times = sorted(took for _, took, _ in of)
    return times[min(len(times) - 1, int(len(times) * share))] * 1e3 if times else 0


def table(runs):
    width = AFTER // 6 or 1
    spans = [(at, at + width) for at in range(0, AFTER - width + 1, width)]
    heads = ["beside the visitors", "warm: p50", "p99"]
    heads += [f"p99 after {start} to {stop} s" for start, stop in spans]
    heads += ["failed", "the origin was asked", "at once at most", "by warming at most"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, run in runs.items():
        cells = [name, *(f"{quantile(run['before'], share):.1f} ms" for share in (0.5, 0.99))]
        for start, stop in spans:
            part = [one for one in run["after"] if start <= one[0] < stop]
            cells.append(f"{quantile(part, 0.99):.1f} ms")
        failed = sum(status != 200 for _, _, status in run["after"])
        cells += [f"{failed:,}", f"{run['answered']:,} times", str(run["most"]), str(run["lane"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    page = Page("warmth", work)
    [origin] = free_ports(1)
    command = ["python3", f"{HERE}/origin.py", *map(str, (origin, PLACES, MILLISECONDS, PAGES))]
    server = started(command, origin, f"{work}/origin.log", core=1)
    runs = {}
    try:
        for number, (name, warm) in enumerate(WAYS.items()):
            runs[name] = measured(number, name, warm, origin)
            print(f"{name}: done", file=sys.stderr, flush=True)
    finally:
        end(server)
    facts = {**runs["nothing"]["machine"], "cores": str(os.cpu_count())}
    page.machine({"machine": facts, "versions": {"larder": peers.version(LARDER, "--version")}})
    values = {"pages": PAGES, "rate": RATE, "places": PLACES, "milliseconds": MILLISECONDS, "share": PLACES // 4}
    for part, value in values.items():
        page.put(part, f"{value:,}")
    page.put("seen", table(runs))
    print(page.parts["seen"])
    page.write()


main()
