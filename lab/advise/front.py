"""Larder in front of a site of the lab, and what `larder advise` says of it."""

import json
import os
import shutil
import subprocess

import peers
from processes import end, free_ports, started
from sites.site import about

# Of every page a fingerprint: a round has not the hours in which pages take turns.
TOP = 'listen = ["127.0.0.1:@PORT@"]\n\n[log_ring]\nfingerprints = "100%"\n\n'
# The fields that a policy looks at: a log without them says too little of a site with cookies.
LOGGED = ["user_agent", "cookie", "accept", "accept_language", "accept_encoding"]
PROXY = """
  log_format visits escape=json '{{"msec":"$msec","remote_addr":"$remote_addr","host":"$host","request":"$request",'
    '"status":"$status","body_bytes_sent":"$body_bytes_sent","upstream_response_time":"$upstream_response_time"{logged}}}';
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 32; }}
  server {{
    listen 127.0.0.1:{port}; access_log {log} visits;
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    }}
  }}
"""


class Advice:
    """What `larder advise --json` said: findings, and the hit ratio of the replay, in percent."""

    def __init__(self, said):
        self.findings = [Finding(one) for one in said["findings"]]
        self.ratio = said["replayed"]["ratio"]


class Finding:
    """One finding: its number for `--apply`, its kind, what it is about, and the hit ratio that it predicts in percent;
    `None` if no setting changes it."""

    def __init__(self, said):
        self.number, self.kind, self.about = said["number"], said["kind"], about(said)
        self.predicted = said["predicted"]["ratio"] if said["change"] else None

    def __str__(self):
        return f"{self.kind}: {self.about}"


class Front:
    """Larder with a configuration of its own, in a folder of its own."""

    def __init__(self, folder, site, text=None):
        self.folder, self.site = folder, site
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        [self.port] = free_ports(1)
        self.path = os.path.join(folder, "larder.toml")
        self.socket = os.path.join(folder, "larder.sock")
        self.text = text or TOP + site.settings()
        self.restore()
        self.process = None

    def restore(self):
        """The configuration as it was at the start."""
        with open(self.path, "w") as file:
            file.write(self.text.replace("@PORT@", str(self.port)))

    def changed(self):
        """The configuration as it is now, for another front."""
        with open(self.path) as file:
            return file.read().replace(f"127.0.0.1:{self.port}\"]", "127.0.0.1:@PORT@\"]", 1)

    def __enter__(self):
        command = peers.serve("--config", self.path, "--admin-socket", self.socket)
        self.process = started(command, self.port, os.path.join(self.folder, "log"))
        return self

    def __exit__(self, *_):
        end(self.process)
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            if "panicked" in log.read():
                raise RuntimeError(f"{self.site.name}: Larder panicked: {self.folder}/log")


class Proxy:
    """nginx in front of a site, alone and without a cache, as before Larder comes; its access log is `log`."""

    def __init__(self, folder, site):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        [self.port] = free_ports(1)
        self.log = os.path.join(folder, "access.log")
        place = peers.Place(folder, self.port, site.port)
        logged = "".join(f',"http_{name}":"$http_{name}"' for name in LOGGED)
        self.command = peers.nginx_command(place, "proxy", PROXY, log=self.log, logged=logged)

    def __enter__(self):
        self.process = started(self.command, self.port, f"{self.log}.nginx")
        return self

    def __exit__(self, *_):
        end(self.process)


class Evidence:
    """What `larder advise` looks at: the log ring of a front that runs, or what `arguments` name."""

    def __init__(self, front, *arguments):
        self.front = front
        self.arguments = [*arguments, "--config", front.path, "--admin-socket", front.socket]

    def advice(self):
        """All findings."""
        return Advice(json.loads(output(["advise", "--json", *self.arguments])))

    def applied(self, number):
        """The configuration with the lines of a finding, as `--apply` writes them; the old one is there again."""
        output(["advise", "--apply", str(number), "--unproved", *self.arguments])
        text = self.front.changed()
        self.front.restore()
        return text


def of_log(front, proxy):
    """The evidence of nginx's access log, and of the origin behind it."""
    # The log grows with each question to the origin through nginx; these go to the origin itself.
    origin = f"http://127.0.0.1:{front.site.port}"
    return Evidence(
        front, "--log", proxy.log, "--origin", origin, "--origin-requests", "400", "--origin-rate", "200",
    )


def output(arguments):
    """The standard output of a verb of Larder's that must succeed."""
    command = [os.environ["LARDER_BIN"], *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout
