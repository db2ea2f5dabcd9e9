"""A cache on disk: ten times as much as its memory holds, out of the system's page cache and without it; misses, a restart,
bytes on disk and in memory. Larder beside nginx's files, Traffic Server, Squid's rock store and Varnish's file."""

import json
import os
import subprocess
import sys
import time

from disk_stacks import all_there, larder, versions_of
from experiment import LARDER, ROUNDS, SMOKE, Origin, Page, Running, Stack, bench, columns, run_of, versions
from probes import SECONDS, cold, family, hits_beside, make_urls, memory_per_object

work = sys.argv[1]
# Objects of 26 KB, ten times as many bytes as memory may have; and a hundred of 256 KB.
SIZES = {26: 400 if SMOKE else 8192, 256: 40 if SMOKE else 800}
# Seed 004's load: pages of 10 to 40 KB, of which a ninth must not be stored, ten times as many bytes as memory may have.
MIXED = {"total": 500 if SMOKE else 10_000, "sizes": "10..40KB", "cacheable": "89%", "unique": 400 if SMOKE else 9_000}
# Stacks whose hits in memory are looked at beside reads of the disk.
BESIDE = {"Larder", "nginx", "nginx on tmpfs"}
MEMORY_STACKS = [Stack("with a disk", [larder(True, "256MiB")]), Stack("without", [larder(False, "256MiB")])]


def urls(kb):
    """A file with the targets of all objects of a size."""
    return make_urls(work, kb, 0, SIZES[kb])


def fill(running, kb):
    """Asks for everything twice: the second time for those who keep what was asked for again. The result of the first."""
    load = ["--urls", urls(kb), "-c", 8, "-n", SIZES[kb], "--warm-up", "0", f"http://127.0.0.1:{running.port}"]
    [first, _] = [bench(work, running.pids, *load) for _ in range(2)]
    [result] = first["series"][0]["points"][0]["rounds"]
    return {**result, "origin_requests": SIZES[kb]}


def mixed_urls():
    """A file with the targets of the mixed load."""
    path = f"{work}/urls-mixed"
    words = [word for key, value in MIXED.items() for word in (f"--{key}", str(value))]
    subprocess.run([LARDER, "bench", "urls", "makelist", *words, "-o", path], check=True, capture_output=True)
    return path


def mixed(running, origin):
    """The mixed load on a cache that has been filled twice, as fast as ten connections take it."""
    load = ["--urls", mixed_urls(), "-c", 10]
    for _ in range(2):
        bench(work, running.pids, *load, "-n", MIXED["total"], "--warm-up", "0", f"http://127.0.0.1:{running.port}")
    before = origin.asked()
    run = bench(work, running.pids, *load, "--order", "random", "-d", SECONDS, "--warm-up", "0.2s", f"http://127.0.0.1:{running.port}")
    [result] = run["series"][0]["points"][0]["rounds"]
    return {**result, "origin_requests": origin.asked() - before - 1}


def volume_of(place):
    """What Larder tells of its volume; nothing of others."""
    if not os.path.exists(f"{place.work}/larder.sock"):
        return None
    told = subprocess.run([LARDER, "stat", "--json", "--admin-socket", f"{place.work}/larder.sock"], capture_output=True, check=True)
    [volume] = json.loads(told.stdout)["disk"].values()
    return volume


