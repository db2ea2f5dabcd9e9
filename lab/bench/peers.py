"""The servers side by side: how each is started, and told to cache what one origin says for an hour.

One worker or thread each, no access log, memory for everything; otherwise as installed. nginx is there
twice, as no one setting is its best at every size: with `sendfile`, which is what people use, and with
large buffers instead. Its files are in the page cache, and the small ones' handles stay open. h2o has no
cache: it sends the same bytes from files. `larder-builtin` is Larder with nothing but the builtin VCL,
`larder-site` and `varnish-site` run the policy in site.vcl.

Those that speak HTTP/2 have a second port for it, over TLS 1.3, with the certificate in the work folder.
"""

import os
import shutil
import subprocess

NGINX = """
daemon off; worker_processes 1; pid {work}/{name}.pid; error_log {work}/{name}.err warn; {user}
events {{ worker_connections 4096; }}
http {{
  access_log off; {sending} keepalive_requests 1000000000; keepalive_timeout 300s;
  open_file_cache max=1000 inactive=600s; open_file_cache_valid 600s;
  client_body_temp_path {work}/{name}-b; proxy_temp_path {work}/{name}-p;
  fastcgi_temp_path {work}/{name}-f; uwsgi_temp_path {work}/{name}-u; scgi_temp_path {work}/{name}-s;
  proxy_cache_path {work}/{name}-files levels=1:2 keys_zone=bench:8m inactive=1d use_temp_path=off;
  server {{
    listen 127.0.0.1:{port}; {secure}
    location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache bench; }}
  }}
}}
"""

HAPROXY = """
global
  nbthread 1
  maxconn 2000
cache bench
  total-max-size 64
  max-object-size 1000000
  max-age 3600
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 60s
frontend clients
  bind 127.0.0.1:{port}
  {secure}
  http-request cache-use bench
  http-response cache-store bench
  default_backend origin
backend origin
  server origin 127.0.0.1:{origin}
"""

H2O = """
{user}
num-threads: 1
pid-file: {work}/h2o.pid
error-log: {work}/h2o.err
listen: {{host: 127.0.0.1, port: {port}}}
{secure}
hosts: {{default: {{paths: {{"/": {{file.dir: "{work}/files", file.send-compressed: OFF}}}}}}}}
"""

LARDER = """
listen  = [{listeners}]
workers = 1
{secure}
[memory]
size = "64MiB"
# As in nginx.conf: connections stay for a whole run.
[limits]
keepalive_requests = 1_000_000_000
[[site]]
host   = "*"
origin = "http://127.0.0.1:{origin}"
"""

SQUID = """
http_port 127.0.0.1:{port} accel defaultsite=localhost no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest originserver name=origin
http_access allow all
cache_mem 64 MB
maximum_object_size_in_memory 4 MB
memory_cache_shared off
access_log none
cache_store_log none
cache_log {work}/squid/cache.log
pid_filename {work}/squid/squid.pid
coredump_dir {work}/squid
pinger_enable off
icp_port 0
shutdown_lifetime 0 seconds
dns_nameservers 127.0.0.1
"""


def _write(work, file_name, text, **values):
    path = os.path.join(work, file_name)
    with open(path, "w") as file:
        file.write(text.format(work=work, **values))
    return path


def larder(work, port, origin, tls=None):
    listeners, secure = f'"127.0.0.1:{port}"', ""
    if tls:
        listeners += f', "127.0.0.1:{tls} tls"'
        secure = f'[tls]\ncert = "{work}/cert.pem"\nkey = "{work}/key.pem"'
    values = {"listeners": listeners, "secure": secure, "origin": origin}
    conf = _write(work, "larder.toml", LARDER, **values)
    return [
        os.environ["LARDER_BIN"], "serve", "--config", conf, "--admin-socket", f"{work}/larder.sock",
    ]


def nginx_sending(name, sending):
    def command(work, port, origin, tls=None):
        user = "user root;" if os.getuid() == 0 else ""
        secure = tls and (
            f"listen 127.0.0.1:{tls} ssl http2; ssl_protocols TLSv1.3;"
            f" ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem;"
        )
        values = {"name": name, "port": port, "origin": origin, "user": user, "sending": sending}
        values["secure"] = secure or ""
        conf = _write(work, f"{name}.conf", NGINX, **values)
        return ["nginx", "-e", f"{work}/{name}.err", "-c", conf]

    return command


