"""What stands before the lab's WordPress: nginx, Varnish and Larder as an administrator has them before PHP-FPM.

The rules for what is kept are those of the articles' kind of site: pages for an hour, and nothing for visitors with a
cookie of WordPress's, for other methods or for the pages of the administration.

nginx does without `tcp_nopush`, which Debian's own configuration has: pages of PHP have no length, and at some sizes each
of them would then wait 40 ms for the client's acknowledgement.
"""

import os
import re
import socket
import sys
import time

import peers
from experiment import LARDER, Running, started
from processes import MemoryGroup, free_ports

NGINX = """
  sendfile on; open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s;
  include /etc/nginx/mime.types;
  fastcgi_cache_path {files} levels=1:2 keys_zone=pages:10m inactive=60m max_size=100m;
  map $http_x_forwarded_proto $secure {{ https on; default $https; }}
  map $http_cookie $skip_cookie {{ default ""; "~comment_author|wordpress_|wp-postpass|woocommerce_" 1; }}
  map $request_uri $skip_uri {{ default ""; "~*/wp-admin/|/xmlrpc[.]php|wp-.*[.]php|/feed/|sitemap|[?]." 1; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096; {listen}
    root {site}/site; index index.php;
    location = /status {{ return 204; }}
    location / {{ try_files $uri $uri/ /index.php?$args; }}
    location ~ [.]php$ {{
      include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_param HTTP_HOST $http_host; fastcgi_param HTTPS $secure if_not_empty;
      fastcgi_pass unix:{site}/run/php.sock;
      {cache}
    }}
  }}
"""

KEPT = """
      fastcgi_cache pages; fastcgi_cache_key "$scheme$request_method$host$request_uri"; fastcgi_cache_valid 200 60m;
      fastcgi_ignore_headers Cache-Control Expires Set-Cookie;
      fastcgi_cache_bypass $skip_cookie $skip_uri; fastcgi_no_cache $skip_cookie $skip_uri;
      fastcgi_cache_lock on; fastcgi_cache_use_stale error timeout updating http_500;
      fastcgi_cache_background_update on;
      add_header X-Cache $upstream_cache_status;
"""

VCL = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_recv {{
  unset req.http.proxy;
  if (req.method != "GET" && req.method != "HEAD") {{ return (pass); }}
  if (req.url ~ "/wp-admin/|/xmlrpc[.]php|wp-.*[.]php|/feed/|sitemap|[?].") {{ return (pass); }}
  if (req.http.Authorization) {{ return (pass); }}
  if (req.http.Cookie ~ "comment_author|wordpress_|wp-postpass|woocommerce_") {{ return (pass); }}
  unset req.http.Cookie;
  return (hash);
}}
sub vcl_hash {{
  if (req.http.X-Forwarded-Proto) {{ hash_data(req.http.X-Forwarded-Proto); }}
}}
sub vcl_backend_response {{
  if (beresp.status == 200 && !bereq.uncacheable) {{
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 1h;
    set beresp.grace = 10m;
  }}
}}
"""

LARDER_TOML = """
listen  = ["127.0.0.1:{port}"{listen}]
workers = {workers}
{tls}
[memory]
size = "{memory_mib}MiB"
# As in nginx.conf: connections stay for a whole run.
[limits]
keepalive_requests = 1_000_000_000
[[origin]]
name       = "php"
servers    = "fastcgi+unix:{site}/run/php.sock"
root       = "{site}/site"
no_scripts = "/wp-content/uploads"
[[site]]
host   = "*"
origin = "php"
preset = "wordpress"
[site.cache]
ttl = {{ 200 = "1h" }}
[[site.route]]
path    = "/status"
respond = {{ status = 204 }}
"""


def nginx(site, cache="", memory=False):
    """nginx that asks PHP-FPM, with these directives for its cache, which is on the disk or in memory."""
    def command(place):
        name = os.path.basename(place.work)
        files = f"/dev/shm/{name}-nginx-tmpfs" if memory else f"{place.work}/cache"
        listen = place.secure and (
            f"listen 127.0.0.1:{place.secure} ssl http2 backlog=4096; ssl_protocols TLSv1.2 TLSv1.3;"
            f" ssl_session_cache shared:tls:10m;"
            f" ssl_certificate {place.work}/cert.pem; ssl_certificate_key {place.work}/key.pem;"
        )
        return peers.nginx_command(place, "nginx", NGINX, site=site, cache=cache, files=files, listen=listen or "")

    return command


def varnish(place):
    vcl = peers.write(place, "site.vcl", VCL)
    return [
        "varnishd", "-F", "-j", "none", "-n", f"{place.work}/varnish", "-a", f"127.0.0.1:{place.port}", "-f", vcl,
        "-s", f"malloc,{place.memory_mib}m",
    ]


def larder(site):
    """Larder that asks PHP-FPM itself, with nothing but the preset and an hour."""
    def command(place):
        listen, tls = "", ""
        if place.secure:
            listen = f', "127.0.0.1:{place.secure} tls"'
            tls = f'[tls]\ncert = "{place.work}/cert.pem"\nkey = "{place.work}/key.pem"'
        conf = peers.write(place, "larder.toml", LARDER_TOML, site=site, listen=listen, tls=tls)
        return peers.serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")

    return command


def until_open(address, seconds=20):
    """Waits for whoever listens at a port of 127.0.0.1, or on a socket's path."""
    family = socket.AF_INET if isinstance(address, int) else socket.AF_UNIX
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            try:
                one.connect(("127.0.0.1", address) if isinstance(address, int) else address)
                return
            except OSError:
                time.sleep(0.05)
    raise RuntimeError(f"nobody listens at {address}")


