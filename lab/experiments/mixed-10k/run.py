"""Seed 004: Varnish and Squid on a list of pages of 10 to 40 KB, of which a ninth must not be stored; and what the
readers of that article asked for."""

import contextlib
import http.client
import os
import random
import subprocess
import sys

from experiment import LARDER, ROUNDS, SMOKE, Origin, Page, Running, Stack, measure, started, straight, table, there
from processes import end, free_ports

work = sys.argv[1]
LINE = os.environ["LINE_BIN"]
PEERS = {
    "Varnish": "varnish", "Squid": "squid", "nginx": "nginx", "HAProxy": "haproxy", "Traffic Server": "trafficserver",
    "Larder": "larder",
}
STACKS = there([Stack(name, [peer], {"memory_mib": 512}) for name, peer in PEERS.items()])
# The load and the origin share the second core with them.
TWO_CORES = [Stack(one.name, one.layers, {**one.settings, "workers": 2}, [0, 1]) for one in STACKS]
PARALLEL = [10] if SMOKE else [10, 25, 50, 100, 200, 400]
RATES = [500] if SMOKE else [1_000, 4_000, 16_000]
FETCHES = 300 if SMOKE else 8_000
TIMES = ["-d", "100ms", "--warm-up", "50ms"] if SMOKE else ["-d", "500ms", "--warm-up", "250ms"]
SIZES_KB = [1, 10_000] if SMOKE else [1, 10, 100, 1_000, 10_000]
# Half of the rounds are enough for what begins with full caches; the page says so.
WARM_ROUNDS = (ROUNDS + 1) // 2
BESIDES = 50 if SMOKE else 10_000
# The first requests of slow readers come all at once, before what is counted.
BESIDES_TIMES = TIMES if SMOKE else ["-d", "500ms", "--warm-up", "1s"]
AGENTS = [1, 10] if SMOKE else [1, 10, 100]
AGENTS_ASK = 300 if SMOKE else 4_000
FAR = 20 if SMOKE else 200
FAR_TIMES = TIMES if SMOKE else ["-d", "1s", "--warm-up", "300ms"]
LINES = {"0 ms": [], "5 ms, 1 % lost": ["--delay", "5ms", "--loss", "1%"]} if SMOKE else {
    "0 ms": [], "20 ms": ["--delay", "20ms"], "100 ms": ["--delay", "100ms"],
    "20 ms, 1 % lost": ["--delay", "20ms", "--loss", "1%"],
}


def made(name, **options):
    """A list by the generator; its path and its totals."""
    path = os.path.join(work, name)
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    ran = subprocess.run(
        [LARDER, "bench", "urls", "makelist", *words, "-o", path], check=True, capture_output=True, text=True,
    )
    return path, ran.stderr.strip()


def of_size(kb):
    """A list of ten pages of this size that may be stored; its path."""
    path = os.path.join(work, f"of-{kb}")
    with open(path, "w") as file:
        file.writelines(f"/gen/{kb}?as={number}\n" for number in range(10))
    return path


def server(port):
    return [f"http://127.0.0.1:{port}"]


def cold(page, origin, mixed):
    """The article's runs: caches empty before each."""
    run = measure(
        STACKS, work, origin, PARALLEL, lambda c: ["-c", c, "-n", FETCHES, "--warm-up", "0", "--urls", mixed], server,
    )
    page.run("parallel", run)
    heads = ["requests/s", "first byte p50", "connect p50", "p50", "p99", "CPU a request", "asked of the origin", "errors"]
    page.put("parallel", table(run, heads))
    run = measure(
        STACKS, work, origin, [50],
        lambda c: ["-c", c, "-n", FETCHES, "--warm-up", "0", "--order", "random", "--urls", mixed], server,
    )
    page.put("order", table(run, ["requests/s", "p50", "p99", "asked of the origin", "errors"]))


