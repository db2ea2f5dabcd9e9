"""Bodies: pages in gzip, decoded for clients without it, and put together of fragments. Larder beside Varnish, which
puts pages together of fragments one after the other."""

import http.client
import http.server
import os
import random
import sys
import threading
import time

import peers
from experiment import LARDER, ROUNDS, SMOKE, Page, Running, Stack, bench, columns, median, run_of, started, there, versions
from processes import end, free_ports

work = sys.argv[1]
SECONDS = "0.3s" if SMOKE else "3s"
PAGE, FRAGMENT, SLOW = 20_480, 1_024, 0.1
GZIP = ("-H", "Accept-Encoding: gzip")

ORIGIN = """
  sendfile on; default_type text/html; etag on;
  map $uri $surrogate {{ default ""; ~^/esi 'content="ESI/1.0"'; }}
  server {{
    listen 127.0.0.1:{port};
    location = /status {{ return 204; }}
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


def larder(place):
    return [LARDER, "serve", "--config", peers.write(place, "larder.toml", LARDER_TOML), "--admin-socket", f"{place.work}/larder.sock"]


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


def main():
    write_pages()
    page = Page("bodies", work)
    port = free_ports(1)[0]
    origin = started(1, peers.nginx_command(peers.Place(work, port, 0), "origin", ORIGIN), port, f"{work}/origin.log")
    slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    stacks = there(STACKS)
    points = {stack.name: {at: [] for at in range(len(CASES))} for stack in stacks}
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
                with Running(stack, work, slow.server_address[1]) as running:
                    fetch(running.port, "/esi-10")
                    waits[stack.name] += [fetch(running.port, "/esi-10") for _ in range(3)]
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    finally:
        end(origin)
        slow.shutdown()
    page.machine(run_of(points, run, {**versions(stacks), "varnish": peers.version("varnishd", "-V")}))
    heads = ["CPU a request", "requests/s", "p50", "p99"]
    lines = [f"| body | stack | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for at, (what, _, _) in enumerate(CASES):
        for name, by in points.items():
            cells = columns(by[at])
            lines.append(f"| {what} | {name} | {' | '.join(cells[head] for head in heads)} |")
    page.put("table", "\n".join(lines))
    lines = ["| stack | first byte | all of it |", "|---|---|---|"]
    for name, times in waits.items():
        of = lambda part: f"{median([one[part] for one in times]) * 1e3:.0f} ms"
        lines.append(f"| {name} | {of(0)} | {of(1)} |")
    page.put("slow", "\n".join(lines))
    page.write()


main()
