"""Seed 003: pages kept for a second. WordPress by itself, behind nginx as the article's three steps have it, and behind
Larder; and how old a page is that changes all the time."""

import http.client
import os
import sys
import threading
import time

import peers
from experiment import LARDER, ROUNDS, SMOKE, Page, Running, Stack, ab, bench, columns, median, started
from processes import end, free_ports

work = sys.argv[1]
SECONDS = 1 if SMOKE else 4

APPLICATION = """
  include /etc/nginx/mime.types;
  server {{
    listen 127.0.0.1:{port}; root {work}/site; index index.php;
    location = /status {{ return 204; }}
    location / {{ try_files $uri $uri/ /index.php?$args; }}
    location ~ [.]php$ {{
      include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass unix:{work}/run/php.sock;
    }}
  }}
"""

# The article's server, with what each of its steps adds; the zone is `cache` here, where the article mixes two names.
STEP = """
  proxy_cache_path {work}/cache keys_zone=cache:10m levels=1:2 inactive=600s max_size=100m;
  upstream wordpress {{ server 127.0.0.1:{origin}; keepalive 20; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Accept-Encoding "";
    proxy_set_header Host $http_host;
    {cache}
    location / {{ proxy_pass http://wordpress; add_header X-Cache $upstream_cache_status; }}
  }}
"""

LARDER_TOML = """
listen  = ["127.0.0.1:{port}"]
workers = 1
[[site]]
host   = "*"
origin = "http://127.0.0.1:{origin}"
cache  = {{ ttl = {{ 200 = "1s" }} }}
"""


def step(*directives):
    return lambda place: peers.nginx_command(place, "step", STEP, cache="; ".join((*directives, "")))


def larder(place):
    conf = peers.write(place, "larder.toml", LARDER_TOML)
    return peers.serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")


KEPT = ("proxy_cache cache", "proxy_cache_valid 200 1s")
STACKS = [
    Stack("WordPress alone", []),
    Stack("nginx, step 1: a proxy", [step()]),
    Stack("nginx, step 2: kept for 1 s", [step(*KEPT)]),
    Stack("nginx, step 3: lock, stale while updating", [step(*KEPT, "proxy_cache_lock on", "proxy_cache_use_stale updating")]),
    Stack("Larder, kept for 1 s", [larder]),
]


class Application:
    """nginx before PHP-FPM, on the servers' core. What PHP ran is counted by its log."""

    def __init__(self):
        self.port = free_ports(1)[0]
        place = peers.Place(work, self.port, 0)
        command = peers.nginx_command(place, "app", APPLICATION)
        self.process = started(0, command, self.port, f"{work}/app.log")

    def asked(self):
        """The number of scripts that PHP ran."""
        with open(f"{work}/php-access.log") as file:
            return sum(1 for _ in file)

    def stop(self):
        end(self.process)


def ages(port, until):
    """How old a page is when it is received, in seconds, for a visitor who comes every 20 ms."""
    found, waited = [], []
    while time.monotonic() < until:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        began = time.time()
        client.request("GET", "/age.php")
        response = client.getresponse()
        made = response.read()
        if response.status == 200:
            found.append(time.time() - float(made))
            waited.append(time.time() - began)
        client.close()
        time.sleep(0.02)
    return found, waited


def aged(running):
    """The ages that a visitor sees beside ten others who ask without end."""
    seen = {"ages": [], "waits": []}
    until = time.monotonic() + SECONDS + 1

    def visit():
        seen["ages"], seen["waits"] = ages(running.port, until)

    visitor = threading.Thread(target=visit)
    visitor.start()
    bench(work, [], "-c", 10, "-d", f"{SECONDS}s", "--warm-up", "500ms", f"http://127.0.0.1:{running.port}/age.php")
    visitor.join()
    return seen


def quantile(values, share):
    values = sorted(values)
    return f"{values[min(len(values) - 1, int(len(values) * share))]:.2f} s" if values else "–"


def main():
    page = Page("microcache", work)
    origin = Application()
    own = {stack.name: [] for stack in STACKS}
    theirs = {stack.name: [] for stack in STACKS}
    seen = {stack.name: [] for stack in STACKS if stack.layers and stack.name != STACKS[1].name}
    try:
        for number in range(ROUNDS):
            for stack in STACKS:
                with Running(stack, work, origin.port) as running:
                    url = f"http://127.0.0.1:{running.port}/"
                    # As the article called it.
                    theirs[stack.name].append(ab(url, "-c", 10, "-t", SECONDS, "-n", 50000000))
                    # What the run before left unfinished ends first.
                    time.sleep(0.1 if SMOKE else 2)
                    before = origin.asked()
                    run = bench(work, running.pids, "-c", 10, "-d", f"{SECONDS}s", "--warm-up", "0", url)
                    [result] = run["series"][0]["points"][0]["rounds"]
                    result["origin_requests"] = origin.asked() - before
                    own[stack.name].append(result)
                    if stack.name in seen:
                        seen[stack.name].append(aged(running))
                    time.sleep(0.1 if SMOKE else 2)
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
        write(page, run, own, theirs, seen)
    finally:
        origin.stop()


def write(page, run, own, theirs, seen):
    run["machine"]["cores"] = str(os.cpu_count())
    run["versions"] = {
        "larder": peers.version(LARDER, "--version"), "nginx": peers.version("nginx", "-v"), "ab": peers.version("ab", "-V"),
        "php": peers.version("php", "--version"),
    }
    run["series"] = [
        {"name": name, "axis": "connections", "points": [{"x": 10, "rounds": rounds}]} for name, rounds in own.items()
    ]
    page.run("kept", run, ["rate", "distribution"])
    lines = [
        "| stack | `ab`: requests/s | mean ± sd | max | `larder bench`: requests/s | mean ± sd | p99 | max | runs of PHP | failed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rounds in own.items():
        of = lambda key: median([one[key] for one in theirs[name]])
        mine = columns(rounds)
        # Pages of PHP differ in length, which `ab` counts as failed.
        failed = sum(one["refused"] for one in theirs[name])
        lines.append(
            f"| {name} | {of('rate'):,.0f} | {of('mean'):.0f} ± {of('stdev'):.0f} ms | {of('max'):.0f} ms | {mine['requests/s']} "
            f"| {mine['mean']} ± {mine['stdev']} | {mine['p99']} | {mine['max']} | {mine['origin requests']} | {failed}, {mine['errors']} |"
        )
    page.put("kept", "\n".join(lines))
    page.put("seconds", str(SECONDS))
    lines = [
        "| stack | age: median | p99 | oldest | wait for it: median | p99 | longest |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rounds in seen.items():
        both = [[value for one in rounds for value in one[key]] for key in ("ages", "waits")]
        cells = [quantile(values, share) for values in both for share in (0.5, 0.99, 1)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    page.put("age", "\n".join(lines))
    page.write()


main()
