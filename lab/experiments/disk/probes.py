"""Further looks at a server with a cache on disk: what an object costs in memory, reads that the system has no copy of,
and hits in memory beside them."""

import contextlib
import os
import subprocess
import time

from experiment import LARDER, SMOKE, bench
from processes import pinned

SECONDS = "0.3s" if SMOKE else "3s"
# Objects of 4 KB, asked for up to the first number, then up to the second: memory for bodies is full at both, and nginx
# has a descriptor for each.
SMALL = (300, 600) if SMOKE else (8_000, 18_000)


def make_urls(work, kb, first, last):
    """A file with the targets of objects of a size."""
    path = f"{work}/urls-{kb}-{first}"
    with open(path, "w") as file:
        file.writelines(f"/gen/{kb}?as={at}\n" for at in range(first, last))
    return path


def held(pids):
    """Bytes of memory that processes hold for themselves, without files that are mapped."""
    total, shared = 0, 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            told = dict(line.split(":", 1) for line in file)
        total += int(told["RssAnon"].split()[0]) << 10
        shared = max(shared, int(told["RssShmem"].split()[0]) << 10)
    return total + shared


def family(pids):
    """Processes with their children: some servers work in those."""
    asked = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = [tuple(map(int, line.split())) for line in asked.stdout.splitlines()]
    found = set(pids)
    while True:
        more = {pid for pid, parent in parents if parent in found} - found
        if not more:
            return sorted(found)
        found |= more


def memory_per_object(work, running):
    """Bytes that one more object on disk takes in memory, or nothing where it cannot be told."""
    url, sizes = f"http://127.0.0.1:{running.port}", []
    for first, last in [(0, SMALL[0]), SMALL]:
        urls = make_urls(work, 4, first, last)
        for _ in range(2):
            bench(work, running.pids, "--urls", urls, "-c", 8, "-n", last - first, "--warm-up", "0", url)
        time.sleep(0.1 if SMOKE else 1)
        sizes.append(held(family(running.pids)))
    return max(0, sizes[1] - sizes[0]) / (SMALL[1] - SMALL[0])


def forget(running):
    """Has the system forget its copies of a server's files, but for what is mapped."""
    os.sync()
    for place in running.places:
        for folder, _, files in os.walk(place.work):
            for name in files:
                # Some are sockets, and caches remove files meanwhile.
                with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold(work, running, urls):
    """Everything is asked for at random after the system has forgotten its copies."""
    forget(running)
    load = ["--urls", urls, "--order", "random", "-c", 16, "-d", SECONDS, "--warm-up", "0"]
    [result] = bench(work, running.pids, *load, f"http://127.0.0.1:{running.port}")["series"][0]["points"][0]["rounds"]
    return {**result, "origin_requests": 0}


def hits_beside(work, running, urls):
    """Hits of one page of 1 KB at 2,000 a second, alone and beside 300 cold reads a second."""
    url = f"http://127.0.0.1:{running.port}"
    hits = ["-c", 4, "--rate", 2000, "-d", SECONDS, "--warm-up", "0.5s", f"{url}/gen/1?as=hot"]

    def measured():
        [result] = bench(work, running.pids, *hits)["series"][0]["points"][0]["rounds"]
        return {**result, "origin_requests": 0}

    alone = measured()
    forget(running)
    load = ["--urls", urls, "--order", "random", "-c", 8, "--rate", "300", "-d", "1s" if SMOKE else "5s", "--warm-up", "0", url]
    command = pinned(1, [LARDER, "bench", "-t", "1", *map(str, load)])
    reading = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return alone, measured()
    finally:
        reading.wait(30)
