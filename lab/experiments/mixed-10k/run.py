"""Seed 004: Varnish and Squid on a list of pages of 10 to 40 KB, of which a ninth must not be stored; and what the
readers of that article asked for."""

import os
import subprocess
import sys

from experiment import LARDER, SMOKE, Origin, Page, Stack, bench, measure, table, there

work = sys.argv[1]
STACKS = there([
    Stack("Varnish", ["varnish"], {"memory_mib": 512}),
    Stack("Squid", ["squid"], {"memory_mib": 512}),
    Stack("nginx", ["nginx"], {"memory_mib": 512}),
    Stack("HAProxy", ["haproxy"], {"memory_mib": 512}),
    Stack("Traffic Server", ["trafficserver"], {"memory_mib": 512}),
    Stack("Larder", ["larder"], {"memory_mib": 512}),
])
PARALLEL = [10] if SMOKE else [10, 25, 50, 100, 200, 400]
FETCHES = 300 if SMOKE else 20_000
SECONDS = "200ms" if SMOKE else "1s"


def made(name, **options):
    """A list by the generator; its path and its totals."""
    path = os.path.join(work, name)
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    ran = subprocess.run(
        [LARDER, "bench", "urls", "makelist", *words, "-o", path], check=True, capture_output=True, text=True,
    )
    return path, ran.stderr.strip()


def asked(path):
    return lambda port: ["--urls", path, f"http://127.0.0.1:{port}"]


def main():
    page = Page("mixed-10k", work)
    origin = Origin(work, range(1, 41))
    try:
        total = 2_000 if SMOKE else 100_000
        mixed, totals = made("mixed", total=total, sizes="10..40KB", cacheable="89%")
        page.put("totals", totals)

        run = measure(
            STACKS, work, origin, PARALLEL, lambda c: ["-c", c, "-n", FETCHES, "--warm-up", "0"], asked(mixed),
        )
        page.run("parallel", run)
        heads = ["requests/s", "first byte p50", "connect p50", "p50", "p99", "CPU a request", "asked of the origin", "errors"]
        page.put("parallel", table(run, heads))

        rates = [500] if SMOKE else [1000, 2000, 4000, 8000]
        run = measure(
            STACKS, work, origin, rates,
            lambda rate: ["--rate", rate, "-d", SECONDS, "--warm-up", "500ms"], asked(mixed), fresh=False,
        )
        page.run("rates", run, ["p50", "p99"])
        page.put("rates", table(run, ["requests/s", "p50", "p99", "max", "CPU a request", "errors"], x="due a second"))

        for part, share in [("hits", "100%"), ("misses", "0%")]:
            path, _ = made(part, total=1_000, sizes="10..40KB", cacheable=share, unique=200)
            run = measure(
                STACKS, work, origin, [50],
                lambda c: ["-c", c, "-d", SECONDS, "--warm-up", "500ms"], asked(path), fresh=False,
            )
            page.put(part, table(run, ["requests/s", "p50", "p99", "CPU a request", "hits", "errors"]))

        idle = 50 if SMOKE else 10_000
        run = measure(
            STACKS, work, origin, [50],
            lambda c: ["-c", c, "-d", SECONDS, "--warm-up", "500ms", "--idle", idle, "--timeout", "10s"],
            asked(mixed), fresh=False,
        )
        for series in run["series"]:
            held = [one["background"] for point in series["points"] for one in point["rounds"]]
            series["name"] += f" ({min(held):,} held)"
        page.put("idle", table(run, ["requests/s", "p50", "p99", "CPU a request", "memory", "errors"]))

        run = measure(
            STACKS, work, origin, [50],
            lambda c: ["-c", c, "-n", FETCHES, "--warm-up", "0", "--order", "random"], asked(mixed),
        )
        page.put("order", table(run, ["requests/s", "p50", "p99", "asked of the origin", "errors"]))
        page.write()
    finally:
        origin.stop()


main()
