#!/usr/bin/env python3
"""A real nginx with configurations of crates/import/tests/corpus, and Larder with what `larder import`
makes of them: the same requests to both, and statuses, fields and bodies compared.

Takes LARDER_BIN (the program) or target/debug/larder. Everything is on loopback and in a folder of its own; what
it starts it ends by process id. Without nginx it ends with 77, which skips it.
"""

import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
CORPUS = TREE / "crates/import/tests/corpus"
LARDER = os.environ.get("LARDER_BIN", str(TREE / "target/debug/larder"))

# Fields that both must send alike.
FIELDS = ["content-type", "location", "cache-control", "x-content-type-options", "content-security-policy",
          "www-authenticate", "allow", "x-echo"]

# Each configuration with its host, what of it is replaced, and the requests: method, path, fields.
CASES = {
    "static.conf": ("docs.example", [
        ("GET", "/", {}), ("GET", "/index.html", {}), ("HEAD", "/index.html", {}), ("GET", "/guide", {}),
        ("GET", "/guide/", {}), ("GET", "/missing", {}), ("GET", "/old-guide", {}), ("GET", "/old-guide/?a=1", {}),
        ("GET", "/blog/feed", {}), ("GET", "/about.htm", {}), ("GET", "/shop/cart?x=1", {}), ("GET", "/gone.html", {}),
        ("GET", "/style.css", {}), ("GET", "/downloads/file.bin", {}), ("GET", "/private/secret.txt", {}),
        ("GET", "/private/secret.txt", {"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}),
        ("GET", "/private/secret.txt", {"Authorization": "Basic dXNlcjp3cm9uZw=="}),
        ("GET", "/style.css", {"If-None-Match": "\"x\""}), ("GET", "/style.css", {"Range": "bytes=0-3"}),
    ]),
    "django.conf": ("app.example", [
        ("GET", "/", {}), ("GET", "/a/b?c=d", {}), ("POST", "/form", {}), ("GET", "/static/site.css", {}),
        ("GET", "/static/missing.css", {}), ("GET", "/media/picture.svg", {}), ("GET", "/robots.txt", {}),
        ("GET", "/admin/", {}), ("GET", "/staticx", {}), ("DELETE", "/thing", {}),
    ]),
    "node.conf": ("node.example", [
        ("GET", "/", {}), ("GET", "/", {}), ("GET", "/page?x=1", {}), ("GET", "/page?x=1", {"Cookie": "session=1"}),
        ("POST", "/", {}), ("GET", "/api/items", {}), ("GET", "/healthz", {}), ("GET", "/assets/app.css", {}),
        ("GET", "/assets/missing.css", {}), ("GET", "/socket.io/?transport=polling", {}),
    ]),
    "discourse.conf": ("forum.example", [
        ("GET", "/", {}), ("GET", "/t/topic/1", {}), ("GET", "/favicon.ico", {}), ("GET", "/backups/x.tar", {}),
        ("GET", "/downloads/x", {}), ("GET", "/images/logo.svg", {}), ("GET", "/letter_avatar/a.png", {}),
        ("GET", "/uploads/short-url/a", {}), ("GET", "/message-bus/poll", {}),
    ]),
}

# Where the two differ on purpose: each with its reason, and a test of the field, nginx's value and Larder's.
KNOWN = [
    ("Larder's own answers are not for other caches",
     lambda key, one, other, status: key == "cache-control" and one is None and other == "no-store"),
    ("fields of a site are sent with errors, too, as with `always`",
     lambda key, one, other, status: status >= 400 and one is None and key in ("x-content-type-options",
                                                                               "content-security-policy")),
    ("all texts get the charset, and pages for errors none",
     lambda key, one, other, status: key == "content-type" and
     {one, other} in ({"text/css", "text/css; charset=utf-8"}, {"text/html", "text/html; charset=utf-8"})),
    ("passwords are UTF-8",
     lambda key, one, other, status: key == "www-authenticate" and other == one + ', charset="UTF-8"'),
    ("a redirect to the own host has no scheme and host",
     lambda key, one, other, status: key == "location" and one and other and
     re.sub("^http://[^/]*", "", one) == other),
]


class Echo(http.server.BaseHTTPRequestHandler):
    """An application that says what it was asked."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        body = f"{self.command} {self.path} {self.headers.get('Host')}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("X-Echo", self.path)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def write_files(folder):
    for name, text in {
        "srv/docs/index.html": "<h1>Docs</h1>\n", "srv/docs/404.html": "<h1>Not here</h1>\n",
        "srv/docs/guide/index.html": "<h1>Guide</h1>\n", "srv/docs/style.css": "body { color: black }\n",
        "srv/docs/downloads/file.bin": "0123456789", "srv/docs/private/secret.txt": "secret\n",
        "srv/app/static/site.css": "a { color: red }\n", "srv/app/media/picture.svg": "<svg/>\n",
        "srv/app/public/500.html": "<h1>Sorry</h1>\n", "srv/node/public/assets/app.css": "b {}\n",
        "var/www/forum/public/images/logo.svg": "<svg/>\n", "var/www/forum/private/x": "private\n",
        "var/cache/nginx/empty": "", "var/nginx/empty": "",
        # user, password
        "members": "user:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def adapted(name, folder, port, application):
    """The configuration with ports, folders and servers of this machine."""
    text = (CORPUS / name).read_text()
    text = re.sub(r"listen (80|8080)( default_server)?;", rf"listen 127.0.0.1:{port}\2;", text)
    text = re.sub(r"unix:/run/gunicorn\.sock|127\.0\.0\.1:300[01]", f"127.0.0.1:{application}", text)
    text = re.sub(r"/(srv|var)/", rf"{folder}/\1/", text).replace("/etc/nginx/members", f"{folder}/members")
    text = re.sub(r"^user .*;$|^worker_processes .*;$|^(error_log|pid) .*;$", "", text, flags=re.M)
    text = re.sub(r"access_log \S+log[^;]*;", "access_log off;", text)
    temp = "".join(f"{kind}_temp_path {folder}/temp-{kind};\n"
                   for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    main = f"daemon off;\nmaster_process off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
    types = "include /etc/nginx/mime.types;\n"
    if "http {" in text:
        return main + text.replace("http {", "http {\n" + types + temp, 1)
    text = re.sub(r"types \{[^}]*\}", "", text)
    return f"{main}events {{ }}\nhttp {{\n{types}{temp}{text}}}\n"


def ask(port, host, method, path, fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={"Host": host, **fields})
    response = connection.getresponse()
    body = response.read()
    seen = {name: response.getheader(name) for name in FIELDS}
    connection.close()
    return {"status": response.status, "body": body, **seen}


def wait_for(port, process, what, log):
    for _ in range(400):
        if process.poll() is not None:
            sys.exit(f"{what} does not start: {log.read_text()}")
        with socket.socket() as own:
            if own.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"{what} does not listen")


def differences(name, theirs, ours, host, requests):
    found = []
    for method, path, fields in requests:
        one, other = (ask(port, host, method, path, fields) for port in (theirs, ours))
        for key, value in one.items():
            # Pages for errors are each server's own.
            is_own_page = key in ("body", "content-type") and one["status"] >= 300 and one["status"] != 404
            is_own_page |= key == "content-type" and one["status"] == 204
            is_plain_404 = one["status"] == 404 and b"nginx" in one["body"] and key in ("body", "content-type")
            if value == other[key] or is_own_page or is_plain_404:
                continue
            if any(test(key, value, other[key], one["status"]) for _, test in KNOWN):
                continue
            found.append(f"{name}: {method} {path} {fields or ''}: {key}: nginx {value!r}, larder {other[key]!r}")
    return found


def run(name, folder, application):
    host, requests = CASES[name]
    theirs, ours = free_port(), free_port()
    (folder / "nginx.conf").write_text(adapted(name, folder, theirs, application))
    (folder / "other.conf").write_text(adapted(name, folder, ours, application))
    made = subprocess.run([LARDER, "import", folder / "other.conf", "-o", folder / "larder.toml",
                           "--report", folder / "report"], check=False)
    if made.returncode not in (0, 3):
        sys.exit(f"{name}: larder import ended with {made.returncode}")
    with open(folder / "larder.toml", "a") as file:
        # The folder is this user's.
        file.write('\n[run]\nuser = "root"\n' if os.geteuid() == 0 else "")
    log = open(folder / "larder.log", "w")
    started = [subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"], stderr=log)]
    try:
        wait_for(theirs, started[0], "nginx", folder / "larder.log")
        command = [LARDER, "serve", "--config", folder / "larder.toml", "--admin-socket", folder / "admin.sock"]
        started.append(subprocess.Popen(command, stderr=log))
        wait_for(ours, started[1], "larder", folder / "larder.log")
        return differences(name, theirs, ours, host, requests), len(requests)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main():
    if shutil.which("nginx") is None:
        print("skipped: no nginx")
        sys.exit(77)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed, asked = [], 0
    for name in CASES:
        with tempfile.TemporaryDirectory(prefix="larder-import-") as own:
            folder = pathlib.Path(own)
            os.chmod(folder, 0o755)
            write_files(folder)
            found, number = run(name, folder, server.server_address[1])
            asked += number
            failed += found
            print(f"{name}: {number} requests, {len(found)} differences")
    if failed:
        print("\n".join(failed))
        sys.exit(f"{len(failed)} differences in {asked} requests")
    print(f"{asked} requests: the same from both, but for {len(KNOWN)} kinds of differences that KNOWN names")


main()
