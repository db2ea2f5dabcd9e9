"""Three caches before one origin: how often it is asked for a page, and what becomes of a purge that one of them does not hear.

Every cache has a network namespace of its own; the hub has the origin, NATS, and whoever purges. A cache that is cut off
has neither of its two links, one towards clients and one towards the other caches.
"""

import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import peers
from experiment import LARDER, ROOT, SMOKE, Page
from processes import end

sys.path.append(os.path.join(ROOT, "lab", "cluster", "checker"))
from arena import Arena  # noqa: E402

work = sys.argv[1]
NODES = 3
PAGES = 20 if SMOKE else 300
# Seconds that the last one is away, and that it is looked at when it is back; those until it answers at all.
AWAY, BACK, ANSWERS = (3, 3, 60) if SMOKE else (5, 60, 60)
ORIGIN, PORT = Arena.front("hub"), 8000
HOST = "pages.test"


class Pages(http.server.BaseHTTPRequestHandler):
    """Pages that say which version they are, to be kept for an hour."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    asked, version, lock = {}, 1, threading.Lock()

    def do_GET(self):
        with Pages.lock:
            Pages.asked[self.path] = Pages.asked.get(self.path, 0) + 1
        body = f"version {Pages.version} of {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def ask(node, path, method="GET", fields=(), patience=10):
    """Status and text of an answer; the status is 0 if there is none in time."""
    try:
        client = http.client.HTTPConnection(Arena.front(node), 80, timeout=patience)
        client.request(method, path, headers={"Host": HOST, **dict(fields)})
        answer = client.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""


def version_of(text):
    """The version that a page says it is."""
    return "new" if text.startswith("version 2") else "old" if text.startswith("version 1") else "none"


class Stack:
    """Caches that run, one in each namespace."""

    name = "caches"

    def __init__(self, arena):
        self.arena, self.processes = arena, []
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    def begin(self):
        """Starts all of it, and waits until every cache answers."""
        arena = self.arena
        self.folder = f"{work}/{type(self).__name__}"
        os.makedirs(self.folder)
        os.chmod(self.folder, 0o755)
        self.before()
        for node in arena.nodes:
            folder = f"{self.folder}/{node}"
            os.makedirs(folder)
            os.chmod(folder, 0o755)
            self.run(arena.space(node), self.command(node, peers.Place(folder, 80, PORT)), f"{folder}/log")
        for node in arena.nodes:
            self.until(f"{node} answers", lambda node=node: ask(node, "/up", patience=1)[0] == 200)
        self.after()

    def before(self):
        """Starts what the caches need."""

    def after(self):
        """Waits until the caches know each other."""

    def command(self, node, place):
        """The command of a cache."""
        raise NotImplementedError

    def purge(self, path):
        """Purges a page everywhere; what its caller is told."""
        told = {node: self.purge_one(node, path) for node in self.arena.nodes}
        silent = [node for node, status in told.items() if status == 0]
        return f"no answer of {', '.join(silent)}" if silent else "done"

    def purge_one(self, node, path):
        """Purges a page at a cache; the status of its answer."""
        return ask(node, path, "PURGE", patience=2)[0]

    def run(self, space, command, log):
        with open(log, "w") as out:
            process = subprocess.Popen(
                ["ip", "netns", "exec", space, *command] if space else command,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )
        self.processes.append(process)

    def until(self, what, holds):
        deadline = time.monotonic() + 60
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: never: {what}")
            time.sleep(0.1)

    def link(self, node, is_up):
        """Connects a cache with all others, or cuts it off."""
        state = "up" if is_up else "down"
        for letter in "cf":
            subprocess.run(["ip", "link", "set", f"{letter}-{node}", state], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for process in reversed(self.processes):
            end(process)


class Larder(Stack):
    name = "Larder, `mode = \"share\"`, as installed"
    settings = ""

    def before(self):
        store = f"{self.folder}/nats"
        command = ["nats-server", "-js", "-sd", store, "-a", Arena.address("hub"), "-p", "4222"]
        self.run(None, command, f"{self.folder}/nats.log")

    def command(self, node, place):
        conf = f"""
