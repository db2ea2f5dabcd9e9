"""A server that stands still for a second in ten: what load tools say of it. Those that wait for the server do not ask
while it stands, so that hardly a response is late; the others time each request from when it was due."""

import os
import signal
import subprocess
import sys
import threading
import time

import peers
from experiment import SMOKE, Origin, Page, ab, bench, time_of

work = sys.argv[1]
SECONDS, EVERY, STOP = (5, 5, 0.5) if SMOKE else (20, 10, 1)
RATE = 1000


class Stops:
    """Stops the processes of nginx for a while, again and again, until it is left."""

    def __init__(self, pid):
        children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
        self.pids = [int(word) for word in children.split()]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(EVERY / 2):
            self.tell(signal.SIGSTOP)
            time.sleep(STOP)
            self.tell(signal.SIGCONT)
            self.over.wait(EVERY / 2 - STOP)

    def tell(self, what):
        for pid in self.pids:
            os.kill(pid, what)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def theirs(url):
    """`ab`: requests, its median, 99th percentile and longest time, in microseconds."""
    told = ab(url, "-c", 10, "-t", SECONDS, "-n", 50000000)
    return [told["requests"], *(told[part] * 1e3 for part in ("p50", "p99", "max"))]


def own(url, *arguments):
    """`larder bench`: the same figures."""
    run = bench(work, [], *arguments, "-d", f"{SECONDS}s", "--warm-up", "0", url)
    [result] = run["series"][0]["points"][0]["rounds"]
    latency = result["last_byte"] or dict.fromkeys(("p50", "p99", "max"), 0)
    return run, [result["completed"], latency["p50"], latency["p99"], latency["max"]]


def main():
    page = Page("stops", work)
    origin = Origin(work, [1])
    url = f"http://127.0.0.1:{origin.port}/gen/1?as=1"
    rows = {}
    try:
        with Stops(origin.process.pid):
            rows["`ab -k -c 10`"] = theirs(url)
        with Stops(origin.process.pid):
            run, rows["`larder bench -c 10`"] = own(url, "-c", 10)
        with Stops(origin.process.pid):
            run, rows[f"`larder bench --rate {RATE}`"] = own(url, "--rate", RATE)
    finally:
        origin.stop()
    lines = ["| load | requests | p50 | p99 | longest |", "|---|---|---|---|---|"]
    for name, (requests, *times) in rows.items():
        lines.append(f"| {name} | {requests:,} | {' | '.join(time_of(value) for value in times)} |")
    page.put("stops", "\n".join(lines))
    run["machine"]["cores"] = str(os.cpu_count())
    run["versions"] = {
        "larder": peers.version(os.environ["LARDER_BIN"], "--version"), "nginx": peers.version("nginx", "-v"),
        "ab": peers.version("ab", "-V"),
    }
    page.machine(run)
    page.write()
    waiting, (_, _, due, _) = [rows[name][2] for name in list(rows)[:2]], list(rows.values())[2]
    # A tenth of what was due in ten seconds was due in the stop.
    if due < STOP * 0.5e6 or not SMOKE and max(waiting) > STOP * 0.5e6:
        sys.exit(f"p99 of the loops that wait {waiting} us, of the rate {due} us: expected a stop in the last one only")


main()
