"""Bodies: pages in gzip, decoded for clients without it, and put together of fragments. Larder beside Varnish, which
puts pages together of fragments one after the other. And Larder alone: hits beside pages that are compressed and stored,
and seeks in a file of 4 GB."""

import http.client
import http.server
import os
import random
import subprocess
import sys
import threading
import time

import peers
from experiment import LARDER, ROUNDS, SMOKE, Page, Running, Stack, bench, columns, median, run_of, started, there, versions
from processes import end, free_ports, pinned

work = sys.argv[1]
SECONDS = "0.3s" if SMOKE else "3s"
PAGE, FRAGMENT, SLOW = 20_480, 1_024, 0.1
# Requests a second at which every server still waits for some.
STEADY = 5000
STORED, SEEKS, FILM, SLICE, PART = 1000, 64, 4 << 30, 4 << 20, 64 << 10
LONG, BESIDE = (1, 1) if SMOKE else (10, 3)
GZIP = ("-H", "Accept-Encoding: gzip")

ORIGIN = """
  sendfile on; default_type text/html; etag on;
  log_format sent "$body_bytes_sent";
  map $uri $surrogate {{ default ""; ~^/esi 'content="ESI/1.0"'; }}
  server {{
    listen 127.0.0.1:{port};
    location = /status {{ return 204; }}
    location /stored/ {{ rewrite ^ /plain break; root {work}/pages; add_header Cache-Control max-age=3600; }}
    location /raw/ {{
      default_type application/octet-stream; rewrite ^ /plain break; root {work}/pages; add_header Cache-Control max-age=3600;
    }}
    location = /film {{ default_type video/mp4; root {work}/pages; access_log {work}/film.log sent; add_header Cache-Control max-age=3600; }}
    location / {{ root {work}/pages; add_header Cache-Control max-age=3600; add_header Surrogate-Control $surrogate; }}
  }}
"""

VCL = """vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_backend_response {{
  set beresp.ttl = 1h;
  if (bereq.url ~ "^/gzip") {{ set beresp.do_gzip = true; }}
  if (bereq.url ~ "^/esi") {{ set beresp.do_esi = true; }}
  if (bereq.url ~ "^/esi-gzip") {{ set beresp.do_gzip = true; }}
}}
"""

LARDER_TOML = """
listen  = ["127.0.0.1:{port}"]
workers = 1
[memory]
size = "256MiB"
[[site]]
host   = "*"
origin = "http://127.0.0.1:{origin}"
"""


def text_of(length, seed):
    """Text that compresses as pages do, of so many bytes."""
    words = random.Random(seed)
    vocabulary = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=words.randint(2, 9))) for _ in range(600)]
    text = ""
    while len(text) < length:
        text += f"<p class=\"item\">{' '.join(words.choices(vocabulary, k=12))}</p>\n"
    return text[:length]


def page_of(length, fragments, prefix=""):
    """A page that comes to `length` bytes with its fragments."""
    own = max(0, length - fragments * FRAGMENT)
    texts = text_of(own, 1)
    part = own // (fragments + 1)
    pieces = [texts[at * part:(at + 1) * part] for at in range(fragments)]
    body = "".join(f"{piece}<esi:include src=\"/{prefix}fragment-{at}\"/>" for at, piece in enumerate(pieces))
    return "<html>" + body + texts[fragments * part:]


def write_pages():
    os.makedirs(f"{work}/pages", exist_ok=True)
    os.chmod(work, 0o755)
    pages = {"plain": page_of(PAGE, 0), "gzip": page_of(PAGE, 0), "plain-100": page_of(PAGE + 100 * FRAGMENT, 0)}
    pages |= {"esi-10": page_of(PAGE, 10), "esi-gzip-10": page_of(PAGE, 10)}
    pages |= {"esi-100": page_of(PAGE + 100 * FRAGMENT, 100)}
    pages |= {f"fragment-{at}": text_of(FRAGMENT, at + 2) for at in range(100)}
    for name, text in pages.items():
        with open(f"{work}/pages/{name}", "w") as file:
            file.write(text)
    with open(f"{work}/pages/film", "wb") as file:
        file.truncate(FILM)


def larder(place):
    return peers.serve("--config", peers.write(place, "larder.toml", LARDER_TOML), "--admin-socket", f"{place.work}/larder.sock")


