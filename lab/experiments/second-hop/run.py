"""Seed 001: a second cache behind the first. Apache with static pages, as Drupal's Boost leaves them, behind nginx,
behind Varnish and nginx, behind Larder, and behind Larder and nginx; by `ab` and `httperf` as the article called them,
and by what `larder bench` has in their place."""

import os
import re
import subprocess
import sys

import peers
from experiment import ROUNDS, SMOKE, Page, Running, Stack, ab, bench, columns, median, started, there, versions
from processes import end, free_ports, pinned

work = sys.argv[1]
LENGTH = 26_362
STACKS = there([
    Stack("nginx", ["nginx"]),
    Stack("Varnish, nginx", ["varnish", "nginx"]),
    Stack("Larder", ["larder"]),
    Stack("Larder, nginx", ["larder", "nginx"]),
])
# The article had 10,000 requests, which are over in an eighth of a second here.
CONNECTIONS, REQUESTS = (20, 500) if SMOKE else (500, 200_000)
SESSIONS, BURSTS, THINK, RATE = (20, 2, 0.1, 100) if SMOKE else (2_000, 10, 2, 300)

SITE = """
DocumentRoot {work}/static
<Directory {work}/static>
  Require all granted
  DirectoryIndex index.html
</Directory>
Header set Cache-Control "max-age=3600"
LogFormat "%U" short
CustomLog {work}/apache-access.log short
"""


class Apache:
    """Apache with one static page, on the load's core. It counts what it is asked by its log."""

    def __init__(self):
        os.makedirs(f"{work}/static", exist_ok=True)
        os.chmod(work, 0o755)
        with open(f"{work}/static/index.html", "w") as file:
            file.write("<!DOCTYPE html><title>Boost</title>".ljust(LENGTH, "x"))
        self.port = free_ports(1)[0]
        command = peers.apache("origin", ["dir", "headers"], SITE)(peers.Place(work, self.port, 0))
        self.process = started(1, command, self.port, f"{work}/origin.log")

    def asked(self):
        """The number of requests for the page so far."""
        with open(f"{work}/apache-access.log") as file:
            return sum(line.strip() in ("/", "/index.html") for line in file)

    def stop(self):
        end(self.process)


def httperf(port):
    """`httperf` as the article called it: sessions, replies, the time of a reply in milliseconds, errors."""
    command = [
        "httperf", "--hog", "--server", "127.0.0.1", "--port", str(port),
        f"--wsess={SESSIONS},{BURSTS},{THINK}", "--rate", str(RATE), "--timeout", "5",
    ]
    text = subprocess.run(pinned(1, command), capture_output=True, text=True, check=True).stdout
    number = lambda pattern: float((re.search(pattern, text) or [0, "nan"])[1])
    return {
        "sessions": sessions_of(text),
        "replies": int(number(r"Total: connections \d+ requests \d+ replies (\d+)")),
        "reply": number(r"Reply time \[ms\]: response ([\d.]+)"),
        "errors": int(number(r"Errors: total (\d+)")),
        "fds": int(number(r"Errors: fd-unavail (\d+)")),
    }


def sessions_of(text):
    """Sessions that httperf completed: `Session rate [sess/s]: min X avg Y max Z (C/T)`."""
    found = re.search(r"Session rate.*\((\d+)/(\d+)\)", text)
    return int(found[1]) if found else 0


def main():
    page = Page("second-hop", work)
    origin = Apache()
    tools = {stack.name: [] for stack in STACKS}
    own = {stack.name: [] for stack in STACKS}
    visits = {}
    try:
        for number in range(ROUNDS):
            for stack in STACKS[number % len(STACKS):] + STACKS[:number % len(STACKS)]:
                with Running(stack, work, origin.port) as running:
                    url = f"http://127.0.0.1:{running.port}/"
                    bench(work, running.pids, "-c", 1, "-n", 20, "--warm-up", "0", url)
                    # Each tool goes first in every other round.
                    for tool in (0, 1) if number % 2 else (1, 0):
                        if tool:
                            tools[stack.name].append(ab(url, "-c", CONNECTIONS, "-n", REQUESTS))
                            continue
                        before = origin.asked()
                        run = bench(work, running.pids, "-c", CONNECTIONS, "-n", REQUESTS, "--warm-up", "0", url)
                        [result] = run["series"][0]["points"][0]["rounds"]
                        result["origin_requests"] = origin.asked() - before
                        own[stack.name].append(result)
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
        for stack in STACKS:
            with Running(stack, work, origin.port) as running:
                url = f"http://127.0.0.1:{running.port}/"
                bench(work, running.pids, "-c", 1, "-n", 20, "--warm-up", "0", url)
                theirs = httperf(running.port)
                ours = bench(
                    work, running.pids, "--sessions", RATE, "--bursts", BURSTS, "--think", f"{int(THINK * 1000)}ms",
                    "-n", SESSIONS, "--warm-up", "0", "--timeout", "5s", url,
                )
                visits[stack.name] = (theirs, ours["series"][0]["points"][0]["rounds"][0])
        write(page, run, tools, own, visits)
    finally:
        origin.stop()


def write(page, run, tools, own, visits):
    run["machine"]["cores"] = str(os.cpu_count())
    run["versions"] = {**versions(STACKS), "apache": peers.version("apache2", "-v"), "ab": peers.version("ab", "-V")}
    run["series"] = [
        {"name": name, "axis": "connections", "points": [{"x": CONNECTIONS, "rounds": rounds}]}
        for name, rounds in own.items()
    ]
    page.run("ab", run, ["rate", "distribution"])
    lines = [
        "| stack | `ab` | `larder bench` | ratio | p50 | p50 | p99 | p99 | failed | CPU a request | asked of the origin |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rounds in own.items():
        of = lambda key: median([one[key] for one in tools[name]])
        mine = columns(rounds)
        rate = median([one["completed"] / one["elapsed_us"] * 1e6 for one in rounds])
        failed = sum(one["failed"] + one["refused"] for one in tools[name])
        lines.append(
            f"| {name} | {of('rate'):,.0f} /s | {rate:,.0f} /s | {rate / max(0.01, of('rate')):.2f} | {of('p50'):.0f} ms | {mine['p50']} "
            f"| {of('p99'):.0f} ms | {mine['p99']} | {failed}, {mine['errors']} | {mine['CPU a request']} "
            f"| {mine['origin requests']} |"
        )
    page.put("ab", "\n".join(lines))
    lines = [
        "| stack | `httperf`: sessions | replies | mean reply | errors (no descriptor) "
        "| `larder bench`: sessions | replies | mean reply | errors |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (theirs, ours) in visits.items():
        lines.append(
            f"| {name} | {theirs['sessions']} | {theirs['replies']:,} | {theirs['reply']:.1f} ms "
            f"| {theirs['errors']} ({theirs['fds']}) | {ours['sessions']['completed']} | {ours['completed']:,} "
            f"| {columns([ours])['first byte mean']} | {ours['attempted'] - ours['completed']} |"
        )
    page.put("visits", "\n".join(lines))
    page.write()


main()
