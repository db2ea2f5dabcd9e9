"""What the experiments share: stacks of servers, rounds that take turns, one result, one page.

A stack is started with empty caches for every measurement, as the articles did by restarting. Servers share core 0,
the load and its origin have core 1, on a machine that has two. The load is `larder bench`; where an article used a tool
of its own, that runs too. A result is a run as `larder bench` writes it, with one series for each stack.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field

import peers
from processes import end, free_ports, pinned

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SMOKE = os.environ.get("SMOKE") == "1"
LARDER = os.environ["LARDER_BIN"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

ORIGIN = """
  sendfile on; tcp_nopush on; open_file_cache max=1000; default_type text/html; etag off;
  map $arg_as $lifetime {{ "" "no-store"; default "max-age=3600"; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /status {{ stub_status; }}
    location ~ ^/gen/(?<kb>[0-9]+)$ {{
      add_header Cache-Control $lifetime; {vary}
      alias {work}/gen/$kb;
    }}
  }}
"""


@dataclass
class Stack:
    """Servers one before another, the outermost first, by the names that peers.py has, or as commands of a Place; and
    the cores that they share."""

    name: str
    layers: list
    settings: dict = field(default_factory=dict)
    cores: list = field(default_factory=lambda: [0])


class Running:
    """A stack that runs, before `origin`; `within` puts a command into a group of processes."""

    def __init__(self, stack, work, origin, within=None):
        self.processes, self.places, self.begun = [], [], []
        port = origin
        for layer in reversed(stack.layers):
            folder = os.path.join(work, f"{re.sub('[^a-z0-9]+', '-', stack.name.lower())}-{len(self.places)}")
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            os.chmod(folder, 0o755)
            [own] = free_ports(1)
            place = peers.Place(folder, own, port, **stack.settings)
            command = peers.ALL[layer].command(place) if isinstance(layer, str) else layer(place)
            log = os.path.join(folder, "log")
            self.places.append(place)
            self.begun.append((stack.cores, within(command) if within else command, own, log))
            self.processes.append(started(*self.begun[-1]))
            port = own
        self.port = port

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    def again(self):
        """Stops and starts every server; the seconds until the last one started answers."""
        for process in reversed(self.processes):
            end(process)
        began = time.monotonic()
        self.processes = [started(*begun) for begun in self.begun]
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for process in reversed(self.processes):
            end(process)
        for place in self.places:
            peers.remove_files(place)
            shutil.rmtree(place.work, ignore_errors=True)


def started(core, command, port, log):
    """A server on a core, or several, once it answers at its port."""
    with open(log, "w") as out:
        process = subprocess.Popen(
            pinned(core, command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            client.request("GET", "/status")
            client.getresponse().read()
            return process
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
    end(process)
    with open(log, errors="replace") as text:
        raise RuntimeError(f"{command[0]}: nothing answers: {' '.join(text.read().split())[-400:]}")


class Origin:
    """nginx that answers /gen/KB with so many kilobytes: to be kept for an hour with `?as=N`, else not to be stored.
    It counts what it is asked."""

    def __init__(self, work, sizes, vary=""):
        os.makedirs(f"{work}/gen", exist_ok=True)
        os.chmod(work, 0o755)
        for size in sizes:
            with open(f"{work}/gen/{size}", "wb") as file:
                file.write(b"<!-- a page of the lab -->\n".ljust(1024, b"x") * size)
        self.port = free_ports(1)[0]
        place = peers.Place(work, self.port, 0)
        command = peers.nginx_command(place, "origin", ORIGIN, vary=vary)
        self.process = started(1, command, self.port, f"{work}/origin.log")

    def asked(self):
        """The number of requests so far, this one included."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        client.request("GET", "/status")
        return int(client.getresponse().read().decode().splitlines()[2].split()[2])

    def stop(self):
        end(self.process)


def bench(work, pids, *arguments, core=1):
    """One run of `larder bench`; its result, also if nothing was answered."""
    path = os.path.join(work, "bench.json")
    if os.path.exists(path):
        os.remove(path)
    observed = [word for pid in pids for word in ("--pid", str(pid))]
    command = [LARDER, "bench", "-t", "1", *observed, "--json", path, *map(str, arguments)]
    ran = subprocess.run(pinned(core, command), capture_output=True, text=True, check=False)
    # A server that answers nothing is a result too.
    if not os.path.exists(path):
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()}")
    with open(path) as file:
        return json.load(file)


def ab(url, *arguments):
    """`ab` with connections that are kept: requests, a second, their times in milliseconds, those that failed. What it
    does not tell is 0: on a machine that is busy a run can be too short for one answer."""
    command = ["ab", "-q", "-k", *map(str, arguments), url]
    text = subprocess.run(pinned(1, command), capture_output=True, text=True, check=True).stdout

    def number(pattern):
        found = re.search(pattern, text)
        return float(found[1]) if found else 0.0

    return {
        "requests": int(number(r"Complete requests:\s+(\d+)")),
        "rate": number(r"Requests per second:\s+([\d.]+)"),
        "mean": number(r"\nTotal:\s+\d+\s+(\d+)"),
        "stdev": number(r"\nTotal:\s+\d+\s+\d+\s+([\d.]+)"),
        "p50": number(r"\n\s+50%\s+(\d+)"),
        "p99": number(r"\n\s+99%\s+(\d+)"),
        "max": number(r"\n\s+100%\s+(\d+)"),
        "failed": int(number(r"Failed requests:\s+(\d+)")),
        "refused": int(number(r"Non-2xx responses:\s+(\d+)")),
    }


def straight(_value, port):
    """No way between the load and a server."""
    return contextlib.nullcontext(port)


def measure(stacks, work, origin, values, arguments, url, fresh=True, rounds=ROUNDS, way=straight):
    """Rounds of all stacks in turns, at each value, with empty caches before each if `fresh`, else before each round.
    `arguments` are those of `larder bench` for a value, `url` makes what is asked of a port; `way` leads to a server's
    port, and has a port of its own while it is open. One run."""
    points = {stack.name: {value: [] for value in values} for stack in stacks}
    machine = {}
    for number in range(rounds):
        for stack in stacks[number % len(stacks):] + stacks[:number % len(stacks)]:
            for part in [[value] for value in values] if fresh else [values]:
                with Running(stack, work, origin.port) as running:
                    for value in part:
                        before = origin.asked()
                        with way(value, running.port) as port:
                            run = bench(work, running.pids, *arguments(value), *url(port))
                        [series] = run["series"]
                        [result] = series["points"][0]["rounds"]
                        result["origin_requests"] = origin.asked() - before - 1
                        points[stack.name][value].append(result)
                        machine, axis = run["machine"], series["axis"]
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    machine["cores"] = str(os.cpu_count())
    return {
        "version": 1, "settings": {}, "machine": machine, "versions": versions(stacks), "command": "",
        "began_s": int(time.time()),
        "series": [
            {"name": name, "axis": axis, "points": [{"x": x, "rounds": rounds} for x, rounds in of.items()]}
            for name, of in points.items()
        ],
    }


def run_of(points, run, of):
    """A run of these rounds, by name and by value, on the machine of `run` with the versions `of` what was measured."""
    return {
        **run, "machine": {**run["machine"], "cores": str(os.cpu_count())}, "versions": of,
        "series": [
            {"name": name, "axis": "connections", "points": [{"x": x, "rounds": rounds} for x, rounds in by.items()]}
            for name, by in points.items()
        ],
    }


def versions(stacks):
    """The versions of the servers of these stacks."""
    named = {layer for stack in stacks for layer in stack.layers if isinstance(layer, str)}
    return {name: peers.version(peers.ALL[name].path(), peers.ALL[name].version) for name in sorted(named)}


def there(stacks):
    """The stacks whose servers are all installed; says which are not."""
    kept = []
    for stack in stacks:
        missing = [layer for layer in stack.layers if isinstance(layer, str) and not peers.ALL[layer].path()]
        if missing:
            print(f"{stack.name}: {', '.join(missing)} not installed", file=sys.stderr)
        else:
            kept.append(stack)
    return kept


def time_of(micros):
    """A time in microseconds, in the unit that fits it."""
    if micros < 1e3:
        return f"{micros:.0f} µs"
    return f"{micros / 1e3:.1f} ms" if micros < 1e6 else f"{micros / 1e6:.2f} s"


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else 0


def time_in(rounds, name, part):
    """The median over the rounds of a part of their times; none of them may have an answer."""
    known = [one[name][part] for one in rounds if one[name]]
    return time_of(median(known)) if known else "–"


