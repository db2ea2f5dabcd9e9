#!/usr/bin/env python3
"""A real nginx with the configurations of crates/import/tests/corpus, and Larder with what `larder import`
makes of them: the same requests to both, and statuses, fields and bodies compared. Behind both are an
application that speaks HTTP and PHP-FPM, whose scripts say what they were asked.

Takes LARDER_BIN (the program) or target/debug/larder. Everything is on loopback and in a folder of its own; what
it starts it ends by process id. Without nginx it ends with 77, which skips it.
"""

import concurrent.futures
import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import ssl
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

# Requests to every configuration: method, path, fields.
COMMON = [
    ("GET", "/", {}), ("HEAD", "/", {}), ("GET", "/index.php", {}), ("GET", "/missing", {}), ("GET", "/a/b?c=d", {}),
    ("GET", "/robots.txt", {}), ("GET", "/style.css", {}), ("GET", "/missing.css", {}), ("GET", "/img.png", {}),
    ("GET", "/.git/config", {}), ("GET", "/.htaccess", {}), ("GET", "/xmlrpc.php", {}), ("GET", "/file.sql", {}),
    ("GET", "/wp-content/uploads/x.php", {}), ("GET", "/wp-admin/", {}), ("POST", "/form", {}), ("GET", "/a%20b/", {}),
    ("DELETE", "/thing", {}), ("TRACK", "/x", {}), ("GET", "/", {"User-Agent": "sqlmap/1.7"}),
    ("GET", "/page", {"User-Agent": "GPTBot"}), ("GET", "/page", {"Cookie": "preview=on; beta=1"}),
    ("GET", "/?debug=1", {}), ("GET", "/page", {"X-Scan": "1"}), ("GET", "/old/../page", {}), ("GET", "//double//slash", {}),
    ("GET", "/folder", {}), ("GET", "/folder/", {}), ("GET", "/notes.txt", {}),
]