def varnish(place):
    vcl = peers.write(place, "site.vcl", VCL)
    return [
        "varnishd", "-F", "-n", f"{place.work}/varnish", "-a", f"127.0.0.1:{place.port}", "-f", vcl, "-s", "malloc,256m",
        "-p", "thread_pools=1",
    ]


STACKS = [Stack("Larder", [larder]), Stack("Varnish", [varnish])]
CASES = [
    ("20 KB, no gzip", "plain", ()),
    ("20 KB, stored in gzip, for a client with gzip", "gzip", GZIP),
    ("20 KB, stored in gzip, for a client without", "gzip", ()),
    ("20 KB of ten cached fragments, no gzip", "esi-10", ()),
    ("20 KB of ten cached fragments, in gzip", "esi-gzip-10", GZIP),
    ("120 KB, no gzip", "plain-100", ()),
    ("120 KB of a hundred cached fragments, no gzip", "esi-100", ()),
]


class Slow(http.server.BaseHTTPRequestHandler):
    """A page of ten fragments, each of which takes a tenth of a second."""

    protocol_version = "HTTP/1.1"
    # Head and body are written one after the other: the body would wait for the head's acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self):
        body = page_of(PAGE, 10, prefix="slow-").encode()
        if "fragment" in self.path:
            time.sleep(SLOW)
            body = b"x" * FRAGMENT
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if "fragment" in self.path:
            self.send_header("Cache-Control", "no-store")
        else:
            self.send_header("Cache-Control", "max-age=3600")
            self.send_header("Surrogate-Control", 'content="ESI/1.0"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def at_a_rate(running, fields, url):
    """Microseconds of CPU that a request costs at a rate that leaves the server time."""
    run = bench(work, running.pids, "--rate", STEADY, "-c", 16, "-d", SECONDS, "--warm-up", "0.2s", *fields, url)
    [result] = run["series"][0]["points"][0]["rounds"]
    return sum(use["cpu_us"] for use in result["servers"].values()) / max(1, result["completed"])


def fetch(port, path):
    """Seconds until the first byte of a body, and until its end."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    began = time.monotonic()
    client.request("GET", path)
    answer = client.getresponse()
    answer.read(1)
    first = time.monotonic() - began
    answer.read()
    return first, time.monotonic() - began


def beside(origin):
    """Hits at a steady rate, in turns: alone, beside pages that are stored as they are, and beside pages that are
    compressed. The rounds of each."""
    results = {}
    for what, folder in 5 * [("alone", None), ("pages stored as they are", "raw"), ("pages compressed and stored", "stored")]:
        with Running(STACKS[0], work, origin) as running:
            url = f"http://127.0.0.1:{running.port}"
            bench(work, running.pids, "-c", 1, "-n", 50, "--warm-up", "0", *GZIP, f"{url}/gzip")
            stores = None
            if folder:
                with open(f"{work}/urls", "w") as file:
                    file.writelines(f"/{folder}/{at}\n" for at in range(STORED * (BESIDE + 3)))
                load = ["--urls", f"{work}/urls", "--rate", str(STORED), "-c", "16", "-d", f"{BESIDE + 2}s", "--warm-up", "0"]
                stores = subprocess.Popen(
                    pinned(1, [LARDER, "bench", "-t", "1", *load, *GZIP, url]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
                time.sleep(0.5)
            run = bench(work, running.pids, "--rate", 1000, "-c", 16, "-d", f"{BESIDE}s", "--warm-up", "0.2s", *GZIP, f"{url}/gzip")
            if stores:
                stores.wait(timeout=60)
            [result] = run["series"][0]["points"][0]["rounds"]
            results.setdefault(what, []).append({**result, "origin_requests": 0})
    return results


def resident(pids):
    """Bytes of these processes that are in memory."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))
    return total


def seeks(origin):
    """Parts of a film at random, so many a second: the slices that they touch, the bytes that the origin has sent for
    them, and the most memory meanwhile."""
    places = random.Random(7)
    touched, most = 0, 0
    open(f"{work}/film.log", "w").close()
    with Running(STACKS[0], work, origin) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        due = time.monotonic()
        waits = []
        for _ in range(SEEKS * LONG):
            time.sleep(max(0, due - time.monotonic()))
            due += 1 / SEEKS
            at = places.randrange(FILM - PART)
            began = time.monotonic()
            client.request("GET", "/film", headers={"Range": f"bytes={at}-{at + PART - 1}"})
            answer = client.getresponse()
            if answer.status != 206 or len(answer.read()) != PART:
                raise RuntimeError(f"a part of the film: {answer.status}")
            waits.append(time.monotonic() - began)
            touched += (at + PART - 1) // SLICE - at // SLICE + 1
            most = max(most, resident(running.pids))
    with open(f"{work}/film.log") as file:
        sent = sum(int(line) for line in file)
    return {"seeks": len(waits), "touched": touched, "sent": sent, "most": most, "wait": median(waits)}


def main():
    write_pages()
    page = Page("bodies", work)
    port = free_ports(1)[0]
    origin = started(1, peers.nginx_command(peers.Place(work, port, 0), "origin", ORIGIN), port, f"{work}/origin.log")
    slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    stacks = there(STACKS)
    points = {stack.name: {at: [] for at in range(len(CASES))} for stack in stacks}
    steady = {stack.name: {at: [] for at in range(len(CASES))} for stack in stacks}
    waits = {stack.name: [] for stack in stacks}
    try:
        for number in range(ROUNDS):
            for stack in stacks[number % len(stacks):] + stacks[:number % len(stacks)]:
                with Running(stack, work, port) as running:
                    for at, (_, path, fields) in enumerate(CASES):
                        url = f"http://127.0.0.1:{running.port}/{path}"
                        bench(work, running.pids, "-c", 1, "-n", 50, "--warm-up", "0", *fields, url)
                        run = bench(work, running.pids, "-c", 16, "-d", SECONDS, "--warm-up", "0.2s", *fields, url)
                        [result] = run["series"][0]["points"][0]["rounds"]
                        points[stack.name][at].append({**result, "origin_requests": 0})
                        is_fast = result["completed"] / result["elapsed_us"] * 1e6 > 1.1 * STEADY
                        steady[stack.name][at].append(at_a_rate(running, fields, url) if is_fast else None)
                with Running(stack, work, slow.server_address[1]) as running:
                    fetch(running.port, "/esi-10")
                    waits[stack.name] += [fetch(running.port, "/esi-10") for _ in range(3)]
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
        stored = beside(port)
        sought = seeks(port)
    finally:
        end(origin)
        slow.shutdown()
    page.machine(run_of(points, run, {**versions(stacks), "varnish": peers.version("varnishd", "-V")}))
    heads = ["CPU a request", "requests/s", "p50", "p99"]
    lines = [f"| body | stack | {' | '.join(heads)} | CPU at {STEADY:,}/s |", f"|---|---|{'---|' * len(heads)}---|"]
    for at, (what, _, _) in enumerate(CASES):
        for name, by in points.items():
            cells = columns(by[at])
            at_rate = median([cost or 0 for cost in steady[name][at]])
            cells["steady"] = f"{at_rate:.1f} µs" if at_rate else "too slow"
            lines.append(f"| {what} | {name} | {' | '.join(cells[head] for head in [*heads, 'steady'])} |")
    page.put("table", "\n".join(lines))
    lines = ["| stack | first byte | all of it |", "|---|---|---|"]
    for name, times in waits.items():
        of = lambda part: f"{median([one[part] for one in times]) * 1e3:.0f} ms"
        lines.append(f"| {name} | {of(0)} | {of(1)} |")
    page.put("slow", "\n".join(lines))
    heads = ["requests/s", "p50", "p99", "max", "errors"]
    lines = [f"| hits | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, result in stored.items():
        cells = columns(result)
        lines.append(f"| {name} | {' | '.join(cells[head] for head in heads)} |")
    page.put("beside", "\n".join(lines))
    page.put("steady", f"{STEADY:,}")
    page.put("seeks", str(SEEKS))
    asked = sought["touched"] * SLICE
    page.put("sought", "\n".join([
        "| seeks | slices touched | that is | the origin sent | ratio | most memory | median wait |", f"|{'---|' * 7}",
        f"| {sought['seeks']} | {sought['touched']} | {asked >> 20:,} MiB | {sought['sent'] >> 20:,} MiB "
        f"| {sought['sent'] / asked:.2f} | {sought['most'] >> 20} MiB | {sought['wait'] * 1e3:.1f} ms |",
    ]))
    page.write()


main()
