"""What was acknowledged and what was read, and whether the one allows the other.

Every moment is of one clock: the monotonic one of the process in which clients, origin and checker run. A read counts
from when it was sent, an acknowledgement from when it had been received, so a read that is later is later in truth.
A promise is a *floor*: from a moment on a node serves a key in some version or a newer one. Decision 29 and the guide
of clusters say which:

- `all`, acknowledged: at once, on every node, also one that is cut off, killed and back, or stopped.
- `all` in vain, with names of those who have not applied it: at once, on every node that is not named.
- any answer: at once, on the node that gave it.
- `quorum`, acknowledged: on every node once `max_isolation` has passed.
- what is not lost: on every node, once all have caught up. It is what was acknowledged with `quorum` or `all`, and all
  else of a node that was not killed behind it.
"""

import bisect
import re
from dataclasses import asdict, dataclass, field


@dataclass
class Read:
    """A read: moments in seconds, and what came."""

    sent: float
    ended: float
    node: str
    key: str
    status: int
    version: int
    how: str


@dataclass
class Purge:
    """A purge: the versions that the origin had before it was sent, and what was answered; status 0 for nothing."""

    sent: float
    ended: float
    node: str
    run: int
    kind: str
    level: str
    versions: dict
    status: int
    text: str


@dataclass
class History:
    """All that happened in a run."""

    nodes: list
    max_isolation_s: float
    reads: list = field(default_factory=list)
    purges: list = field(default_factory=list)
    # Moments, and what was done then.
    events: list = field(default_factory=list)
    # The moments at which nodes were killed, by node and run.
    killed: dict = field(default_factory=dict)
    # When all nodes had caught up after healing; `None` if they have not.
    converged: float | None = None

    def floors(self):
        """All promises: (moment, node, purge, words for it)."""
        for purge in self.purges:
            if not purge.status:
                continue
            yield from ((when, node, purge, why) for when, node, why in self._of(purge))

    def _of(self, purge):
        done = purge.status == 200
        if done or "It is invalidated here" in purge.text or purge.status == 503:
            yield purge.ended, purge.node, "its own answer"
        if done and purge.level == "all":
            yield from ((purge.ended, node, "all") for node in self.nodes)
        if done and purge.level == "quorum":
            until = purge.ended + self.max_isolation_s
            yield from ((until, node, "quorum and max_isolation") for node in self.nodes)
        named = re.search(r"not applied yet by: ([\w, -]+)", purge.text)
        if purge.level == "all" and purge.status == 503 and named:
            names = re.split(r", ", named[1])
            yield from ((purge.ended, node, "not named") for node in self.nodes if node not in names)
        was_killed = (purge.node, purge.run) in self.killed
        if self.converged and ((done and purge.level != "local") or not was_killed):
            yield from ((self.converged, node, "not lost") for node in self.nodes)

    def violations(self):
        """Reads that a promise forbids, with the promise."""
        floors = {}
        for when, node, purge, why in self.floors():
            for key, version in purge.versions.items():
                floors.setdefault((node, key), []).append((when, version, why, purge))
        highest = {}
        for place, own in floors.items():
            own.sort(key=lambda floor: floor[0])
            best, kept = None, []
            for floor in own:
                best = floor if best is None or floor[1] > best[1] else best
                kept.append(best)
            highest[place] = ([floor[0] for floor in own], kept)
        found = []
        for read in self.reads:
            if read.status != 200:
                continue
            moments, kept = highest.get((read.node, read.key), ([], []))
            at = bisect.bisect_left(moments, read.sent)
            if at and kept[at - 1][1] > read.version:
                when, version, why, purge = kept[at - 1]
                words = {"promise": why, "since": when, "wanted": version}
                found.append({"read": asdict(read), **words, "purge": asdict(purge)})
        return found

    def around(self, violation, seconds=3):
        """Events, and what was purged and read of the key, around a violation: lines."""
        read = violation["read"]
        first, last = violation["purge"]["sent"] - seconds, read["ended"] + seconds / 3
        lines = [(when, f"        {what}") for when, what in self.events if first < when < last]
        for purge in self.purges:
            if read["key"] in purge.versions and first < purge.sent < last:
                words = f"purge {purge.kind} {purge.level} at {purge.node}: {purge.versions[read['key']]}"
                lines.append((purge.sent, f"{words} sent"))
                lines.append((purge.ended, f"{words} answered {purge.status} {purge.text.strip()}"))
        for own in self.reads:
            if (own.node, own.key) == (read["node"], read["key"]) and first < own.sent < last:
                words = f"  {own.node} read in {own.ended - own.sent:.3f} s: {own.status} {own.version} {own.how}"
                lines.append((own.sent, words))
        return [f"{when:8.3f} {text}" for when, text in sorted(lines)]
