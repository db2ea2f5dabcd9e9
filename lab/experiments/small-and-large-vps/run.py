"""Seed 002: WordPress on a small and on a larger machine, behind nginx alone, nginx with a cache, Varnish, and Larder;
the pages of its sitemap, asked at random by `siege` as the article called it, and by `larder bench`."""

import glob
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import peers
from experiment import LARDER, ROUNDS, SMOKE, Page, Stack, bench, columns, median, run_of
from processes import TICKS, cpu_ticks, end, memory_bytes, pinned
from wordpress_stacks import KEPT, RunningSite, larder, memory_group, nginx, until_open, varnish, versions

work, db_user = sys.argv[1:]
# siege keeps its settings there, even when it only tells its version.
os.environ["HOME"] = f"{work}/home"
ROUNDS = min(ROUNDS, 3)
SECONDS, PAUSED_SECONDS, LENGTH = (1, 1, "300ms") if SMOKE else (3, 6, "3s")

STACKS = [
    Stack("nginx, no cache", [nginx(work)]),
    Stack("nginx, fastcgi_cache", [nginx(work, KEPT)]),
    Stack("Varnish, nginx", [varnish, nginx(work)], {"memory_mib": 256}),
    Stack("Larder", [larder(work)], {"memory_mib": 256}),
]


@dataclass
class Machine:
    """A machine: what serves has these cores and so much memory, the load has those."""

    name: str
    mib: int
    cores: list
    load: list
    users: list


MACHINES = [
    Machine("small", 1024, [0], [1], [2] if SMOKE else [1, 5, 10]),
    Machine("large", 4096, [0, 1], [0, 1], [5] if SMOKE else [1, 25, 75]),
]

# Times that siege may be begun for one figure.
SIEGES = 4

# As siege is installed, but for what it does besides the list (pages' pictures and styles), and for compression, which
# `larder bench` does not ask for either.
SIEGERC = """
verbose = false
quiet = true
json_output = true
show-logfile = false
logging = false
parser = false
limit = 1000
protocol = HTTP/1.1
connection = close
accept-encoding = identity
"""


