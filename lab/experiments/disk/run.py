"""A cache on disk: ten times as much as its memory holds, out of the system's page cache; a restart; bytes on disk and in
memory. Larder beside nginx's files, Traffic Server, Squid's rock store and Varnish's file."""

import json
import os
import subprocess
import sys
import time

from disk_stacks import all_there, larder, versions_of
from experiment import LARDER, ROUNDS, SMOKE, Origin, Page, Running, Stack, bench, columns, run_of, versions

work = sys.argv[1]
SECONDS = "0.3s" if SMOKE else "3s"
# Objects of 26 KB, ten times as many bytes as memory may have; and a hundred of 256 KB.
SIZES = {26: 2000 if SMOKE else 8192, 256: 200 if SMOKE else 800}
# Seed 004's load: pages of 10 to 40 KB, of which a ninth must not be stored, ten times as many bytes as memory may have.
MIXED = {"total": 500 if SMOKE else 10_000, "sizes": "10..40KB", "cacheable": "89%", "unique": 400 if SMOKE else 9_000}
MEMORY_STACKS = [Stack("with a disk", [larder(True, "256MiB")]), Stack("without", [larder(False, "256MiB")])]


def urls(kb):
    """A file with the targets of all objects of a size."""
    path = f"{work}/urls-{kb}"
    with open(path, "w") as file:
        file.writelines(f"/gen/{kb}?as={at}\n" for at in range(SIZES[kb]))
    return path


def fill(running, kb):
    """Asks for everything twice: the second time for those who keep what was asked for again."""
    for _ in range(2):
        bench(work, running.pids, "--urls", urls(kb), "-c", 8, "-n", SIZES[kb], "--warm-up", "0", f"http://127.0.0.1:{running.port}")


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
    time.sleep(1)
    before = origin.asked()
    load = ["--urls", urls(26), "-c", 8, "-n", SIZES[26], "--warm-up", "0"]
    bench(work, running.pids, *load, f"http://127.0.0.1:{running.port}")
    return {"start": began, "lost": (origin.asked() - before - 1) / SIZES[26]}


def main():
    page = Page("disk", work)
    origin = Origin(work, {*SIZES, *range(1, 41)})
    stacks = all_there()
    points = {stack.name: {kb: [] for kb in SIZES} for stack in stacks}
    mixes, amplified = {stack.name: [] for stack in stacks}, []
    restarts, memory = {}, {stack.name: [] for stack in MEMORY_STACKS}
    try:
        for number in range(ROUNDS):
            for stack in stacks[number % len(stacks):] + stacks[:number % len(stacks)]:
                for kb in SIZES:
                    with Running(stack, work, origin.port) as running:
                        fill(running, kb)
                        run, result = one(running, kb, origin)
                        points[stack.name][kb].append(result)
                        if kb == 26 and number == 0:
                            rss = resident(running.pids)
                            restarts[stack.name] = {"rss": rss, "disk": on_disk(running.places[0]), **again(running, origin)}
                with Running(stack, work, origin.port) as running:
                    mixes[stack.name].append(mixed(running, origin))
                    volume = volume_of(running.places[0])
                    if volume:
                        amplified.append(volume["written_bytes"] / volume["put_bytes"])
            for stack in MEMORY_STACKS:
                with Running(stack, work, origin.port) as running:
                    url = f"http://127.0.0.1:{running.port}/gen/1?as=1"
                    load = ["-c", 16, "-d", SECONDS, "--warm-up", "0.2s", url]
                    [result] = bench(work, running.pids, *load)["series"][0]["points"][0]["rounds"]
                    memory[stack.name].append({**result, "origin_requests": 0})
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    finally:
        origin.stop()
    page.machine(run_of(points, run, {**versions(stacks), **versions_of(stacks)}))
    heads = ["CPU a request", "requests/s", "p50", "p99", "asked of the origin", "memory"]
    lines = [f"| objects | stack | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for kb, count in SIZES.items():
        for name, by in points.items():
            cells = columns(by[kb])
            lines.append(f"| {count:,} of {kb} KB | {name} | {' | '.join(cells[head] for head in heads)} |")
    page.put("table", "\n".join(lines))
    heads = ["requests/s", "CPU a request", "p50", "p99", "asked of the origin", "errors"]
    lines = [f"| stack | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, rounds in mixes.items():
        cells = columns(rounds)
        lines.append(f"| {name} | {' | '.join(cells[head] for head in heads)} |")
    page.put("mixed", "\n".join(lines))
    page.put("amplification", f"{sorted(amplified)[len(amplified) // 2]:.2f}")
    heads = ["CPU a request", "requests/s", "p50", "p99"]
    lines = [f"| Larder | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, rounds in memory.items():
        cells = columns(rounds)
        lines.append(f"| {name} | {' | '.join(cells[head] for head in heads)} |")
    page.put("memory", "\n".join(lines))
    stored = SIZES[26] * 26 * 1024
    lines = ["| stack | first answer after | fetched anew | files, to what is stored | resident before |", "|---|---|---|---|---|"]
    for name, told in restarts.items():
        files = f"{told['disk'] / stored:.2f}" if told["disk"] else "–"
        lines.append(f"| {name} | {told['start'] * 1e3:.0f} ms | {told['lost']:.1%} | {files} | {told['rss'] >> 20} MiB |")
    page.put("restart", "\n".join(lines))
    page.put("count", f"{SIZES[26]:,}")
    page.write()


main()
