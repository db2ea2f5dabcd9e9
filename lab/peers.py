"""The servers side by side: how each is started, and told to cache what one origin says.

As a good administrator has them: connections to the origin are kept, no access log, memory for everything that can
have it, objects of up to 16 MiB, one worker or thread for each core they get; otherwise as installed. Varnish has its
threads of its own accord, and Squid is one process. nginx is there several times, as no one setting is its best at every
size: with `sendfile`, which is what people use, with large buffers instead, and with its files on a file system in memory.
Its files are in the page cache, and the small ones' handles stay open. h2o has no cache: it sends the same bytes from
files. `larder-builtin` is Larder with nothing but the builtin VCL, `larder-site` and `varnish-site` run the policy in
bench/site.vcl.

Those that speak TLS have a second port for it, and speak HTTP/2 there, with the certificate in the work folder.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable, Optional


@dataclass
class Place:
    """Where a server works, and with how much."""

    work: str
    port: int
    origin: int
    secure: Optional[int] = None
    workers: int = 1
    memory_mib: int = 64


@dataclass
class Peer:
    """A server: its command, its program (Larder's where none is named), and how to ask that for its version."""

    command: Callable[[Place], list]
    program: Optional[str]
    version: str
    secure: bool = False

    def path(self):
        """The path of its program; `None` when it is not installed."""
        return shutil.which(self.program or os.environ["LARDER_BIN"])


# What every nginx of the lab has: it stays in the foreground, keeps connections, logs nothing but errors, and has its
# files in the work folder.
NGINX_FRAME = """
daemon off; worker_processes {workers}; pid {work}/{name}.pid; error_log {work}/{name}.err warn; {user}
worker_rlimit_nofile 40000;
events {{ worker_connections 16000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
  client_body_temp_path {work}/{name}-b; proxy_temp_path {work}/{name}-p;
  fastcgi_temp_path {work}/{name}-f; uwsgi_temp_path {work}/{name}-u; scgi_temp_path {work}/{name}-s;
"""

NGINX = """
  {sending}
  open_file_cache max=100000 inactive=600s; open_file_cache_valid 600s;
  proxy_cache_path {files} levels=1:2 keys_zone=bench:32m inactive=1d use_temp_path=off {limit};
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 128; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096; {secure}
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_cache bench;
      proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on;
      add_header X-Cache $upstream_cache_status;
    }}
  }}
"""

HAPROXY = """
global
  nbthread {workers}
  # It counts two descriptors for a connection and would not start with fewer; most here need one.
  no strict-limits
  maxconn 16000
cache bench
  total-max-size {memory_mib}
  max-object-size 16777216
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
  http-reuse always
  server origin 127.0.0.1:{origin}
"""

H2O = """
{user}
num-threads: {workers}
pid-file: {work}/h2o.pid
error-log: {work}/h2o.err
listen: {{host: 127.0.0.1, port: {port}}}
{secure}
hosts: {{default: {{paths: {{"/": {{file.dir: "{work}/files", file.send-compressed: OFF}}}}}}}}
"""

LARDER = """
listen  = [{listeners}]
workers = {workers}
{secure}
[memory]
size = "{memory_mib}MiB"
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
cache_mem {memory_mib} MB
max_filedescriptors 40000
maximum_object_size 16 MB
maximum_object_size_in_memory 16 MB
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


# Traffic Server reads a folder of files; the rest of it is Debian's own.
TRAFFIC_SERVER = {
    "runroot.yaml": """
prefix: /usr
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: {folder}/etc
datadir: {folder}/cache
includedir: /usr/include
libdir: /usr/lib/trafficserver
libexecdir: /usr/lib/trafficserver/modules
localstatedir: {folder}
runtimedir: {folder}/run
logdir: {folder}/log
cachedir: {folder}/cache
""",
    "etc/records.config": """
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT {workers}
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.task_threads INT 1
CONFIG proxy.config.exec_thread.affinity INT 0
CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.http.cache.required_headers INT 2
CONFIG proxy.config.net.connections_throttle INT 32000
CONFIG proxy.config.net.max_connections_in INT 16000
CONFIG proxy.config.net.listen_backlog INT 4096
CONFIG proxy.config.cache.ram_cache.size INT {memory_bytes}
CONFIG proxy.config.cache.ram_cache_cutoff INT 16777216
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.crash_log_helper STRING NULL
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 300
""",
    "etc/storage.config": "{folder}/cache {disk_mib}M\n",
    "etc/remap.config": "map / http://127.0.0.1:{origin}/\n",
    "etc/plugin.config": "",
    "etc/logging.yaml": "",
    "etc/ip_allow.yaml": """
ip_allow:
  - {{apply: in, ip_addrs: 0/0, action: allow, methods: ALL}}
""",
}

APACHE = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/pid
DefaultRuntimeDir {folder}
Mutex file:{folder}
ErrorLog {work}/{name}.err
LogLevel warn
{user}
Listen 127.0.0.1:{port}
{modules}
ServerLimit {servers}
ThreadsPerChild 64
MaxRequestWorkers {threads}
KeepAlive On
KeepAliveTimeout 300
MaxKeepAliveRequests 0
TypesConfig /dev/null
AddType text/html .html
{site}
"""

APACHE_CACHE = """
CacheRoot {folder}/files
CacheEnable disk "/"
CacheQuickHandler on
CacheLock on
CacheLockPath {folder}/lock
CacheHeader on
ProxyPass / http://127.0.0.1:{origin}/ keepalive=On
"""

# TLS for a server that has none.
HITCH = """
frontend = "[127.0.0.1]:{secure}"
backend = "[127.0.0.1]:{port}"
pem-file = "{work}/both.pem"
workers = {workers}
{user}
alpn-protos = "http/1.1"
tls-protos = TLSv1.3
quiet = on
"""

NGINX_TLS = """
  upstream cache {{ server 127.0.0.1:{port}; keepalive 256; }}
  server {{
    listen 127.0.0.1:{secure} ssl http2 backlog=4096; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:10m;
    ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem;
    location / {{
      proxy_pass http://cache; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https;
    }}
  }}
"""


def write(place, file_name, text, **values):
    """A configuration file in the work folder, with the place's values filled in; its path."""
    path = os.path.join(place.work, file_name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text.format(**{**vars(place), **values}))
    return path


def nginx_command(place, name, http, **values):
    """nginx by a name of its own, with this in its block `http`."""
    # nginx gives up root for a user who must reach its files; the lab's belong to whoever started it.
    user = "user root;" if os.getuid() == 0 else ""
    conf = write(place, f"{name}.conf", NGINX_FRAME + http + "}}\n", name=name, user=user, **values)
    return ["nginx", "-e", f"{place.work}/{name}.err", "-c", conf]


def serve(*arguments):
    """The command that starts Larder. Root stays root, whatever users the machine has."""
    stay = ["--user", "root"] if os.getuid() == 0 else []
    return [os.environ["LARDER_BIN"], "serve", *stay, *arguments]


def larder(place):
    listeners, secure = f'"127.0.0.1:{place.port}"', ""
    if place.secure:
        listeners += f', "127.0.0.1:{place.secure} tls"'
        secure = f'[tls]\ncert = "{place.work}/cert.pem"\nkey = "{place.work}/key.pem"'
    conf = write(place, "larder.toml", LARDER, listeners=listeners, secure=secure)
    return serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")


def nginx(name, sending, files=None, limit=""):
    """nginx by a name of its own, with its way of sending; its cache is in `files`, or in the work folder. `limit` are
    parameters that bound it."""
    def command(place):
        secure = place.secure and (
            f"listen 127.0.0.1:{place.secure} ssl http2 backlog=4096; ssl_protocols TLSv1.3;"
            f" ssl_certificate {place.work}/cert.pem; ssl_certificate_key {place.work}/key.pem;"
        )
        kept = os.path.join(files or place.work, f"{os.path.basename(place.work)}-{name}")
        return nginx_command(place, name, NGINX, sending=sending, secure=secure or "", files=kept, limit=limit)

    return command


def varnish(place):
    return [
        "varnishd", "-F", "-j", "none", "-n", f"{place.work}/varnish", "-a", f"127.0.0.1:{place.port}",
        "-b", f"127.0.0.1:{place.origin}", "-s", f"malloc,{place.memory_mib}m",
    ]


def _site(place):
    """The policy of site.vcl, for this origin."""
    with open(os.path.join(os.path.dirname(__file__), "bench", "site.vcl")) as file:
        text = file.read().replace("{port}", str(place.origin))
    path = os.path.join(place.work, "site.vcl")
    with open(path, "w") as file:
        file.write(text)
    return path


def larder_vcl(name):
    """Larder as varnishd is started: with the builtin VCL alone, or that of a site."""
    def command(place):
        site = name == "larder-site"
        policy = ["-f", _site(place)] if site else ["-b", f"127.0.0.1:{place.origin}"]
        return serve(
            "-a", f"127.0.0.1:{place.port}", *policy,
            "-s", f"malloc,{place.memory_mib}m", "-n", f"{place.work}/{name}",
            "--admin-socket", f"{place.work}/{name}.sock",
        )
    return command


def varnish_site(place):
    command = varnish(place)
    at = command.index("-b")
    command[at:at + 2] = ["-f", _site(place)]
    command[command.index("-n") + 1] += "-site"
    return command


def haproxy(place):
    secure = place.secure and (
        f"bind 127.0.0.1:{place.secure} ssl crt {place.work}/both.pem alpn h2,http/1.1 ssl-min-ver TLSv1.3"
    )
    return ["haproxy", "-f", write(place, "haproxy.cfg", HAPROXY, secure=secure or "")]


def h2o(place):
    secure = place.secure and (
        f"listen: {{host: 127.0.0.1, port: {place.secure}, ssl: {{certificate-file: {place.work}/cert.pem,"
        f" key-file: {place.work}/key.pem, ocsp-update-interval: 0, minimum-version: TLSv1.3}}}}"
    )
    user = "user: root" if os.getuid() == 0 else ""
    return ["h2o", "-c", write(place, "h2o.conf", H2O, user=user, secure=secure or "")]


def squid(place):
    folder = os.path.join(place.work, "squid")
    os.makedirs(folder, exist_ok=True)
    if os.getuid() == 0:
        # Squid gives up root for this user, who must reach its folder.
        os.chmod(place.work, 0o755)
        shutil.chown(folder, "proxy")
    return ["squid", "-N", "-n", f"lab{os.getpid()}", "-f", write(place, "squid.conf", SQUID)]


def traffic_server(place):
    folder = os.path.join(place.work, "trafficserver")
    for name in ["cache", "log", "run"]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    shutil.copytree("/etc/trafficserver", os.path.join(folder, "etc"), dirs_exist_ok=True)
    values = {"folder": folder, "memory_bytes": place.memory_mib << 20, "disk_mib": max(256, 2 * place.memory_mib)}
    for name, text in TRAFFIC_SERVER.items():
        write(place, f"trafficserver/{name}", text, **values)
    return ["traffic_server", f"--run-root={folder}"]


def apache(name, modules, site, threads=512):
    """Apache by a name of its own, with these modules beside what every server needs, and this site."""
    def command(place):
        folder = os.path.join(place.work, name)
        for part in ["files", "lock"]:
            os.makedirs(os.path.join(folder, part), exist_ok=True)
        user = ""
        if os.getuid() == 0:
            user = "User www-data\nGroup www-data"
            os.chmod(place.work, 0o755)
            for part in ["files", "lock", ""]:
                shutil.chown(os.path.join(folder, part), "www-data")
        values = {"folder": folder, "name": name, "user": user, "threads": threads, "servers": threads // 64}
        values["modules"] = "\n".join(
            f"LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so"
            for module in ["mpm_event", "authz_core", "mime", *modules]
        )
        values["site"] = site.format(**{**vars(place), **values})
        return ["apache2", "-DFOREGROUND", "-f", write(place, f"{name}.conf", APACHE, **values)]

    return command


def hitch(place):
    """TLS on the place's second port for what listens on its first."""
    user = 'user = "_hitch"' if os.getuid() == 0 else ""
    return ["hitch", "--config", write(place, "hitch.conf", HITCH, user=user)]


def nginx_tls(place):
    """TLS and HTTP/2 on the place's second port for what listens on its first."""
    return nginx_command(place, "nginx-tls", NGINX_TLS)


_SENDFILE = "sendfile on; tcp_nopush on;"
_CACHE_MODULES = ["cache", "cache_disk", "proxy", "proxy_http"]

ALL = {
    "larder": Peer(larder, None, "--version", secure=True),
    "larder-builtin": Peer(larder_vcl("larder-builtin"), None, "--version"),
    "larder-site": Peer(larder_vcl("larder-site"), None, "--version"),
    "nginx": Peer(nginx("nginx", _SENDFILE), "nginx", "-v", secure=True),
    "nginx-buffers": Peer(nginx("nginx-buffers", "output_buffers 2 256k;"), "nginx", "-v", secure=True),
    "nginx-tmpfs": Peer(nginx("nginx-tmpfs", _SENDFILE, "/dev/shm"), "nginx", "-v", secure=True),
    "varnish": Peer(varnish, "varnishd", "-V"),
    "varnish-site": Peer(varnish_site, "varnishd", "-V"),
    "haproxy": Peer(haproxy, "haproxy", "-v", secure=True),
    "h2o": Peer(h2o, "h2o", "--version", secure=True),
    "squid": Peer(squid, "squid", "-v"),
    "trafficserver": Peer(traffic_server, "traffic_server", "-V"),
    "apache": Peer(apache("apache", _CACHE_MODULES, APACHE_CACHE), "apache2", "-v"),
}


def remove_files(place):
    """Removes what a server kept outside of the work folder."""
    shutil.rmtree(f"/dev/shm/{os.path.basename(place.work)}-nginx-tmpfs", ignore_errors=True)


def version(program, flag):
    """The first line of what a program says of its version."""
    asked = subprocess.run([program, flag], capture_output=True, text=True, check=False)
    lines = (asked.stdout + asked.stderr).strip().splitlines()
    return lines[0] if lines else "version unknown"