listen = "{Arena.front(node)}:80"
workers = 1
log_ring = "off"
[cluster]
servers = "nats://{Arena.address("hub")}:4222"
name = "{node}"
mode = "share"
peer = "{Arena.address(node)}:7800"
{self.settings}
[[site]]
host = "*"
origin = "http://{ORIGIN}:{PORT}"
purge = {{ allow = ["{ORIGIN}"] }}
"""
        path = peers.write(place, "larder.toml", conf.replace("{", "{{").replace("}", "}}"))
        return peers.serve("--config", path, "--admin-socket", f"{place.work}/larder.sock")

    def after(self):
        self.until("all know each other", lambda: all(self.knows(node) for node in self.arena.nodes))
        # The list of those who share follows what is known of the members.
        time.sleep(1)

    def knows(self, node):
        command = [LARDER, "cluster", "status", "--json", "--admin-socket", f"{self.folder}/{node}/larder.sock"]
        told = subprocess.run(command, capture_output=True, text=True)
        status = json.loads(told.stdout) if told.returncode == 0 else {}
        live = [member for member in status.get("members", []) if member["live"]]
        return bool(status.get("trusted")) and len(live) == NODES

    def purge(self, path):
        status, text = ask(self.arena.nodes[0], path, "PURGE", {"Larder-Wait": "all"}, patience=30)
        said = re.sub("<head>.*</head>|<h1>.*</h1>|<[^>]*>", "", " ".join(text.split())).strip()
        return "done" if status == 200 else f"{status}: {said}"


class LarderIsolated(Larder):
    name = "Larder, the same, `max_isolation = \"2s\"`"
    settings = 'max_isolation = "2s"'


class Varnish(Stack):
    name = "Varnish, a script that purges each"

    def command(self, node, place):
        vcl = peers.write(place, "site.vcl", """vcl 4.1;
backend default {{ .host = "%s"; .port = "%d"; }}
sub vcl_recv {{ if (req.method == "PURGE") {{ return (purge); }} }}
""" % (ORIGIN, PORT))
        return ["varnishd", "-F", "-j", "none", "-n", f"{place.work}/n", "-a", f"{Arena.front(node)}:80", "-f", vcl, "-s", "malloc,64m"]


class Nginx(Stack):
    name = "nginx with its purge module, a script that purges each"

    def command(self, node, place):
        conf = peers.nginx_command(place, "nginx", """
  proxy_cache_path {work}/files keys_zone=pages:16m;
  server {{
    listen %s:80;
    location / {{
      proxy_pass http://%s:%d; proxy_cache pages; proxy_cache_key $host$uri;
    }}
    # Debian's module ends nginx's worker when it is asked by the method PURGE, or for a key of one variable.
    location ~ ^/purge(/.*) {{ allow %s; deny all; proxy_cache_purge pages $host$1; }}
  }}
""" % (Arena.front(node), ORIGIN, PORT, ORIGIN))
        with open(conf[-1]) as file:
            text = file.read()
        with open(conf[-1], "w") as file:
            file.write("load_module /usr/lib/nginx/modules/ngx_http_cache_purge_module.so;\n" + text)
        return conf

    def purge_one(self, node, path):
        return ask(node, f"/purge{path}", patience=2)[0]


class Squid(Stack):
    name = "Squid, siblings by HTCP, a script that purges each"

    def command(self, node, place):
        siblings = "".join(
            f"cache_peer {Arena.address(other)} sibling 3128 4827 htcp no-digest proxy-only name={other}\n"
            for other in self.arena.nodes if other != node
        )
        folder = os.path.join(place.work, "squid")
        os.makedirs(folder)
        subprocess.run(["chown", "proxy", folder], check=True)
        conf = peers.write(place, "squid.conf", f"""
