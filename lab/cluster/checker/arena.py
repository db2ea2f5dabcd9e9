"""Network namespaces of one run: a hub with two bridges, and a namespace for each node and each NATS server.

The front bridge carries clients and the origin, the cluster's bridge what nodes and servers say to each other; so a
node that is cut off from its cluster is still asked by clients. All names carry the checker's process and the run's
seed. Nothing here touches a namespace or an interface with another name.
"""

import subprocess

FRONT, CLUSTER = "10.81.1", "10.81.2"
# A link-layer address that nobody has: what is sent there is dropped in silence, as by a firewall in one direction.
NOWHERE = "02:00:00:00:de:ad"


def batch(commands, check=True):
    """Has `ip` carry out the commands, one a line."""
    text = "\n".join(commands) + "\n"
    done = subprocess.run(["ip", "-batch", "-"], input=text, text=True, capture_output=True)
    if check and done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}\n{text}")


def is_allowed():
    """Returns true if namespaces can be made here."""
    name = "lk-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    inner = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True)
    return made.returncode == 0 and inner.returncode == 0


class Arena:
    """The namespaces of a run with so many nodes and servers."""

    def __init__(self, tag, nodes, servers):
        self.hub = f"lk{tag}"
        self.nodes = [f"n{at}" for at in range(1, nodes + 1)]
        self.servers = [f"s{at}" for at in range(1, servers + 1)]

    def space(self, member):
        """The namespace of a node or a server."""
        return f"{self.hub}-{member}"

    @staticmethod
    def front(member):
        """The address at which clients find a node; `hub` is the origin's."""
        return f"{FRONT}.{Arena.number(member)}"

    @staticmethod
    def address(member):
        """The address of a node or a server towards the cluster."""
        return f"{CLUSTER}.{Arena.number(member)}"

    @staticmethod
    def number(member):
        """The last byte of a member's addresses."""
        base = {"h": 0, "n": 10, "s": 40}[member[0]]
        return 1 if member == "hub" else base + int(member[1:])

    def make(self):
        """Makes all of it."""
        members = self.nodes + self.servers
        spaces = [self.hub] + [self.space(member) for member in members]
        batch([f"netns add {space}" for space in spaces])
        commands = ["link set lo up", "link add front type bridge", "link add cluster type bridge"]
        for bridge, address in (("front", self.front("hub")), ("cluster", self.address("hub"))):
            commands += [f"addr add {address}/24 dev {bridge}", f"link set {bridge} up"]
        for member in members:
            planes = [("c", "cluster", self.address(member))]
            if member in self.nodes:
                planes.append(("f", "front", self.front(member)))
            for letter, bridge, _ in planes:
                commands += [
                    f"link add {letter}-{member} type veth peer name {bridge} netns {self.space(member)}",
                    f"link set {letter}-{member} master {bridge}",
                    f"link set {letter}-{member} up",
                ]
        self._within(self.hub, commands)
        for member in members:
            commands = ["link set lo up", f"addr add {self.address(member)}/24 dev cluster", "link set cluster up"]
            if member in self.nodes:
                commands += [f"addr add {self.front(member)}/24 dev front", "link set front up"]
            self._within(self.space(member), commands)

    @staticmethod
    def _within(space, commands):
        text = "\n".join(commands) + "\n"
        done = subprocess.run(["ip", "-n", space, "-batch", "-"], input=text, text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"{space}: {done.stderr.strip()}")

    def remove(self):
        """Removes all of it; what is not there is no error. Interfaces go with their namespaces."""
        for member in [None, *self.nodes, *self.servers]:
            space = self.space(member) if member else self.hub
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    def link(self, member, is_up):
        """Connects a member with the cluster's bridge, or cuts it off. Called in the hub's namespace."""
        batch([f"link set c-{member} {'up' if is_up else 'down'}"])

    def mute(self, sender, receiver, is_mute):
        """Has what `sender` says to `receiver` be lost, or not: one direction only."""
        to = self.address(receiver)
        command = f"neigh replace {to} lladdr {NOWHERE} nud permanent dev cluster"
        if not is_mute:
            command = f"neigh del {to} dev cluster"
        try:
            self._within(self.space(sender), [command])
        except RuntimeError:
            if is_mute:
                raise