class RunningSite(Running):
    """A stack that runs before PHP-FPM, on some cores: HTTP at `port`, and HTTPS at `secure` if `tls` is the folder of
    a certificate. A stack that has no TLS names in its settings what brings it, as `tls`."""

    def __init__(self, stack, work, tls=None, core=0, workers=1, within=None):
        self.processes, self.places, self.tls = [], [], tls
        self.core, self.within = core, within or (lambda command: command)
        port = 0
        try:
            for number, layer in enumerate(reversed(stack.layers)):
                outermost = number == len(stack.layers) - 1
                place = self.place(f"{stack.name} {number}", work, port, outermost and tls)
                place.workers = workers
                place.memory_mib = stack.settings.get("memory_mib", place.memory_mib)
                self.places.append(place)
                self.begin(layer, place, "log")
                port = place.port
            self.port, self.secure = port, place.secure
            if tls and "tls" in stack.settings:
                self.begin(stack.settings["tls"], place, "tls-log")
            if tls:
                until_open(self.secure)
        except BaseException:
            self.stop()
            raise

    def place(self, name, work, origin, secure):
        """A folder of its own, with a name that nobody else has in /dev/shm, and ports."""
        slug = re.sub("[^a-z0-9]+", "-", name.lower())
        folder = os.path.join(work, f"{slug}-{os.getpid()}")
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        own, other = free_ports(2)
        if secure:
            for file in ("cert.pem", "key.pem"):
                os.symlink(os.path.join(self.tls, file), os.path.join(folder, file))
        return peers.Place(folder, own, origin, other if secure else None)

    def begin(self, layer, place, log):
        command = self.within(layer(place))
        self.processes.append(started(self.core, command, place.port, os.path.join(place.work, log)))


def memory_group(name, mib):
    """A group with so much memory; `None`, and a word about it, where this user may not make one."""
    try:
        return MemoryGroup(name, mib << 20)
    except OSError as error:
        print(f"memory is not limited: {error}", file=sys.stderr)
        return None


def versions():
    """The versions of all that these stacks are made of."""
    programs = {
        "larder": (LARDER, "--version"), "nginx": ("nginx", "-v"), "varnish": ("varnishd", "-V"),
        "php": ("php", "--version"),
    }
    return {name: peers.version(*program) for name, program in programs.items()}
