"""Seed 000: WordPress's pages from nginx's fastcgi_cache on a disk and in memory, from Varnish behind nginx, and from
Larder, for one to a thousand users, over HTTP and over HTTPS; what a new connection costs; and caches on a disk and in
memory when the pages do not fit."""

import os
import sys

import peers
from experiment import ROUNDS, SMOKE, Origin, Page, Running, Stack, bench, columns, median, run_of, table, time_in
from wordpress_stacks import KEPT, RunningSite, larder, memory_group, nginx, varnish, versions

work = sys.argv[1]
USERS, SECONDS = (20, 1) if SMOKE else (1000, 8)
NEW, WARM_UP = ("200ms", "100ms") if SMOKE else ("3s", "500ms")
CONNECTIONS = 50

STACKS = [
    Stack("nginx, cache on disk", [nginx(work, KEPT)]),
    Stack("nginx, cache on tmpfs", [nginx(work, KEPT, memory=True)]),
    Stack("Varnish, nginx", [varnish, nginx(work)], {"tls": peers.nginx_tls, "memory_mib": 256}),
    Stack("Larder", [larder(work)], {"memory_mib": 256}),
]
HANDSHAKES = {"resumed": [], "full": ["--no-resume"]}

# Pages of so many KiB, in two sets. Machines with so many MiB, what each cache in memory is told to take of them, and
# the sets for each. Varnish's malloc counts pages alone, Larder's size is nearly all that it takes.
PAGE, SETS = (60, [100, 200]) if SMOKE else (60, [10_000, 20_000])
MACHINES = {
    "1": (1024, {"tmpfs": 850, "Varnish": 640, "Larder": 900}, SETS),
    "4": (4096, {"tmpfs": 2048, "Varnish": 2048, "Larder": 2048}, SETS[1:]),
}
SET_ROUNDS = min(ROUNDS, 3)
SET_HEADS = ["requests/s", "p50", "p99", "CPU a request", "hits", "memory", "most in the group", "errors"]


def main():
    page = Page("wordpress-https", work)
    by_users = {scheme: {stack.name: {} for stack in STACKS} for scheme in ("http", "https")}
    made = {how: {stack.name: [] for stack in STACKS} for how in HANDSHAKES}
    for number in range(ROUNDS):
        for stack in STACKS[number % len(STACKS):] + STACKS[:number % len(STACKS)]:
            with RunningSite(stack, work, tls=f"{work}/tls") as running:
                for scheme, port in (("http", running.port), ("https", running.secure)):
                    run = rise(running, f"{scheme}://127.0.0.1:{port}/", by_users[scheme][stack.name])
                for how, words in HANDSHAKES.items():
                    made[how][stack.name].append(connect(running, words))
        print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    for scheme, points in by_users.items():
        users(page, scheme, run_of(points, run, versions()))
    page.put("handshakes", handshakes(made))
    page.put("users", str(USERS))
    page.put("seconds", str(SECONDS))
    page.put("connections", str(CONNECTIONS))
    sets(page)
    page.write()


def rise(running, url, points):
    """More and more users; the rounds of a stack by their number."""
    bench(work, running.pids, "-k", "-c", 1, "-n", 20, "--warm-up", "0", url)
    load = ["--ramp", f"1..{USERS}", "-d", f"{SECONDS}s", "--warm-up", "0"]
    run = bench(work, running.pids, "-k", *load, url)
    for point in run["series"][0]["points"]:
        points.setdefault(point["x"], []).extend(point["rounds"])
    return run


def connect(running, words):
    """A connection over TLS for each request."""
    url = f"https://127.0.0.1:{running.secure}/"
    load = ["-c", CONNECTIONS, "-d", NEW, "--warm-up", WARM_UP, "--no-keep-alive"]
    return bench(work, running.pids, "-k", *load, *words, url)["series"][0]["points"][0]["rounds"][0]


