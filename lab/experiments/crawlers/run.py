"""A crowd and a crawler: people at WordPress, alone and beside a crawler that asks twenty times as often for pages that
nobody has asked for; before nginx, Varnish and Larder, without and with what each has against that."""

import json
import os
import subprocess
import sys
import time

import peers
import wordpress_stacks
from experiment import LARDER, ROUNDS, SMOKE, Page, Stack, bench, median
from processes import TICKS, cpu_ticks, pinned
from wordpress_stacks import KEPT, RunningSite, larder, nginx, varnish, versions

work, php = sys.argv[1], int(sys.argv[2])
ROUNDS = min(ROUNDS, 3)
PEOPLE, SECONDS = (3, 3) if SMOKE else (10, 30)
TIMES = 20

# What a crawler may have at most, in each stack that counts: one request a second, and ten at once.
AGENTS = "GPTBot|ClaudeBot|CCBot|Bytespider|Amazonbot|PerplexityBot|meta-externalagent"
NGINX_LIMIT = f"""
  map $http_user_agent $crawler {{{{ default ""; "~*({AGENTS})" crawler; }}}}
  limit_req_zone $crawler zone=crawlers:1m rate=1r/s;
  limit_req_status 429;
  server {{{{"""
VCL_LIMIT = f"""
  if (req.http.User-Agent ~ "(?i)({AGENTS})" && vsthrottle.is_denied("crawlers", 10, 10s)) {{{{
    return (synth(429));
  }}}}
  unset req.http.proxy;"""
PRESET = 'preset = ["wordpress", "crawlers"]'
RATE = """
[site.crawlers]
ai = {{ serve = "stored", rate = {{ requests = "1/s", burst = 10, queue = 0, per = "site" }} }}
[site.cache]"""


def replaced(text, *changes):
    """A text with parts of it replaced, each of which is there."""
    for old, new in changes:
        if old not in text:
            raise RuntimeError(f"nothing to replace: {old}")
        text = text.replace(old, new, 1)
    return text


def with_text(name, text, command):
    """A server's command, with another text for what it is configured by."""
    def changed(place):
        usual = getattr(wordpress_stacks, name)
        setattr(wordpress_stacks, name, text)
        try:
            return command(place)
        finally:
            setattr(wordpress_stacks, name, usual)

    return changed


limited_nginx = with_text(
    "NGINX", replaced(wordpress_stacks.NGINX, ("\n  server {{", NGINX_LIMIT)),
    nginx(work, KEPT + "      limit_req zone=crawlers burst=10 nodelay;\n"),
)
limited_varnish = with_text(
    "VCL",
    replaced(
        wordpress_stacks.VCL, ("vcl 4.1;", "vcl 4.1;\nimport vsthrottle;"), ("\n  unset req.http.proxy;", VCL_LIMIT),
    ),
    varnish,
)
TOML = replaced(wordpress_stacks.LARDER_TOML, ('preset = "wordpress"', PRESET))
queueing = with_text("LARDER_TOML", TOML, larder(work))
limited_larder = with_text("LARDER_TOML", replaced(TOML, ("[site.cache]", RATE.lstrip())), larder(work))

STACKS = [
    Stack("nginx", [nginx(work, KEPT)]),
    Stack("nginx, `limit_req` by User-Agent", [limited_nginx]),
    Stack("Varnish, nginx", [varnish, nginx(work)]),
    Stack("Varnish with vsthrottle, nginx", [limited_varnish, nginx(work)]),
    Stack("Larder, preset `wordpress`", [larder(work)]),
    Stack("Larder, presets `wordpress` and `crawlers`", [queueing]),
    Stack("Larder, both presets and `rate`", [limited_larder]),
]


def asked():
    """The number of scripts that PHP ran."""
    with open(f"{work}/php-access.log") as file:
        return sum(1 for _ in file)


