"""One cache over several nodes: what the origin is asked for by eight of them, and what a page costs that another node has."""

import json
import os
import subprocess
import sys
import threading
import time

import peers
from experiment import LARDER, ROUNDS, SMOKE, Origin, Page, bench, columns, run_of, started
from processes import end, free_ports, pinned

work = sys.argv[1]
NODES = 3 if SMOKE else 8
# Nodes of one site are asked by one name, whatever their ports.
HOST = ["-H", "Host: share.test"]
OBJECTS = 50 if SMOKE else 1_000
HITS = 200 if SMOKE else 8_192
KB = 26


def urls(first, last):
    """A file with the targets of pages."""
    path = f"{work}/urls-{first}-{last}"
    with open(path, "w") as file:
        file.writelines(f"/gen/{KB}?as={at}\n" for at in range(first, last))
    return path


class Cluster:
    """A NATS server and nodes beside each other."""

    def __init__(self, names, origin, shares):
        [port] = free_ports(1)
        self.folder = f"{work}/cluster-{time.monotonic_ns()}"
        os.makedirs(self.folder)
        with open(f"{self.folder}/nats.log", "w") as log:
            command = ["nats-server", "-js", "-sd", f"{self.folder}/nats", "-a", "127.0.0.1", "-p", str(port)]
            self.nats = subprocess.Popen(pinned(1, command), stdout=log, stderr=log, start_new_session=True)
        self.ports, self.processes = {}, {}
        for name in names:
            own, peer = free_ports(2)
            share = f'mode = "share"\npeer = "127.0.0.1:{peer}"\n' if shares else ""
            conf = f"{self.folder}/{name}.toml"
            with open(conf, "w") as file:
                file.write(
                    f'listen = "127.0.0.1:{own}"\nworkers = 1\nmemory = {{ size = "512MiB" }}\nlog_ring = "off"\n'
                    f'[cluster]\nservers = "nats://127.0.0.1:{port}"\nname = "{name}"\n{share}'
                    f'[[origin]]\nname = "app"\nservers = "http://127.0.0.1:{origin}"\n'
                    f'[[site]]\nhost = "*"\norigin = "app"\n'
                )
            command = peers.serve("--config", conf, "--admin-socket", f"{self.folder}/{name}.sock")
            self.ports[name] = own
            self.processes[name] = started(0, command, own, f"{self.folder}/{name}.log")
        self.until(lambda told: told["connected"] and told["trusted"] and len(live(told)) == len(names))

    @property
    def pids(self):
        return [process.pid for process in self.processes.values()]

    def run(self, name, *arguments):
        command = [LARDER, *arguments, "--admin-socket", f"{self.folder}/{name}.sock"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def until(self, holds):
        """Waits until `holds` of what each node tells of the cluster."""
        deadline = time.monotonic() + 60
        for name in self.ports:
            while not holds(json.loads(self.run(name, "cluster", "status", "--json"))):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{name} does not see what it should")
                time.sleep(0.1)
        # The list of those who share follows what is known of the members.
        time.sleep(0.5)

    def ask(self, name, *load):
        """One run of the load against a node; CPU is that of all nodes."""
        run = bench(work, self.pids, *load, *HOST, "--warm-up", "0", f"http://127.0.0.1:{self.ports[name]}")
        [result] = run["series"][0]["points"][0]["rounds"]
        return run, {**result, "origin_requests": 0}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.processes.values(), self.nats]:
            end(process)


def live(told):
    return [member for member in told["members"] if member["live"]]


def at_once(cluster):
    """Every node is asked for every page, all nodes at the same time."""
    def ask(name):
        command = [LARDER, "bench", "-t", "1", "-c", "4", "-n", str(OBJECTS), "--urls", urls(0, OBJECTS), "--warm-up", "0",
                   *HOST, f"http://127.0.0.1:{cluster.ports[name]}"]
        subprocess.run(pinned(1, command), capture_output=True, check=True)

    threads = [threading.Thread(target=ask, args=(name,)) for name in cluster.ports]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fetched(origin, shares):
    """How often the origin is asked for a page by all nodes: one after the other, and at once."""
    asked = []
    for one_by_one in (True, False):
        with Cluster([f"n{at}" for at in range(NODES)], origin.port, shares) as cluster:
            before = origin.asked()
            if one_by_one:
                for name in cluster.ports:
                    cluster.ask(name, "--urls", urls(0, OBJECTS), "-c", 4, "-n", OBJECTS)
            else:
                at_once(cluster)
            asked.append((origin.asked() - before - 1) / OBJECTS)
    return asked


def costs(origin, points):
    """A page that the other node has, the same page from the node's own memory, and one that no node has. The node that
    is asked drains: so it owns nothing, and the other one everything."""
    with Cluster(["owner", "asked"], origin.port, True) as cluster:
        cluster.run("asked", "cluster", "drain")
        cluster.until(lambda told: any(member["draining"] for member in told["members"]))
        load = ["--urls", urls(0, HITS), "-c", 8, "-n", HITS]
        cluster.ask("owner", *load)
        before = origin.asked()
        run, from_other = cluster.ask("asked", *load)
        from_other["origin_requests"] = origin.asked() - before - 1
        _, own = cluster.ask("asked", *load)
        _, none = cluster.ask("asked", "--urls", urls(HITS, 2 * HITS), "-c", 8, "-n", HITS)
    with Cluster(["alone", "other"], origin.port, False) as cluster:
        _, origins = cluster.ask("alone", *load)
    for name, one in [("its own memory", own), ("the other node's memory", from_other),
                      ("the origin, by the other node", none), ("the origin, nothing shared", origins)]:
        points.setdefault(name, {1: []})[1].append(one)
    return run


def main():
    page = Page("share", work)
    origin = Origin(work, {KB})
    points, asked = {}, {True: [], False: []}
    try:
        for number in range(ROUNDS):
            run = costs(origin, points)
            for shares in asked:
                asked[shares].append(fetched(origin, shares))
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    finally:
        origin.stop()
    version = subprocess.run(["nats-server", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    larder = subprocess.run([LARDER, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    page.machine(run_of(points, run, {"larder": larder, "nats-server": version}))
    heads = ["CPU a request", "requests/s", "p50", "p99"]
    rows = [[name, *(columns(by[1])[head] for head in heads)] for name, by in points.items()]
    page.put("costs", table(["a page of 26 KB from", *heads], rows))

    def cpu(name):
        return sorted(sum(use["cpu_us"] for use in one["servers"].values()) / one["completed"] for one in points[name][1])[ROUNDS // 2]

    page.put("ratio", f"{cpu('the other node' + chr(39) + 's memory') / (cpu('its own memory') or float('nan')):.2f}")
    names = {True: "share", False: "invalidate"}
    rows = []
    for shares, rounds in asked.items():
        of = [sorted(values)[len(values) // 2] for values in zip(*rounds)]
        rows.append([names[shares], *(f"{value:.3f}" for value in of)])
    page.put("asked", table(["`mode`", "one node after the other", "all at once"], rows))
    page.put("nodes", str(NODES))
    page.put("objects", f"{OBJECTS:,}")
    page.put("rounds", str(ROUNDS))
    page.write()


def table(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


main()