# Each configuration with its host, and further requests.
CASES = {
    "static.conf": ("docs.example", [
        ("GET", "/index.html", {}), ("HEAD", "/index.html", {}), ("GET", "/guide", {}),
        ("GET", "/guide/", {}), ("GET", "/old-guide", {}), ("GET", "/old-guide/?a=1", {}),
        ("GET", "/blog/feed", {}), ("GET", "/about.htm", {}), ("GET", "/shop/cart?x=1", {}), ("GET", "/gone.html", {}),
        ("GET", "/downloads/file.bin", {}), ("GET", "/private/secret.txt", {}),
        ("GET", "/private/secret.txt", {"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}),
        ("GET", "/private/secret.txt", {"Authorization": "Basic dXNlcjp3cm9uZw=="}),
        ("GET", "/style.css", {"If-None-Match": "\"x\""}), ("GET", "/style.css", {"Range": "bytes=0-3"}),
    ]),
    "django.conf": ("app.example", [
        ("GET", "/static/site.css", {}), ("GET", "/static/missing.css", {}), ("GET", "/media/picture.svg", {}),
        ("GET", "/admin/", {}), ("GET", "/staticx", {}),
    ]),
    "node.conf": ("node.example", [
        ("GET", "/page?x=1", {}), ("GET", "/page?x=1", {"Cookie": "session=1"}), ("GET", "/api/items", {}),
        ("GET", "/healthz", {}), ("GET", "/assets/app.css", {}), ("GET", "/assets/missing.css", {}),
        ("GET", "/socket.io/?transport=polling", {}),
    ]),
    "discourse.conf": ("forum.example", [
        ("GET", "/t/topic/1", {}), ("GET", "/favicon.ico", {}), ("GET", "/backups/x.tar", {}),
        ("GET", "/downloads/x", {}), ("GET", "/images/logo.svg", {}), ("GET", "/letter_avatar/a.png", {}),
        ("GET", "/uploads/short-url/a", {}), ("GET", "/message-bus/poll", {}),
    ]),
    "drupal.conf": ("site.example", [
        ("GET", "/node/1?page=2", {}), ("GET", "/sites/default/private/x", {}), ("GET", "/core/x.yml", {}),
        ("GET", "/vendor/a/b.php", {}), ("GET", "/x/index.php/y", {}), ("GET", "/sites/default/files/styles/a.png", {}),
        ("GET", "/system/files/x", {}), ("GET", "/a", {"Host": "www.site.example"}),
    ]),
    "gateway.conf": ("gateway.example", [
        ("GET", "/docs/v1/a/b?x=1", {}), ("GET", "/u/name", {}), ("GET", "/u/name?x=1", {}), ("GET", "/beta/", {}),
        ("GET", "/beta/x", {"Cookie": "preview=on"}), ("GET", "/api/x", {}), ("GET", "/api/x?key=9d1a", {}),
        ("GET", "/api/x?key=0", {}), ("GET", "/v2/a?b", {}), ("GET", "/upload/x", {}), ("POST", "/upload/x", {}),
        ("GET", "/inner/x", {}), ("GET", "/go/there?a=b", {}), ("GET", "/go/1", {}), ("GET", "/plain", {}),
        ("GET", "/x", {"Cookie": "banned=yes"}), ("GET", "/x", {"Cookie": "banned=no"}),
        ("GET", "/x?debug=0", {}), ("GET", "/x", {"User-Agent": "Scrapy"}),
    ]),
    "gitlab.conf": ("forge.example", [
        ("OPTIONS", "/api/v4/x", {}), ("GET", "/api/v4/x", {}), ("GET", "/robots.txt", {"User-Agent": "AhrefsBot"}),
        ("GET", "/-/metrics", {}), ("GET", "/404.html", {}), ("POST", "/a.git/git-receive-pack", {}),
    ]),
    "magento.conf": ("store.example", [
        ("GET", "/setup/", {}), ("GET", "/media/customer/x", {}), ("GET", "/static/style.css", {}),
        ("GET", "/get.php", {}), ("GET", "/errors/404.php", {}), ("GET", "/catalog/x?p=1", {}),
    ]),
    "mastodon.conf": ("social.example", [
        ("GET", "/about", {}), ("GET", "/sw.js", {}), ("GET", "/assets/a.css", {}), ("GET", "/packs/missing.js", {}),
        ("GET", "/api/v1/streaming/health", {}), ("POST", "/api/v1/statuses", {}), ("GET", "/system/a.png", {}),
    ]),
    "nextcloud.conf": ("cloud.example", [
        ("GET", "/", {"User-Agent": "DavClnt"}), ("GET", "/.well-known/carddav", {}), ("GET", "/data/x", {}),
        ("GET", "/remote.php/dav/", {}), ("GET", "/apps/x.svg", {}), ("GET", "/config/config.php", {}),
        ("GET", "/index.php/login?x=1", {}),
    ]),
    "wordpress-maps.conf": ("shop.example", [
        ("GET", "/2024/05/post/?p=1", {}), ("GET", "/shop/", {"Cookie": "wordpress_logged_in_x=1"}),
        ("GET", "/cart/", {}), ("GET", "/wp-login.php", {}), ("GET", "/x", {"Host": "www.shop.example"}),
    ]),
    "wordpress-roots.conf": ("roots.example", [
        ("GET", "/a/amp/", {}), ("GET", "/shop/red-hat.html", {}), ("GET", "/app/uploads/x.php", {}),
        ("GET", "/composer.json", {}), ("GET", "/x", {"Host": "www.roots.example"}), ("GET", "/wp-login.php", {}),
    ]),
    "wordpress-site.conf": ("shop.example", [
        ("GET", "/old-page/", {}), ("GET", "/promo", {}), ("GET", "/category/a/b/feed", {}), ("GET", "/staging/x", {}),
        ("GET", "/img.png", {"Referer": "https://other.example/"}), ("GET", "/img.png", {"Referer": "https://shop.example/a"}),
        ("GET", "/img.png", {"Referer": "https://cdn.shop.example/a"}), ("GET", "/wp-cron.php", {}),
    ]),
    "wordpress-tools.conf": ("blog.example", [
        ("GET", "/sitemap.xml", {}), ("GET", "/sitemap-3.xml", {}), ("GET", "/old-blog/x/y", {}), ("GET", "/wp-admin", {}),
        ("GET", "/x", {"User-Agent": ""}), ("GET", "/x", {"Host": "www.blog.example"}), ("GET", "/x.cgi", {}),
        ("GET", "/.well-known/x", {}), ("GET", "/status", {}), ("GET", "/?s=x", {}), ("PROPFIND", "/", {}),
    ]),
    "wordpress-tutorial.conf": ("blog.example", [
        ("GET", "/2024/post/?p=1", {}), ("GET", "/wp-login.php", {}), ("GET", "/feed/", {}),
    ]),
}

# Where the two differ on purpose: each with its reason, and a test of the field, nginx's value and Larder's.
KNOWN = [
    ("Larder's own answers are not for other caches",
     lambda key, one, other, status: key == "cache-control" and one is None and other == "no-store"),
    ("fields of a site are sent from its locations and with errors, too",
     lambda key, one, other, status: one is None and key in ("x-content-type-options", "content-security-policy")),
    ("all texts get the charset, and pages for errors none",
     lambda key, one, other, status: key == "content-type" and one and other and
     other.lower() in {one, f"{one}; charset=utf-8"} | {one.replace("; charset=utf-8", "")}),
    ("passwords are UTF-8",
     lambda key, one, other, status: key == "www-authenticate" and other == one + ', charset="UTF-8"'),
    ("a redirect to the own host has no scheme and host, or no port",
     lambda key, one, other, status: key == "location" and one and other and
     re.sub("^https?://[^/]*", "", one) == re.sub("^https?://[^/]*", "", other)),
]

# Single requests that differ on purpose, and what the report of their import says of it: the configuration (or any),
# and the path.
LISTED = "listed as not carried over"
KNOWN_REQUESTS = {
    (None, "/old/../page"): "a path that a script gets has no segments that lead upwards",
    (None, "/file.sql"): "files that no site means to serve are hidden",
    (None, "/.git/config"): "files that no site means to serve are hidden",
    (None, "/.htaccess"): "files that no site means to serve are hidden",
    (None, "/wp-content/uploads/x.php"): "presets run no scripts among uploads",
    (None, "/app/uploads/x.php"): "presets run no scripts among uploads",
    **{("mastodon.conf", path): f"files in front of an application: {LISTED}"
       for path in ("/style.css", "/img.png", "/notes.txt", "/favicon.ico")},
    ("mastodon.conf", "/sw.js"): "the type of scripts is that of RFC 9239",
    **{("magento.conf", path): f"a script for errors: {LISTED}"
       for path in ("/xmlrpc.php", "/folder/", "/setup/", "/media/customer/x")},
    ("magento.conf", "/static/style.css"): f"a file, or else a script: {LISTED}",
    ("nextcloud.conf", "/xmlrpc.php"): f"scripts that another one answers for: {LISTED}",
    ("nextcloud.conf", "/folder/"): f"scripts that another one answers for: {LISTED}",
}

# Parts of what scripts say that differ on purpose.
KNOWN_PARTS = {
    # Scripts get the client's query, and the path in REQUEST_URI: listed as not carried over.
    "drupal.conf": rb"q=[^&\n]*&?",
    # Scripts get no PATH_INFO: a difference that the report names.
    "nextcloud.conf": rb"(?<=example )/[^ ]*",
}


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

    do_GET = do_HEAD = do_POST = do_DELETE = do_TRACK = do_OPTIONS = answer

    def log_message(self, *_):
        pass


SCRIPT = """<?php
header('Content-Type: text/plain');
echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_HOST'], ' ',
  $_SERVER['PATH_INFO'] ?? '', ' ', implode('&', array_map(fn ($k, $v) => "$k=$v", array_keys($_GET), $_GET)), "\\n";
"""

# Files below every root, beside those of the first configurations.
FILES = {
    "style.css": "body { color: black }\n", "img.png": "png", "notes.txt": "notes\n", "file.sql": "secret\n",
    ".git/config": "secret\n", ".htaccess": "secret\n",
    "composer.json": "{}\n", "404.html": "<h1>Not here</h1>\n", "500.html": "<h1>Sorry</h1>\n", "sw.js": "x\n",
    "assets/a.css": "a {}\n", "system/a.png": "png", "data/x": "secret\n", "favicon.ico": "icon",
}
SCRIPTS = ["index.php", "folder/index.php", "wp-login.php", "xmlrpc.php", "wp-cron.php", "wp-content/uploads/x.php", "app/uploads/x.php",
           "get.php", "errors/404.php", "remote.php", "config/config.php", "vendor/a/b.php"]


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
        "opt/forge/public/404.html": "<h1>Not here</h1>\n", "opt/forge/public/502.html": "<h1>Sorry</h1>\n", "var/cache/nginx/empty": "", "var/nginx/empty": "", "sites/shop.example/logs/empty": "", "var/run/empty": "",
        # user, password
        "members": "user:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_roots(text):
    """Files below each root that a configuration names, and scripts where it has PHP."""
    text = text.replace("$MAGE_ROOT", (re.findall(r"set \$MAGE_ROOT (\S+);", text) or [""])[0])
    scripts = [(name, SCRIPT) for name in SCRIPTS] if "fastcgi_pass" in text else []
    for root in map(pathlib.Path, set(re.findall(r"\broot\s+(/[^;$\s]+);", text))):
        for name, content in [*FILES.items(), *scripts]:
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.write_text(content)


def adapted(name, folder, plain, secure, application):
    """The configuration with ports, folders and servers of this machine."""
    text = (CORPUS / name).read_text()

    def listen(found):
        words = found.group(1).split()
        if words[0].startswith("[::]"):
            return ""
        is_default = " default_server" if "default_server" in words else ""
        if "ssl" in words:
            return f"listen 127.0.0.1:{secure} ssl{is_default};"
        return f"listen 127.0.0.1:{plain}{is_default};"

    text = re.sub(r"\blisten ([^;]+);", listen, text)
    text = re.sub(r"^\s*(http2 on|more_set_headers [^;]*|ssl_(dhparam|trusted_certificate|stapling\w*|ecdh_curve) [^;]*);",
                  "", text, flags=re.M)
    text = re.sub(r"ssl_certificate_key [^;]+;", f"ssl_certificate_key {folder}/key.pem;", text)
    text = re.sub(r"ssl_certificate [^;]+;", f"ssl_certificate {folder}/cert.pem;", text)
    text = re.sub(r"unix:/run/gunicorn\.sock|unix:/var/opt/forge/workhorse/socket|127\.0\.0\.1:(300[01]|4000)",
                  f"127.0.0.1:{application}", text)
    text = re.sub(r"server 127\.0\.0\.1:9000 backup;", "", text)
    text = re.sub(r"unix:(/var)?/run/php[^;\s]*", f"unix:{folder}/php.sock", text)
    text = re.sub(r"include snippets/tls.conf;", "", text)
    text = text.replace("include snippets/", f"include {CORPUS}/snippets/")
    text = re.sub(r"(?<=[ \"])/(srv|var|sites|home|opt|app)/(?=\S*[;\s])(?!\S*\.sock)", rf"{folder}/\1/", text)
    text = text.replace("/etc/nginx/members", f"{folder}/members")
    text = re.sub(r"^user .*;$|^worker_\w+ .*;$|^\s*(error_log|pid|pcre_jit) .*;$", "", text, flags=re.M)
    text = re.sub(r"access_log [^;]*;", "access_log off;", text)
    temp = "".join(f"{kind}_temp_path {folder}/temp-{kind};\n"
                   for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    main = f"daemon off;\nmaster_process off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
    types = "include /etc/nginx/mime.types;\n"
    if "http {" in text:
        return main + text.replace("http {", "http {\n" + types + temp, 1)
    text = re.sub(r"^types \{[^}]*\}", "", text, flags=re.M)
    return f"{main}events {{ }}\nhttp {{\n{types}{temp}{text}}}\n"


def ask(port, secure, host, method, path, fields):
    """The response, and how often the same was asked before is of no matter."""
    host = fields.get("Host", host)
    raw = socket.create_connection(("127.0.0.1", port), timeout=20)
    if secure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        raw = context.wrap_socket(raw, server_hostname=host)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields.items() if name != "Host"]
    if method in ("POST", "PUT", "PROPFIND"):
        lines.append("Content-Length: 0")
    with raw:
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        response = http.client.HTTPResponse(raw, method=method)
        try:
            response.begin()
            body = response.read()
        except (http.client.BadStatusLine, ConnectionError):
            # The connection was closed without an answer.
            return {"status": 0, "body": b"", **dict.fromkeys(FIELDS)}
    return {"status": response.status, "body": body, **{name: response.getheader(name) for name in FIELDS}}


def wait_for(port, process, what, log):
    for _ in range(400):
        if process.poll() is not None:
            sys.exit(f"{what} does not start: {log.read_text()}")
        with socket.socket() as own:
            if own.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"{what} does not listen")


def differences(name, secure, ports, host, requests):
    found = []
    for method, path, fields in requests:
        if (name, path) in KNOWN_REQUESTS or (None, path) in KNOWN_REQUESTS:
            continue
        one, other = (ask(port, secure, host, method, path, fields) for port in ports)
        for answer in (one, other):
            answer["body"] = re.sub(KNOWN_PARTS.get(name, b"^$"), b"", answer["body"])
        for key, value in one.items():
            # Pages for errors are each server's own.
            is_own_page = key in ("body", "content-type") and one["status"] >= 300 and one["status"] != 404
            is_own_page |= key == "content-type" and one["status"] == 204
            is_plain_404 = one["status"] == 404 and b"nginx" in one["body"] and key in ("body", "content-type")
            if value == other[key] or is_own_page or is_plain_404:
                continue
            if any(test(key, value, other[key], one["status"]) for _, test in KNOWN):
                continue
            where = f"{name}: {method} {path} {fields or ''}: {key}"
            found.append(f"{where}: nginx {value!r}, larder {other[key]!r}")
            if key == "status":
                break
    return found


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=lab", "-addext", "subjectAltName=DNS:*.example,DNS:*.shop.example",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)


def start_php(folder, log):
    program = sorted(pathlib.Path("/usr/sbin").glob("php-fpm*"))[-1]
    user = "user = root\nlisten.owner = root\n" if os.geteuid() == 0 else ""
    (folder / "php.conf").write_text(
        f"[global]\nerror_log = {folder}/php.log\ndaemonize = no\n[lab]\n{user}listen = {folder}/php.sock\n"
        "pm = static\npm.max_children = 2\n")
    process = subprocess.Popen([program, "--nodaemonize", "--allow-to-run-as-root", "--fpm-config",
                                folder / "php.conf"], stderr=log)
    for _ in range(400):
        if (folder / "php.sock").exists():
            return process
        time.sleep(0.02)
    sys.exit("php-fpm does not start")


def run(name, folder, application):
    host, own = CASES[name]
    ports = [[free_port(), free_port()] for _ in range(2)]
    for file, (plain, tls) in zip(["nginx.conf", "other.conf"], ports):
        (folder / file).write_text(adapted(name, folder, plain, tls, application))
    write_roots((folder / "nginx.conf").read_text())
    certificate(folder)
    made = subprocess.run([LARDER, "import", folder / "other.conf", "-o", folder / "larder.toml",
                           "--report", folder / "report"], check=False)
    if made.returncode not in (0, 3):
        sys.exit(f"{name}: larder import ended with {made.returncode}")
    with open(folder / "larder.toml", "a") as file:
        # The folder is this user's.
        file.write('\n[run]\nuser = "root"\n' if os.geteuid() == 0 else "")
    log = open(folder / "larder.log", "w")
    secure = " ssl" in (folder / "nginx.conf").read_text()
    started = []
    try:
        if "fastcgi_pass" in (folder / "nginx.conf").read_text():
            started.append(start_php(folder, log))
        started.append(subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"], stderr=log))
        wait_for(ports[0][secure], started[-1], "nginx", folder / "larder.log")
        command = [LARDER, "serve", "--config", folder / "larder.toml", "--admin-socket", folder / "admin.sock"]
        started.append(subprocess.Popen(command, stderr=log))
        wait_for(ports[1][secure], started[-1], "larder", folder / "larder.log")
        requests = COMMON + own
        return differences(name, secure, [own[secure] for own in ports], host, requests), len(requests)
    finally:
        if "KEEP" in os.environ:
            shutil.copytree(folder, pathlib.Path(os.environ["KEEP"]) / name, dirs_exist_ok=True,
                            ignore=lambda _, names: [own for own in names if own.endswith(".sock")])
        for process in started:
            process.terminate()
            process.wait()


def main():
    if shutil.which("nginx") is None or not list(pathlib.Path("/usr/sbin").glob("php-fpm*")):
        print("skipped: no nginx, or no PHP-FPM")
        sys.exit(77)
    missing = {file.name for file in CORPUS.glob("*.conf")} - set(CASES)
    if missing:
        sys.exit(f"no requests for {', '.join(sorted(missing))}")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    def one(name):
        with tempfile.TemporaryDirectory(prefix="larder-import-") as own:
            folder = pathlib.Path(own)
            os.chmod(folder, 0o755)
            write_files(folder)
            return run(name, folder, server.server_address[1])

    failed, asked = [], 0
    names = sys.argv[1:] or list(CASES)
    # They mostly wait for each other.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for name, (found, number) in zip(names, pool.map(one, names)):
            asked += number
            failed += found
            print(f"{name}: {number} requests, {len(found)} differences")
    if failed:
        print("\n".join(failed))
        sys.exit(f"{len(failed)} differences in {asked} requests")
    print(f"{asked} requests: the same from both, but for {len(KNOWN)} kinds of differences that KNOWN names, and "
          f"{len(KNOWN_REQUESTS)} requests and {len(KNOWN_PARTS)} parts with a reason of their own")


main()
