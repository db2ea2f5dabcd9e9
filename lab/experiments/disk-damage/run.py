"""A bit that flips in each stored body, and what is sent then. Nothing here depends on how quick or how busy a machine is."""

import http.client
import mmap
import os
import sys

from disk_stacks import all_there, versions_of
from experiment import SMOKE, Origin, Page, Running, bench, versions

work = sys.argv[1]
# Objects of 26 KB, more than memory has room for.
DAMAGED = 1500 if SMOKE else 4000
KB = 26
MARK = b"<!-- a page of the lab -->"


def ask_for_all(running, kb, count):
    """Asks for everything once, which all of them keep."""
    path = f"{work}/urls"
    with open(path, "w") as file:
        file.writelines(f"/gen/{kb}?as={at}\n" for at in range(count))
    bench(work, running.pids, "--urls", path, "-c", 8, "-n", count, "--warm-up", "0", f"http://127.0.0.1:{running.port}")


def files_of(place):
    """The files in which a server may have bodies."""
    for folder, _, names in os.walk(place.work):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.path.getsize(path) >= KB << 10:
                yield path


def flip(path):
    """Flips a bit in the middle of each body in a file; the number of them. Each kilobyte of a body begins with MARK."""
    flipped = 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as held:
        at, seen = held.find(MARK), 0
        while at >= 0:
            seen += 1
            if seen % KB == KB // 2:
                held[at + 500] ^= 1
                flipped += 1
            at = held.find(MARK, at + len(MARK))
        held.flush()
    return flipped


def damage(running, origin):
    """Flips the bits, asks for each object once, and counts what comes."""
    ask_for_all(running, KB, DAMAGED)
    flipped = sum(flip(path) for path in files_of(running.places[0]))
    right = open(f"{work}/gen/{KB}", "rb").read()
    before = origin.asked()
    counts = {"right": 0, "wrong": 0, "broken": 0}
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    for at in range(DAMAGED):
        try:
            client.request("GET", f"/gen/{KB}?as={at}")
            answer = client.getresponse()
            body = answer.read()
            counts["right" if answer.status == 200 and body == right else "wrong"] += 1
        except (OSError, http.client.HTTPException):
            counts["broken"] += 1
            client.close()
    return {**counts, "flipped": flipped, "fetched": origin.asked() - before - 1}


def main():
    page = Page("disk-damage", work)
    origin = Origin(work, [KB])
    stacks = [stack for stack in all_there() if stack.name not in ("nginx, large buffers", "nginx on tmpfs")][:2 if SMOKE else None]
    found = {}
    try:
        for stack in stacks:
            with Running(stack, work, origin.port) as running:
                found[stack.name] = damage(running, origin)
            print(f"{stack.name}: {found[stack.name]}", file=sys.stderr, flush=True)
    finally:
        origin.stop()
    if found.get("Larder", {}).get("wrong") or found.get("Larder", {}).get("broken"):
        raise RuntimeError(f"Larder sends what is damaged: {found['Larder']}")
    lines = ["| stack | bodies damaged on disk | sent with the wrong bit | fetched anew | broken off |", "|---|---|---|---|---|"]
    for name, told in found.items():
        lines.append(f"| {name} | {told['flipped']:,} | {told['wrong']:,} | {told['fetched']:,} | {told['broken']:,} |")
    page.put("damage", "\n".join(lines))
    page.put("damaged", f"{DAMAGED:,}")
    page.machine({"machine": {"cores": str(os.cpu_count())}, "versions": {**versions(stacks), **versions_of(stacks)}})
    page.write()


main()