def resident(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next((int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS")), 0)
    return total


def on_disk(place):
    """Bytes that a server's files take; of those that are reserved at the start, bytes in use."""
    volume = volume_of(place)
    if volume:
        return volume["live_bytes"] + volume["dead_bytes"]
    if os.path.exists(f"{place.work}/storage"):
        return None
    total = 0
    for folder, _, files in os.walk(place.work):
        for name in files:
            total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def one(running, kb, origin):
    """One measurement: everything is asked for at random."""
    before = origin.asked()
    load = ["--urls", urls(kb), "--order", "random", "-c", 16, "-d", SECONDS, "--warm-up", "0.2s"]
    run = bench(work, running.pids, *load, f"http://127.0.0.1:{running.port}")
    [result] = run["series"][0]["points"][0]["rounds"]
    return run, {**result, "origin_requests": origin.asked() - before - 1}


def again(running, origin):
    """A stop and a start: seconds until the first answer, and how much of what was stored the origin is asked for."""
    began = running.again()
    time.sleep(0.1 if SMOKE else 1)
    before = origin.asked()
    load = ["--urls", urls(26), "-c", 8, "-n", SIZES[26], "--warm-up", "0"]
    bench(work, running.pids, *load, f"http://127.0.0.1:{running.port}")
    return {"start": began, "lost": (origin.asked() - before - 1) / SIZES[26]}


class Found:
    """Results of all rounds."""

    def __init__(self, stacks):
        self.stacks, self.run = stacks, None
        self.points = {stack.name: {kb: [] for kb in SIZES} for stack in stacks}
        self.misses, self.cold, self.mixes = ({stack.name: [] for stack in stacks} for _ in range(3))
        self.beside = {stack.name: [] for stack in stacks if stack.name in BESIDE}
        self.memory = {stack.name: [] for stack in MEMORY_STACKS}
        self.amplified, self.restarts = [], {}

    def pages(self, stack, origin, is_first):
        """Objects of each size: misses, hits, hits that the system has no copy of; of the smaller ones a restart too."""
        for kb in SIZES:
            with Running(stack, work, origin.port) as running:
                missed = fill(running, kb)
                self.run, result = one(running, kb, origin)
                self.points[stack.name][kb].append(result)
                if kb != 26:
                    continue
                self.misses[stack.name].append(missed)
                if is_first:
                    rss, disk = resident(family(running.pids)), on_disk(running.places[0])
                    self.restarts[stack.name] = {"rss": rss, "disk": disk, **again(running, origin)}
                self.cold[stack.name].append(cold(work, running, urls(kb)))
                if stack.name in self.beside:
                    self.beside[stack.name].append(hits_beside(work, running, urls(kb)))
        if is_first:
            with Running(stack, work, origin.port) as running:
                self.restarts[stack.name]["object"] = memory_per_object(work, running)

    def mixed(self, stack, origin):
        with Running(stack, work, origin.port) as running:
            self.mixes[stack.name].append(mixed(running, origin))
            volume = volume_of(running.places[0])
            if volume:
                # In the seconds of a smoke test nothing may have been put yet.
                self.amplified.append(volume["written_bytes"] / max(1, volume["put_bytes"]))

    def in_memory(self, origin):
        """A page that stays in memory, with a disk below it and without."""
        for stack in MEMORY_STACKS:
            with Running(stack, work, origin.port) as running:
                url = f"http://127.0.0.1:{running.port}/gen/1?as=1"
                load = ["-c", 16, "-d", SECONDS, "--warm-up", "0.2s", url]
                [result] = bench(work, running.pids, *load)["series"][0]["points"][0]["rounds"]
                self.memory[stack.name].append({**result, "origin_requests": 0})

    def table_of_pages(self):
        heads = ["CPU a request", "requests/s", "p50", "p99", "asked of the origin", "memory"]
        rows = [[f"{count:,} of {kb} KB", name, *by_heads(by[kb], heads)]
                for kb, count in SIZES.items() for name, by in self.points.items()]
        return table(["objects", "stack", *heads], rows)

    def table_of_starts(self):
        stored = SIZES[26] * 26 * 1024
        heads = ["stack", "first answer after", "fetched anew", "files, to what is stored", "resident before", "memory an object"]
        return table(heads, [[
            name, f"{told['start'] * 1e3:.0f} ms", f"{told['lost']:.1%}",
            f"{told['disk'] / stored:.2f}" if told["disk"] else "–", f"{told['rss'] >> 20} MiB", f"{told['object']:.0f} bytes",
        ] for name, told in self.restarts.items()])

    def table_beside(self):
        rows = []
        for name, rounds in self.beside.items():
            for what, part in zip(["alone", "beside cold reads"], zip(*rounds)):
                rows.append([name, what, *by_heads(part, ["p50", "p99", "max"])])
        return table(["stack", "hits", "p50", "p99", "max"], rows)


def by_heads(rounds, heads):
    """Cells of a row."""
    cells = columns(rounds)
    return [cells[head] for head in heads]


def table(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def main():
    page = Page("disk", work)
    origin = Origin(work, {*SIZES, *range(1, 41)})
    stacks = all_there()
    found = Found(stacks)
    try:
        for number in range(ROUNDS):
            for stack in stacks[number % len(stacks):] + stacks[:number % len(stacks)]:
                found.pages(stack, origin, number == 0)
                found.mixed(stack, origin)
            found.in_memory(origin)
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    finally:
        origin.stop()
    page.machine(run_of(found.points, found.run, {**versions(stacks), **versions_of(stacks)}))
    page.put("table", found.table_of_pages())
    for part, by_stack, heads in [
        ("misses", found.misses, ["CPU a request", "requests/s", "p50", "p99"]),
        ("cold", found.cold, ["requests/s", "CPU a request", "p50", "p99", "errors"]),
        ("mixed", found.mixes, ["requests/s", "CPU a request", "p50", "p99", "asked of the origin", "errors"]),
        ("memory", found.memory, ["CPU a request", "requests/s", "p50", "p99"]),
    ]:
        page.put(part, table(["stack", *heads], [[name, *by_heads(rounds, heads)] for name, rounds in by_stack.items()]))
    page.put("beside", found.table_beside())
    page.put("amplification", f"{sorted(found.amplified)[len(found.amplified) // 2]:.2f}")
    page.put("restart", found.table_of_starts())
    page.put("count", f"{SIZES[26]:,}")
    page.write()


main()