http_port {Arena.front(node)}:80 accel defaultsite={HOST} vhost
http_port {Arena.address(node)}:3128 accel defaultsite={HOST} vhost
htcp_port 4827
htcp_access allow all
htcp_clr_access allow all
cache_peer {ORIGIN} parent {PORT} 0 no-query no-digest originserver name=origin
{siblings}acl purges method PURGE
http_access allow all
cache_mem 64 MB
memory_cache_shared off
access_log none
cache_store_log none
cache_log {folder}/cache.log
pid_filename {folder}/squid.pid
coredump_dir {folder}
pinger_enable off
icp_port 0
shutdown_lifetime 0 seconds
dns_nameservers 127.0.0.1
unique_hostname {node}
visible_hostname {node}
""")
        return ["squid", "-N", "-n", f"islands{node}", "-f", conf]


class TrafficServer(Stack):
    name = "Traffic Server, two children and their parent, a script that purges each"

    def command(self, node, place):
        command = peers.traffic_server(place)
        folder = os.path.join(place.work, "trafficserver", "etc")
        with open(f"{folder}/records.config") as file:
            records = file.read()
        parent = self.arena.nodes[0]
        ports = f"80:ip-in={Arena.front(node)} 3128:ip-in={Arena.address(node)}"
        # By address, as the origin has no name: by domain it would be looked up in DNS.
        of_all = "dest_ip=0.0.0.0-255.255.255.255"
        is_child = f'{of_all} parent="{Arena.address(parent)}:3128" parent_is_proxy=false go_direct=true\n'
        for name, text in {
            "records.config": records.replace(f"{place.port}:ip-in=127.0.0.1", ports),
            "remap.config": f"map / http://{ORIGIN}:{PORT}/\n",
            "parent.config": "" if node == parent else is_child,
        }.items():
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        return command


def fetched(stack):
    """How often the origin is asked for a page when each cache is, one after the other."""
    for node in stack.arena.nodes:
        for page in range(PAGES):
            status, _ = ask(node, f"/page/{page}")
            if status != 200:
                raise RuntimeError(f"{stack.name}: {node} answers a page with status {status}")
    return sum(Pages.asked.get(f"/page/{page}", 0) for page in range(PAGES)) / PAGES


def missed(stack):
    """What each cache shows behind a purge that the last one did not hear: meanwhile, and when that is back."""
    *others, away = stack.arena.nodes
    path = "/story"
    # The one that will be away has it first: where caches ask each other, it may be the only one.
    for node in (away, *others):
        ask(node, path)
    stack.link(away, False)
    # Connections that were there notice nothing yet.
    time.sleep(AWAY)
    Pages.version = 2
    told = stack.purge(path)
    meanwhile = {version_of(ask(node, path)[1]) for node in others}
    stack.link(away, True)
    back = "still old"
    deadline = time.monotonic() + ANSWERS
    while time.monotonic() < deadline:
        first = version_of(ask(away, path, patience=2)[1])
        if first != "none":
            # What it shows first is what its visitors see.
            began = time.monotonic()
            deadline = began + BACK
            back = {"new": "new, from the first answer on", "old": "old"}[first]
            break
        time.sleep(0.1)
    while back == "old" and time.monotonic() < deadline:
        if version_of(ask(away, path, patience=2)[1]) == "new":
            back = f"old for {time.monotonic() - began:.1f} s"
        time.sleep(0.1)
    if back == "old":
        back = f"old, {BACK} s later, too"
    return told, " and ".join(sorted(meanwhile)), back


def inner(tag):
    """All of it, in the hub's namespace."""
    page = Page("islands", work)
    arena = Arena(tag, NODES, 0)
    server = http.server.ThreadingHTTPServer((ORIGIN, PORT), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rows = []
    for stack in (Larder, LarderIsolated, Varnish, Nginx, Squid, TrafficServer):
        Pages.asked, Pages.version = {}, 1
        with stack(arena) as running:
            rows.append([stack.name, f"{fetched(running):.2f}", *missed(running)])
        if issubclass(stack, Larder) and rows[-1][2] == "done" and not rows[-1][-1].startswith("new"):
            raise RuntimeError(f"{stack.name}: a purge was said to be done, and behind it a page was {rows[-1][-1]}")
        print(f"{stack.name} done", file=sys.stderr, flush=True)
    server.shutdown()
    heads = ["caches", "origin asked for a page", "the caller is told", "the others show", "the one that was away shows, when it is back"]
    page.put("table", "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]))
    page.put("nodes", str(NODES))
    page.put("pages", str(PAGES))
    page.put("away", str(AWAY))
    page.put("versions", "\n".join(f"- {line}" for line in [
        peers.version(LARDER, "--version"), peers.version("varnishd", "-V"), peers.version("nginx", "-v"), peers.version("squid", "-v"),
        peers.version("traffic_server", "-V"), peers.version("nats-server", "--version"),
    ]))
    page.write()


def main():
    if os.environ.get("ISLANDS_TAG"):
        return inner(os.environ["ISLANDS_TAG"])
    # What was made is removed, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tag = f"i{os.getpid()}"
    arena = Arena(tag, NODES, 0)
    try:
        arena.make()
        command = ["ip", "netns", "exec", arena.hub, sys.executable, __file__, work]
        return subprocess.run(command, env={**os.environ, "ISLANDS_TAG": tag}).returncode
    finally:
        arena.remove()


sys.exit(main())
