"""Stacks of the experiments with a cache on disk: each has some memory for bodies and 1 GiB of disk."""

import subprocess

import peers
from experiment import Stack, there

MEMORY_MIB = 24
DISK = "1GiB"

LARDER_TOML = """
listen  = ["127.0.0.1:{port}"]
workers = 1
[memory]
size = "{size}"
[limits]
keepalive_requests = 1_000_000_000
{disk}
[[site]]
host   = "*"
origin = "http://127.0.0.1:{origin}"
# As the others: bodies are stored as they come.
compress = "off"
"""

SQUID = peers.SQUID + """
cache_dir rock {work}/squid/rock 1024 max-size=16777216
"""


def larder(disk, size=f"{MEMORY_MIB}MiB"):
    """Larder with a disk or without."""
    def command(place):
        kept = f'[disk]\npath = "{place.work}/disk"\nsize = "{DISK}"\nadmission = "all"' if disk else ""
        conf = peers.write(place, "larder.toml", LARDER_TOML, disk=kept, size=size)
        return peers.serve("--config", conf, "--admin-socket", f"{place.work}/larder.sock")

    return command


def varnish(place):
    return [
        "varnishd", "-F", "-j", "none", "-n", f"{place.work}/varnish", "-a", f"127.0.0.1:{place.port}",
        "-b", f"127.0.0.1:{place.origin}", "-s", f"file,{place.work}/storage,1G", "-p", "thread_pools=1",
    ]


def squid(place):
    """Squid with a rock store, which is made before it starts."""
    command = peers.squid(place)
    conf = peers.write(place, "squid.conf", SQUID)
    subprocess.run([*command[:command.index("-f")], "-f", conf, "-z"], check=True, capture_output=True)
    return [*command[:command.index("-f")], "-f", conf]


def traffic_server(place):
    command = peers.traffic_server(place)
    peers.write(place, "trafficserver/etc/storage.config", "{folder}/cache 1024M\n", folder=f"{place.work}/trafficserver")
    return command


STACKS = [
    Stack("Larder", [larder(True)], {"memory_mib": MEMORY_MIB}),
    Stack("nginx", ["nginx"], {"memory_mib": MEMORY_MIB}),
    Stack("nginx, large buffers", ["nginx-buffers"], {"memory_mib": MEMORY_MIB}),
    Stack("nginx on tmpfs", ["nginx-tmpfs"], {"memory_mib": MEMORY_MIB}),
    Stack("Traffic Server", [traffic_server], {"memory_mib": MEMORY_MIB}),
    Stack("Squid, rock", [squid], {"memory_mib": MEMORY_MIB}),
    Stack("Varnish, file", [varnish], {"memory_mib": MEMORY_MIB}),
]
PROGRAMS = {"Traffic Server": "trafficserver", "Squid, rock": "squid", "Varnish, file": "varnish", "Larder": "larder"}


def all_there():
    """The stacks whose servers are installed."""
    return [stack for stack in there(STACKS) if stack.name not in PROGRAMS or peers.ALL[PROGRAMS[stack.name]].path()]


def versions_of(stacks):
    """The versions of those."""
    named = {PROGRAMS[stack.name] for stack in stacks if stack.name in PROGRAMS} | {"nginx"}
    return {name: peers.version(peers.ALL[name].path(), peers.ALL[name].version) for name in sorted(named)}