def columns(rounds):
    """The figures of a row, by the heads of their columns: medians of the rounds."""
    def of(read):
        return median([read(one) for one in rounds])

    told = sum(one["completed"] - one["source_unknown"] for one in rounds)
    hits = sum(sum(one["hits"].values()) for one in rounds)
    done = sum(one["completed"] for one in rounds)
    return {
        "requests/s": f"{of(lambda one: one['completed'] / one['elapsed_us'] * 1e6):,.0f}",
        "MB/s": f"{of(lambda one: one['bytes_received'] / one['elapsed_us']):,.0f}",
        **{part: time_in(rounds, "last_byte", part) for part in ("p50", "p99", "max", "mean", "stdev")},
        "first byte p50": time_in(rounds, "first_byte", "p50"),
        "first byte mean": time_in(rounds, "first_byte", "mean"),
        "connect p50": time_in(rounds, "connect", "p50"),
        "CPU a request": f"{of(lambda one: sum(use['cpu_us'] for use in one['servers'].values()) / max(1, one['completed'])):.1f} µs",
        "memory": f"{of(lambda one: sum(use['resident_bytes'] for use in one['servers'].values())) >> 20} MiB",
        "most in the group": f"{of(lambda one: one.get('group_bytes') or 0) >> 20} MiB",
        "hits": f"{hits / told:.1%}" if told else "–",
        "asked of the origin": f"{sum(one['origin_requests'] or 0 for one in rounds) / max(1, done):.1%}",
        "origin requests": f"{of(lambda one: one['origin_requests'] or 0):,.0f}",
        "errors": f"{sum(one['attempted'] - one['completed'] for one in rounds):,}",
    }


def table(run, heads, values=None, x="connections", name="{:g}".format):
    """A table in Markdown: a row for each stack at each of these values; `name` writes a value."""
    lines = [f"| {x} | stack | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    xs = values or sorted({point["x"] for series in run["series"] for point in series["points"]})
    for value in xs:
        for series in run["series"]:
            for point in series["points"]:
                if point["x"] == value:
                    cells = columns(point["rounds"])
                    lines.append(f"| {name(value)} | {series['name']} | {' | '.join(cells[head] for head in heads)} |")
    return "\n".join(lines)


class Page:
    """The page of an experiment: its template with results in it, and its charts in a folder beside it. A smoke test
    writes it into the work folder."""

    def __init__(self, name, work):
        self.name, self.parts = name, {}
        self.docs = os.path.join(work if SMOKE else ROOT, "docs", "lab")
        self.work = work
        os.makedirs(os.path.join(self.docs, name), exist_ok=True)

    def put(self, part, text):
        """Fills a part of the template."""
        self.parts[part] = text

    def run(self, part, run, charts=("p50", "p99", "rate", "cpu")):
        """Draws the charts of a run; the template shows them by `{part.chart}`."""
        result = os.path.join(self.work, f"{part}.json")
        with open(result, "w") as file:
            json.dump(run, file)
        drawn = os.path.join(self.work, f"{part}-charts")
        subprocess.run([LARDER, "bench", "report", result, "--svg", drawn], check=True)
        for chart in charts:
            shutil.copy(os.path.join(drawn, f"{chart}.svg"), os.path.join(self.docs, self.name, f"{part}-{chart}.svg"))
            alt = {"p50": "median latency", "p99": "99th percentile of the latency", "rate": "throughput",
                   "cpu": "CPU time", "distribution": "distribution of latencies"}[chart]
            self.parts[f"{part}.{chart}"] = f"![{alt}]({self.name}/{part}-{chart}.svg)"
        self.machine(run)

    def machine(self, run):
        facts = [f"{name}: {value}" for name, value in {**run["machine"], **run["versions"]}.items()]
        known = self.parts.get("machine", "").splitlines()
        self.parts["machine"] = "\n".join(dict.fromkeys(known + [f"- {fact}" for fact in facts]))

    def write(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), self.name, "page.md")) as file:
            text = file.read()
        self.parts["rounds"] = str(ROUNDS)
        self.parts["date"] = time.strftime("%-d %B %Y")
        for part, value in self.parts.items():
            text = text.replace("{" + part + "}", value)
        left = re.findall(r"\{[a-z0-9.-]+\}", text)
        if left:
            raise RuntimeError(f"{self.name}: nothing for {', '.join(left)}")
        path = os.path.join(self.docs, f"{self.name}.md")
        with open(path, "w") as file:
            file.write(text)
        print(f"{self.name}: {path if SMOKE else os.path.relpath(path, ROOT)}")