def at_rest():
    """Waits until PHP has ended what it was asked for."""
    before, deadline = -1, time.monotonic() + 30
    while (now := cpu_ticks(php)) - before > TICKS // 20 and time.monotonic() < deadline:
        before = now
        time.sleep(1)


def visited(stack, crawler, seed):
    """One run: what people and the crawler saw, and what PHP did for them."""
    with RunningSite(stack, work) as running:
        at_rest()
        scripts, ticks = asked(), cpu_ticks(php)
        command = ["python3", f"{os.path.dirname(os.path.abspath(__file__))}/visitors.py"]
        numbers = [running.port, SECONDS, PEOPLE, PEOPLE * TIMES if crawler else 0, seed]
        ran = subprocess.run(pinned(1, command + list(map(str, numbers))), capture_output=True, text=True, check=True)
        seen = json.loads(ran.stdout)
        at_rest()
        seen["scripts"], seen["cpu"] = asked() - scripts, (cpu_ticks(php) - ticks) / TICKS
        return seen, machine(running)


def machine(running):
    """The machine, as `larder bench` tells of it."""
    url = f"http://127.0.0.1:{running.port}/status"
    return bench(work, running.pids, "-c", 1, "-n", 1, "--warm-up", "0", url)["machine"]


def quantile(rounds, share):
    """A part of the times of people in all rounds, in milliseconds."""
    times = sorted(time for one in rounds for time in one["people"]["times"])
    return times[min(len(times) - 1, int(len(times) * share))] * 1e3


def statuses(rounds, of):
    """The share of each status, most first."""
    sums = {}
    for one in rounds:
        for status, number in one[of]["statuses"].items():
            sums[status] = sums.get(status, 0) + number
    every = sum(sums.values())
    shares = sorted(sums.items(), key=lambda row: -row[1])
    return ", ".join(f"{status}: {number / every:.1%}" for status, number in shares) or "–"


def times(now, before):
    return f"{now / before:.2f}" if before else "–"


def of_people(runs):
    """What people and the crawler saw."""
    lines = [
        "| stack | alone: p50 | p99 | beside the crawler: p50 | p99 | p99, times | people got | the crawler got |",
        f"|{'---|' * 8}",
    ]
    for name, (alone, beside) in runs.items():
        ms = [quantile(rounds, share) for rounds in (alone, beside) for share in (0.5, 0.99)]
        cells = [f"{one:.1f} ms" for one in ms] + [times(ms[3], ms[1])]
        cells += [statuses(beside, "people"), statuses(beside, "crawler")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_php(runs):
    """What PHP did for them."""
    lines = [
        "| stack | requests: alone | beside the crawler | times | CPU: alone | beside the crawler | times |",
        f"|{'---|' * 7}",
    ]
    for name, both in runs.items():
        asked = [median([one["scripts"] for one in rounds]) for rounds in both]
        cpu = [median([one["cpu"] for one in rounds]) for rounds in both]
        cells = [str(asked[0]), str(asked[1]), times(asked[1], asked[0])]
        cells += [f"{cpu[0]:.1f} s", f"{cpu[1]:.1f} s", times(cpu[1], cpu[0])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    page = Page("crawlers", work)
    runs = {stack.name: ([], []) for stack in STACKS}
    for number in range(ROUNDS):
        for stack in STACKS[number % len(STACKS):] + STACKS[:number % len(STACKS)]:
            for crawler, rounds in zip((False, True), runs[stack.name]):
                seen, facts = visited(stack, crawler, number)
                rounds.append(seen)
        print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    facts["cores"] = str(os.cpu_count())
    page.machine({"machine": facts, "versions": versions()})
    parts = {"people": PEOPLE, "crawler": PEOPLE * TIMES, "seconds": SECONDS, "repeats": ROUNDS}
    for part, value in parts.items():
        page.put(part, str(value))
    for part, text in {"seen": of_people(runs), "php": of_php(runs)}.items():
        page.put(part, text)
        print(f"{text}\n")
    page.write()


main()