class Application:
    """PHP-FPM and its database on some cores, within a group of processes."""

    def __init__(self, machine, within):
        self.processes = []
        database, php = f"{work}/run/db.sock", f"{work}/run/php.sock"
        try:
            self.begin("db", machine, within, [
                "mariadbd", "--no-defaults", f"--datadir={work}/db", f"--user={db_user}", f"--socket={database}",
                "--skip-networking", f"--pid-file={work}/run/db.pid", "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0", "--skip-grant-tables",
            ], database)
            program = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
            self.begin("php", machine, within, [program, "--nodaemonize", "--fpm-config", f"{work}/php-fpm.conf"], php)
        except BaseException:
            self.stop()
            raise

    def begin(self, name, machine, within, command, path):
        with open(f"{work}/{name}.log", "a") as log:
            self.processes.append(subprocess.Popen(
                pinned(machine.cores, within(command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            ))
        until_open(path)

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for process in reversed(self.processes):
            end(process)


def runs_of_php():
    """The number of scripts that PHP ran."""
    with open(f"{work}/php-access.log") as file:
        return sum(1 for _ in file)


def settle(before):
    """Waits until PHP has ended what nobody waits for any more, if it was asked at all; its runs since."""
    seen = before
    for _ in range(40):
        if seen == (seen := runs_of_php()):
            break
        time.sleep(0.5)
    return seen - before


def pages_of(machine):
    """The paths of the sitemap, which is an index of others."""
    stack = STACKS[0]
    with Application(machine, lambda command: command), RunningSite(stack, work, core=machine.cores) as running:
        url = f"http://127.0.0.1:{running.port}/wp-sitemap.xml"
        command = [LARDER, "bench", "urls", "sitemap", url]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()
    paths = [urlsplit(url).path for url in listed]
    return paths[:6] if SMOKE else paths


def siege(machine, users, urls, pids, seconds, *words):
    """`siege` as the article called it: transactions a second, their mean time in milliseconds, failures, CPU time. Now
    and then it waits for itself when its time is over; then it is ended, and begins anew."""
    command = ["siege", "-R", f"{work}/siegerc", "-c", str(users), f"-t{seconds}S", "-f", urls, "-i", "-q", *words]
    # Its threads are stopped wherever they are: one that holds a lock of malloc keeps the others for ever.
    for attempt in range(SIEGES):
        asked, before = runs_of_php(), sum(map(cpu_ticks, pids))
        try:
            ran = subprocess.run(
                pinned(machine.load, command), capture_output=True, text=True, check=True,
                timeout=seconds + 15,
            )
            break
        except subprocess.TimeoutExpired:
            print(f"siege -c {users} does not end", file=sys.stderr)
            if attempt == SIEGES - 1:
                raise
    spent = sum(map(cpu_ticks, pids)) - before
    settle(asked)
    said = json.loads(ran.stdout[ran.stdout.index("{"):])
    return {
        "rate": said["transaction_rate"], "time": said["response_time"] * 1e3, "failed": said["failed_transactions"],
        "cpu": spent / TICKS * 1e6 / max(1, said["transactions"]),
    }


def one_machine(machine, paths, number):
    """A round of all stacks: for each, by users, what siege and `larder bench` found; and siege with pauses."""
    found = {}
    for stack in STACKS[number % len(STACKS):] + STACKS[:number % len(STACKS)]:
        group = memory_group(f"{machine.name}-{number}", machine.mib)
        within = group.within if group else lambda command: command
        try:
            with Application(machine, within) as application, \
                    RunningSite(stack, work, core=machine.cores, workers=len(machine.cores), within=within) as running:
                found[stack.name] = one_stack(machine, running, application.pids + running.pids, paths, group)
        finally:
            if group:
                group.remove()
    return found


def one_stack(machine, running, pids, paths, group):
    server = f"http://127.0.0.1:{running.port}"
    urls = f"{work}/urls"
    with open(urls, "w") as file:
        file.writelines(f"{server}{path}\n" for path in paths)
    # Each page once, which fills the caches.
    bench(work, pids, "-c", 4, "-n", len(paths), "--warm-up", "0", "--urls", urls, core=machine.load)
    rows = {}
    for users in machine.users:
        theirs = siege(machine, users, urls, pids, SECONDS)
        before = runs_of_php()
        load = ["-c", users, "-d", LENGTH, "--warm-up", "0", "--no-keep-alive", "--order", "random"]
        run = bench(work, pids, *load, "--urls", urls, core=machine.load)
        [result] = run["series"][0]["points"][0]["rounds"]
        result["origin_requests"] = settle(before)
        result["pss_bytes"] = sum(map(memory_bytes, pids))
        result["group_bytes"] = group.peak_bytes() if group else 0
        rows[users] = (theirs, result, run)
    return rows, siege(machine, machine.users[-1], urls, pids, PAUSED_SECONDS, "-d", "1")


def main():
    page = Page("small-and-large-vps", work)
    with open(f"{work}/siegerc", "w") as file:
        file.write(SIEGERC)
    paths = pages_of(MACHINES[0])
    page.put("pages", str(len(paths)))
    page.put("seconds", str(SECONDS))
    found = {machine.name: [] for machine in MACHINES}
    for number in range(ROUNDS):
        for machine in MACHINES:
            found[machine.name].append(one_machine(machine, paths, number))
        print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    for machine in MACHINES:
        write(page, machine, found[machine.name])
    page.put("rounds-here", str(ROUNDS))
    page.write()


def write(page, machine, rounds):
    """The charts and the tables of a machine."""
    points = {
        stack.name: {users: [one[stack.name][0][users][1] for one in rounds] for users in machine.users}
        for stack in STACKS
    }
    run = rounds[0][STACKS[0].name][0][machine.users[0]][2]
    page.run(machine.name, run_of(points, run, {**versions(), "siege": peers.version("siege", "--version")}), ["rate", "p50", "cpu"])
    lines = [
        "| users | stack | `siege`: trans/s | mean | failed | `larder bench`: requests/s | ratio | p50 | p99 | failed "
        "| CPU a request | runs of PHP | memory | most in the group |", f"|{'---|' * 14}",
    ]
    for users in machine.users:
        for stack in STACKS:
            theirs = [one[stack.name][0][users][0] for one in rounds]
            lines.append(row(users, stack.name, theirs, points[stack.name][users]))
    page.put(machine.name, "\n".join(lines))
    lines = ["| stack | `siege -d 1`: trans/s | mean | failed | CPU a transaction |", "|---|---|---|---|---|"]
    for stack in STACKS:
        paused = [one[stack.name][1] for one in rounds]
        of = lambda key: median([one[key] for one in paused])
        failed = sum(one["failed"] for one in paused)
        lines.append(f"| {stack.name} | {of('rate'):,.1f} | {of('time'):.0f} ms | {failed} | {of('cpu'):,.0f} µs |")
    page.put(f"{machine.name}-paused", "\n".join(lines))
    page.put(f"{machine.name}-users", str(machine.users[-1]))


def row(users, name, theirs, ours):
    """A stack with so many users."""
    of = lambda key: median([one[key] for one in theirs])
    cells = columns(ours)
    rate = median([one["completed"] / one["elapsed_us"] * 1e6 for one in ours])
    memory = median([one["pss_bytes"] for one in ours]) >> 20
    failed = sum(one["failed"] for one in theirs)
    return (
        f"| {users} | {name} | {of('rate'):,.0f} | {of('time'):.0f} ms | {failed} | {cells['requests/s']} "
        f"| {rate / max(0.01, of('rate')):.2f} | {cells['p50']} | {cells['p99']} | {cells['errors']} "
        f"| {cells['CPU a request']} | {cells['origin requests']} | {memory} MiB | {cells['most in the group']} |"
    )


main()
