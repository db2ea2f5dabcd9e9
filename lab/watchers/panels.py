"""A load of known counts, and what the panels of the Grafana dashboard make of it.

usage: panels.py DASHBOARD PROMETHEUS HTTP_PORT ORIGIN_PORT CERTIFICATE

Clients and the origin are in here and count for themselves. Rates are asked for over ten minutes, all of the load lies
between two looks of Prometheus, and so a rate times ten minutes is a count, however slow the machine is. Prometheus
extends what it saw by up to one look, which is why values may be more than the truth by a look's share, and never less.
"""

import collections
import http.client
import http.server
import json
import sys
import threading
import time
import urllib.parse
import urllib.request

DASHBOARD, PROMETHEUS, HTTP, ORIGIN, CERTIFICATE = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
WINDOW_S = 600
# So many looks are at least there; the share of one is what a value may be too much.
LOOKS = 25
SLACK = 1 / (LOOKS - 1) + 0.005
BODY = b"x" * 1000
# An answer of the origin takes twice this; a bucket of the histogram begins no lower.
LEAST_S = 0.01
CLASSES = ["hit", "stale", "revalidated", "miss", "pass", "file", "synth", "refused"]

got = collections.Counter()
release = threading.Event()
lock = threading.Lock()


def count(what, n=1):
    with lock:
        got[what] += n


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self):
        count("origin requests")
        time.sleep(2 * LEAST_S)
        status, fields, body = 200, {}, BODY
        if self.path.startswith("/kept"):
            fields = {"Cache-Control": "max-age=3600"}
        elif self.path.startswith("/stale"):
            fields = {"Cache-Control": "max-age=0, stale-while-revalidate=600"}
        elif self.path.startswith("/failing"):
            fields = {"Cache-Control": "max-age=0, stale-if-error=600"}
            if got["failing"]:
                status = 503
        elif self.path.startswith("/sure"):
            fields = {"Cache-Control": "no-cache", "ETag": '"1"'}
            if self.headers.get("If-None-Match") == '"1"':
                status, body = 304, b""
        elif self.path.startswith("/error"):
            status = 500
        elif self.path.startswith("/gone"):
            fields = {"Cache-Control": "no-store"}
        elif self.path.startswith("/held"):
            fields = {"Cache-Control": "max-age=3600"}
            release.wait()
        elif self.path.startswith("/cut"):
            count("origin failures")
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def ask(site, path, kind, method="GET"):
    """One request on a connection of its own; counts what came, and as which class it has to be counted."""
    client = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=60)
    try:
        client.request(method, path, body=b"form" if method == "POST" else None, headers={"Host": site})
        answer = client.getresponse()
        body = answer.read()
    finally:
        client.close()
    count(("class", site, kind))
    count(("bytes", site), len(body))
    count("answers")
    count(("5xx", site), answer.status >= 500)
    return answer.status


def drive(site, hits, misses, stale, sure, passes, errors, cuts):
    count("stored", misses + len(["/stale", "/sure", "/failing"]))
    for n in range(misses):
        ask(site, f"/kept/{n}", "miss")
    for n in range(hits):
        ask(site, f"/kept/{n % misses}", "hit")
    ask(site, "/stale", "miss")
    for _ in range(stale):
        ask(site, "/stale", "stale")
    count("refreshed", stale)
    ask(site, "/sure", "miss")
    for _ in range(sure):
        ask(site, "/sure", "revalidated")
    for _ in range(passes):
        ask(site, "/form", "pass", method="POST")
    for n in range(errors):
        ask(site, f"/error/{n}", "miss")
    for n in range(cuts):
        ask(site, f"/cut/{n}", "synth", method="POST")
    ask(site, "/failing", "miss")
    count("failing")
    for _ in range(3):
        ask(site, "/failing", "stale")
    count("kept up", 3)
    count("failing", -1)
    # The second of such finds a mark that it need not wait for the first.
    for _ in range(4):
        ask(site, "/gone", "miss")
    count("marked", 3)
    for _ in range(4):
        ask(site, "/a.txt", "file")
        ask(site, "/denied", "synth")


def too_long():
    """A request that reaches a limit, and that no site is asked for."""
    client = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=60)
    client.request("GET", "/" + "x" * 20_000, headers={"Host": "one.example"})
    status = client.getresponse().status
    client.close()
    if status != 414:
        sys.exit(f"FAILED: a target that is too long is answered {status}")
    # It is no request that was read whole: the panel of requests has none of it.
    count("too long")


def query(expression):
    url = f"{PROMETHEUS}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def first(expression):
    rows = query(expression)
    return float(rows[0]["value"][1]) if rows else None


def wait(what, holds):
    end = time.monotonic() + 120
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}: not within two minutes")
        time.sleep(0.2)


def looks(more):
    """Waits for that many further looks of Prometheus."""
    expression = f"sum(count_over_time(up[{WINDOW_S}s]))"
    until = (first(expression) or 0) + more
    wait(f"{more} looks", lambda: (first(expression) or 0) >= until)


def told(expression):
    """The values of an expression by their labels' values, with the variables as Grafana fills them in."""
    for name, value in {"$__rate_interval": f"{WINDOW_S}s", "$instance": ".*", "$site": ".*"}.items():
        expression = expression.replace(name, value)
    drop = {"__name__", "job", "instance"}
    if "larder_certificate" in expression:
        drop.add("site")
    return {
        " ".join(v for k, v in sorted(row["metric"].items()) if k not in drop): float(row["value"][1])
        for row in query(expression)
    }