def warm(page, origin):
    """What is asked of full caches: one load after another of the same servers."""
    hits, misses, few = (
        made(name, total=1_000, sizes="10..40KB", cacheable=share, unique=200)[0]
        for name, share in [("hits", "100%"), ("misses", "0%"), ("few", "89%")]
    )
    fill = os.path.join(work, "fill")
    with open(fill, "w") as file:
        file.writelines(line for path in [hits, few] for line in open(path))
    besides = ["-c", 50, *BESIDES_TIMES, "--urls", few, "--timeout", "10s"]
    loads = {
        "fill": ["-c", 10, "-n", 2_000, "--warm-up", 0, "--urls", fill],
        "hits": ["-c", 50, *TIMES, "--urls", hits],
        "misses": ["-c", 50, *TIMES, "--urls", misses],
        **{f"{rate:,} a second": ["--rate", rate, *TIMES, "--urls", few] for rate in RATES},
        "idle": [*besides, "--idle", BESIDES],
        "slow": [*besides, "--slow", BESIDES, "--slow-rate", 1_000],
        **{f"{kb:,} KB": ["-c", 10, *TIMES, "--urls", of_size(kb)] for kb in SIZES_KB},
        **{name: ["-c", FAR, *FAR_TIMES, "--urls", few] for name in LINES},
    }
    names = list(loads)

    def way(at, port):
        conditions = LINES.get(names[at])
        return straight(at, port) if conditions is None else line(port, conditions)

    run = measure(
        STACKS, work, origin, range(len(names)), lambda at: loads[names[at]], server, fresh=False, rounds=WARM_ROUNDS,
        way=way,
    )

    def of(part):
        return only(run, {names.index(name): x for name, x in part.items()})

    heads = ["requests/s", "p50", "p99", "CPU a request", "origin requests", "errors"]
    for part in ["hits", "misses"]:
        page.put(part, table(of({part: 50}), heads))
    rates = only(run, {names.index(f"{rate:,} a second"): rate for rate in RATES}, "rate")
    page.run("rates", rates, ["p50", "p99"])
    page.put("rates", table(rates, ["requests/s", "p50", "p99", "max", "CPU a request", "errors"], x="due a second"))
    for part in ["idle", "slow"]:
        page.put(part, table(held(of({part: 50})), ["requests/s", "p50", "p99", "CPU a request", "memory", "errors"]))
    sizes = of({f"{kb:,} KB": kb for kb in SIZES_KB})
    heads = ["requests/s", "MB/s", "p50", "p99", "CPU a request", "origin requests", "errors"]
    page.put("sizes", table(sizes, heads, x="KB", name="{:,}".format))
    lines = of({name: at for at, name in enumerate(LINES)})
    heads = ["requests/s", "first byte p50", "p50", "p99", "max", "CPU a request", "errors"]
    page.put("distance", table(lines, heads, x="one way", name=list(LINES).__getitem__))

    two = measure(
        TWO_CORES, work, origin, [0, 2], lambda at: loads["hits" if at else "fill"], server, fresh=False,
        rounds=WARM_ROUNDS,
    )
    for both, one in zip(two["series"], of({"hits": 1})["series"]):
        both["points"] += one["points"]
    page.put("cores", table(two, ["requests/s", "p50", "p99", "CPU a request", "errors"], [1, 2], "cores"))


def only(run, values, axis="connections"):
    """The part of a run that has these values, each by another name."""
    series = [
        {**one, "axis": axis, "points": [{**at, "x": values[at["x"]]} for at in one["points"] if at["x"] in values]}
        for one in run["series"]
    ]
    return {**run, "series": series}


def held(run):
    """The run, its series' names with the number of connections besides that each server held to the end."""
    series = []
    for one in run["series"]:
        fewest = min(result["background"] for point in one["points"] for result in point["rounds"])
        series.append({**one, "name": f"{one['name']} ({fewest:,} held)"})
    return {**run, "series": series}


@contextlib.contextmanager
def line(port, conditions):
    """A delay line on the load's core, before a server."""
    [own] = free_ports(1)
    command = [LINE, "--listen", f"127.0.0.1:{own}", "--to", f"127.0.0.1:{port}", *conditions]
    process = started(1, command, own, os.path.join(work, "line.log"))
    try:
        yield own
    finally:
        end(process)


def agents(page):
    """Pages with `Vary: User-Agent`, ten for each number of agents. The number of fetches is no matter of time, so this
    has one round."""
    origin = Origin(os.path.join(work, "vary"), [10], "add_header Vary User-Agent;")
    rows = {}
    try:
        for stack in STACKS:
            with Running(stack, work, origin.port) as running:
                for number in AGENTS:
                    before = origin.asked()
                    done, failed = visited(running.port, number)
                    asked = origin.asked() - before - 1
                    share = f"{1 - asked / done:.1%}" if done else "–"
                    rows[number, stack.name] = f"| {number} | {stack.name} | {asked:,} | {share} | {failed} |"
    finally:
        origin.stop()
    lines = ["| agents | stack | origin requests | answered without it | errors |", "|---|---|---|---|---|"]
    page.put("agents", "\n".join(lines + [rows[number, stack.name] for number in AGENTS for stack in STACKS]))
    page.put("agents-ask", f"{AGENTS_ASK:,}")


def visited(port, number):
    """Asks for ten pages at random, each time as one of so many agents. Answers, and failures; twenty of those end it."""
    dice, done, failed = random.Random(1), 0, 0
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    while done + failed < AGENTS_ASK and failed < 20:
        agent = {"User-Agent": f"agent-{dice.randrange(number)}"}
        try:
            client.request("GET", f"/gen/10?as={number}-{dice.randrange(10)}", headers=agent)
            answer = client.getresponse()
            answer.read()
            done += answer.status == 200
            failed += answer.status != 200
        except (OSError, http.client.HTTPException):
            client.close()
            failed += 1
    client.close()
    return done, failed


def main():
    page = Page("mixed-10k", work)
    origin = Origin(work, {*range(1, 41), *SIZES_KB})
    try:
        mixed, totals = made("mixed", total=2_000 if SMOKE else 100_000, sizes="10..40KB", cacheable="89%")
        page.put("totals", totals)
        page.put("warm-rounds", str(WARM_ROUNDS))
        cold(page, origin, mixed)
        warm(page, origin)
    finally:
        origin.stop()
    agents(page)
    page.write()


main()