def varnish(work, port, origin):
    return [
        "varnishd", "-F", "-j", "none", "-n", f"{work}/varnish", "-a", f"127.0.0.1:{port}",
        "-b", f"127.0.0.1:{origin}", "-s", "malloc,64m",
    ]


def _site(work, origin):
    """The policy of site.vcl, for this origin."""
    with open(os.path.join(os.path.dirname(__file__), "site.vcl")) as file:
        text = file.read().replace("{port}", str(origin))
    path = os.path.join(work, "site.vcl")
    with open(path, "w") as file:
        file.write(text)
    return path


def larder_vcl(name):
    """Larder as varnishd is started: with the builtin VCL alone, or that of a site."""
    def command(work, port, origin):
        policy = ["-f", _site(work, origin)] if name == "larder-site" else ["-b", f"127.0.0.1:{origin}"]
        return [
            os.environ["LARDER_BIN"], "serve", "-a", f"127.0.0.1:{port}", *policy, "-s", "malloc,64m",
            "-n", f"{work}/{name}", "--admin-socket", f"{work}/{name}.sock",
        ]
    return command


def varnish_site(work, port, origin):
    command = varnish(work, port, origin)
    at = command.index("-b")
    command[at:at + 2] = ["-f", _site(work, origin)]
    command[command.index("-n") + 1] += "-site"
    return command


def haproxy(work, port, origin, tls=None):
    secure = tls and f"bind 127.0.0.1:{tls} ssl crt {work}/both.pem alpn h2 ssl-min-ver TLSv1.3"
    values = {"port": port, "origin": origin, "secure": secure or ""}
    return ["haproxy", "-f", _write(work, "haproxy.cfg", HAPROXY, **values)]


def h2o(work, port, _origin, tls=None):
    secure = tls and (
        f"listen: {{host: 127.0.0.1, port: {tls}, ssl: {{certificate-file: {work}/cert.pem,"
        f" key-file: {work}/key.pem, ocsp-update-interval: 0, minimum-version: TLSv1.3}}}}"
    )
    user = "user: root" if os.getuid() == 0 else ""
    values = {"port": port, "user": user, "secure": secure or ""}
    return ["h2o", "-c", _write(work, "h2o.conf", H2O, **values)]


def squid(work, port, origin):
    folder = os.path.join(work, "squid")
    os.mkdir(folder)
    if os.getuid() == 0:
        # Squid gives up root for this user, who must reach its folder.
        os.chmod(work, 0o755)
        shutil.chown(folder, "proxy")
    conf = _write(work, "squid.conf", SQUID, port=port, origin=origin)
    return ["squid", "-N", "-n", f"bench{os.getpid()}", "-f", conf]


# Name: how to start it, the program, and how to ask it for its version.
ALL = {
    "larder": (larder, None, ["--version"]),
    "larder-builtin": (larder_vcl("larder-builtin"), None, ["--version"]),
    "larder-site": (larder_vcl("larder-site"), None, ["--version"]),
    "nginx": (nginx_sending("nginx", "sendfile on; tcp_nopush on;"), "nginx", ["-v"]),
    "nginx-buffers": (nginx_sending("nginx-buffers", "output_buffers 2 256k;"), "nginx", ["-v"]),
    "varnish": (varnish, "varnishd", ["-V"]),
    "varnish-site": (varnish_site, "varnishd", ["-V"]),
    "haproxy": (haproxy, "haproxy", ["-v"]),
    "h2o": (h2o, "h2o", ["--version"]),
    "squid": (squid, "squid", ["-v"]),
}


# Those with a port for HTTP/2.
HTTP2 = ["larder", "nginx", "nginx-buffers", "haproxy", "h2o"]


def program(name):
    """The path of a peer's program; `None` when it is not installed."""
    return shutil.which(ALL[name][1] or os.environ["LARDER_BIN"])


def version(name):
    asked = subprocess.run(
        [program(name), *ALL[name][2]], capture_output=True, text=True, check=False
    )
    lines = (asked.stdout + asked.stderr).strip().splitlines()
    return lines[0] if lines else "version unknown"