def of_class(*kinds, site=None):
    return sum(n for key, n in got.items() if key[0] == "class" and key[2] in kinds and site in (None, key[1]))


def ratio(site=None):
    return of_class("hit", "stale", site=site) / of_class(*CLASSES[:5], site=site)


SITES = ["one.example", "two.example"]


def per_second(numbers):
    return {name: n / WINDOW_S for name, n in numbers.items()}


def truths(server, started):
    """By panel and legend: the true values by label, or the least and the most that each may be."""
    of_sites = lambda what: per_second({site: got[what, site] for site in SITES})
    everything = lambda n: per_second({"": n})
    stored = got["stored"]
    times = {kind: (1e-9, 60) for kind in CLASSES if of_class(kind) or kind == "refused"}
    times |= {"miss": (LEAST_S, 60), "pass": (LEAST_S, 60)}
    return {
        "Requests": everything(got["answers"]),
        "Hit ratio": {"": ratio()},
        "Errors (5xx)": everything(sum(got["5xx", site] for site in SITES)),
        "Stored responses": {"": stored},
        "Up for": {"": (1, time.monotonic() - started + 5)},
        "Requests by how the cache took part": per_second({kind: of_class(kind) for kind in CLASSES if of_class(kind)}),
        "Hit ratio by site": {site: ratio(site) for site in SITES},
        "Errors by site (5xx)": of_sites("5xx"),
        "Bytes of bodies to clients": of_sites("bytes"),
        "Requests to origins": per_second({f"app {server}": got["origin requests"]}),
        "Failed requests to origins": per_second({f"app {server}": got["origin failures"]}),
        "Origin servers that get requests": {f"app {server}": 1},
        "stale, refreshed behind": everything(got["refreshed"]),
        "stale, origin failing": everything(got["kept up"]),
        "shared fetch": everything(got["shared"]),
        "hit-for-miss": everything(got["marked"]),
        "Limits reached": per_second({"target_bytes": got["too long"]}),
        "Median of the time until sent": times,
        "99th percentile of the time until sent": times,
        "Certificates expire in": {CERTIFICATE: (19 * 86_400, 20 * 86_400)},
        "used": {"": (stored * len(BODY), 64 << 20)},
        # What the daemon needs for itself is off it.
        "may be used": {"": (48 << 20, 64 << 20)},
        "evictions/s": {"": 0},
        "log lines lost/s": {"": 0},
        "ring records lost/s": {"": 0},
    }


# Panels of gauges that are looked at while requests are held, and what has to be there.
HELD, SHARING = 3, 2


def hold(server, judge):
    """Requests that wait for the origin, and some that wait for the answer of another."""
    site = SITES[0]
    asks = [f"/held/{n}" for n in range(HELD)] + ["/held/0"] * SHARING
    clients = []
    for n, path in enumerate(asks):
        clients.append(threading.Thread(target=ask, args=(site, path, "miss")))
        clients[-1].start()
        # Who comes first is who asks the origin.
        if n == HELD - 1:
            wait("requests are held", lambda: first("sum(larder_server_in_flight)") == HELD)
    wait("all are connected", lambda: first("sum(larder_connections_open)") == len(asks))
    judge({
        "Client connections": {"": len(asks)},
        "{{server}}": {server: HELD},
        "{{server}} waiting": {server: 0},
    })
    release.set()
    for client in clients:
        client.join()
    count("stored", HELD)
    count("shared", SHARING)


class Judge:
    def __init__(self, dashboard):
        panels = json.load(open(dashboard))["panels"]
        self.targets = [(p["title"], t.get("legendFormat", ""), t["expr"]) for p in panels for t in p["targets"]]
        self.left = set(self.targets)
        self.failed = 0

    def __call__(self, truths):
        for target in self.targets:
            title, legend, expression = target
            truth = truths.get(title, truths.get(legend))
            if truth is None:
                continue
            self.left.discard(target)
            values = told(expression)
            for label in sorted(set(truth) | {label for label in values if values[label] > 0}):
                self.compare(f"{title}: {label or legend}", values.get(label), truth.get(label, 0))

    def compare(self, what, value, true):
        least, most = true if isinstance(true, tuple) else (true, true)
        good = value is not None and least * 0.999 <= value <= most * (1 + SLACK)
        self.failed += not good
        shown = " to ".join(f"{bound:.6g}" for bound in sorted({least, most}))
        shown_value = "nothing" if value is None else f"{value:.6g}"
        print(f"{'ok' if good else 'FAILED'}: {what}: {shown_value}, in truth {shown}")


def main():
    started = time.monotonic()
    server = f"127.0.0.1:{ORIGIN}"
    origin = Server(("127.0.0.1", ORIGIN), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    wait("Prometheus has looked", lambda: (first(f"sum(count_over_time(up[{WINDOW_S}s]))") or 0) >= 3)
    judge = Judge(DASHBOARD)
    drive("one.example", hits=120, misses=30, stale=12, sure=20, passes=14, errors=8, cuts=3)
    drive("two.example", hits=15, misses=45, stale=5, sure=9, passes=25, errors=11, cuts=2)
    for _ in range(7):
        too_long()
    hold(server, judge)
    looks(LOOKS)
    judge(truths(server, started))
    for title, legend, _ in sorted(judge.left):
        judge.compare(f"{title}: {legend}", None, 0)
    print(f"Grafana's panels: {len(judge.targets)} expressions asked, {judge.failed} values off")
    sys.exit(judge.failed > 0)


main()