def users(page, scheme, run):
    """The charts of a ramp, and five of its twenty parts as a table."""
    page.run(scheme, run, ["p50", "p99", "rate", "cpu"])
    parts = sorted({point["x"] for series in run["series"] for point in series["points"]})
    shown = [parts[at * (len(parts) - 1) // 4] for at in range(5)]
    heads = ["requests/s", "p50", "p99", "max", "CPU a request", "hits", "errors"]
    page.put(scheme, table(run, heads, sorted(set(shown)), x="users"))


def handshakes(made):
    """What connections cost that are made anew, with the TLS session resumed and without."""
    lines = [
        "| session | stack | handshakes/s | resumed | handshake p50 | p99 | whole request p50 | p99 | CPU a connection "
        "| errors |", f"|{'---|' * 10}",
    ]
    for how, stacks in made.items():
        for name, rounds in stacks.items():
            cells = columns(rounds)
            rate = median([one["connections"] / one["elapsed_us"] * 1e6 for one in rounds])
            resumed = sum(one["resumed"] for one in rounds) / max(1, sum(one["connections"] for one in rounds))
            times = [time_in(rounds, "tls", part) for part in ("p50", "p99")]
            lines.append(
                f"| {how} | {name} | {rate:,.0f} | {resumed:.0%} | {' | '.join(times)} | {cells['p50']} | {cells['p99']} "
                f"| {cells['CPU a request']} | {cells['errors']} |"
            )
    return "\n".join(lines)


def on_tmpfs(mib):
    """nginx with its cache on a tmpfs of so many MiB, which ends with it: a tenth of that is left for what nginx is to
    delete, and it looks for that every ten seconds at most."""
    def command(place):
        folder = f"{place.work}/tmpfs"
        os.mkdir(folder)
        asked = peers.nginx("nginx-tmpfs", "sendfile on; tcp_nopush on;", folder, f"max_size={mib * 9 // 10}m")(place)
        mount = f'mount -t tmpfs -o size={mib}m lab {folder} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, "sh", *asked]

    return command


def set_stacks(memory):
    """The caches; a disk has room for all pages."""
    return [
        Stack("nginx, cache on disk", ["nginx"]),
        Stack(f"nginx, tmpfs of {memory['tmpfs']} MiB", [on_tmpfs(memory["tmpfs"])]),
        Stack(f"Varnish, malloc {memory['Varnish']} MiB", ["varnish"], {"memory_mib": memory["Varnish"]}),
        Stack(f"Larder, size {memory['Larder']} MiB", ["larder"], {"memory_mib": memory["Larder"]}),
    ]


def sets(page):
    """Disk, memory and tmpfs on machines of two sizes."""
    page.put("set-rounds", str(SET_ROUNDS))
    if not (group := memory_group("may", 64)):
        for name in MACHINES:
            page.put(f"sets-{name}", "Not measured: this takes the right to make control groups.")
        return
    group.remove()
    origin = Origin(work, [PAGE])
    try:
        for pages in SETS:
            with open(f"{work}/set-{pages}", "w") as file:
                file.writelines(f"/gen/{PAGE}?as={number}\n" for number in range(pages))
        for name, (mib, memory, sizes) in MACHINES.items():
            stacks = set_stacks(memory)
            points = {stack.name: {} for stack in stacks}
            for number in range(SET_ROUNDS):
                for stack in stacks[number % len(stacks):] + stacks[:number % len(stacks)]:
                    run = on_machine(stack, origin, f"{name}-{number}", mib, sizes, points[stack.name])
            page.put(f"sets-{name}", table(run_of(points, run, versions()), SET_HEADS, x="MiB of pages"))
            print(f"{name} GB done", file=sys.stderr, flush=True)
    finally:
        origin.stop()


def on_machine(stack, origin, name, mib, sizes, points):
    """One cache within so much memory: filled with a set of pages, then asked for them at random; then the next set."""
    group = memory_group(name, mib)
    try:
        with Running(stack, work, origin.port, group.within) as running:
            for pages in sizes:
                listed = ["--urls", f"{work}/set-{pages}", f"http://127.0.0.1:{running.port}"]
                bench(work, running.pids, "-c", 4, "-n", pages, "--warm-up", "0", *listed)
                load = ["-c", 50, "-d", "200ms" if SMOKE else "2s", "--warm-up", WARM_UP, "--order", "random"]
                run = bench(work, running.pids, *load, *listed)
                [result] = run["series"][0]["points"][0]["rounds"]
                result["group_bytes"] = group.peak_bytes()
                points.setdefault(pages * PAGE >> 10, []).append(result)
        return run
    finally:
        group.remove()


main()
