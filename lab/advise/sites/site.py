"""What a site of the lab consists of: an origin, settings of Larder, visitors, and what is known to be wrong with it.

A site comes in two forms: with its faults, or as a twin without them. Its traps are in both.
"""

import functools
import os
import random
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from processes import end

WORDS = ("shelf jar salt cellar honey flour oats pepper bread candle window kitchen evening market basket lid label"
         " winter rye plum smoke glass stone morning").split()


@dataclass
class Fault:
    """A fault that was put into a site: the kind of the finding that must name it, and words of what it is about. `also`
    are further kinds that tell of it truly. `in_smoke` is False if it takes a whole round to show; `by_log` is True if an
    access log and the origin's answers prove it."""

    name: str
    kind: str
    words: list
    also: list = field(default_factory=list)
    in_smoke: bool = True
    by_log: bool = False

    def matches(self, kind, about):
        """Whether a finding tells of this fault."""
        return kind in [self.kind, *self.also] and all(word in about for word in self.words)


@dataclass
class Trap:
    """What looks like a fault and is none: no finding may be about it."""

    name: str
    words: list

    def matches(self, about):
        """Whether a finding has walked into it."""
        return all(word in about for word in self.words)


class Site:
    """A site with an HTTP origin on a port of its own. Its work folder is its own, too."""

    name = host = ""
    faults, traps = [], []
    # Whether an nginx can stand in front of it.
    has_log = True
    # A round of visits: its length, and how many there are in a second.
    seconds, rate = 20, 150

    def __init__(self, work, port, well):
        self.work, self.port, self.well = work, port, well
        self.processes = []
        if well:
            self.faults = []
        os.makedirs(work, exist_ok=True)
        os.chmod(work, 0o755)

    def start(self):
        """Starts the origin, and waits until it answers."""
        raise NotImplementedError

    def reset(self):
        """Brings the origin back to how it was at its start, before each round."""

    def settings(self):
        """The text of the `[[site]]` in larder.toml."""
        return f'[[site]]\nhost   = "{self.host}"\norigin = "http://127.0.0.1:{self.port}"\n'

    def parts(self):
        """What visitors do."""
        raise NotImplementedError

    def cookies(self, _chance, visitor):
        """Cookies that a visitor keeps: those that every visitor of the web has."""
        return {"_ga": f"GA1.1.{100000 + visitor.number}"}

    def run(self, command, **options):
        """Starts a server of the origin."""
        with open(os.path.join(self.work, "origin.log"), "ab") as log:
            self.processes.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options,
            ))

    def wait(self, path="/", seconds=20):
        """Waits until the origin answers, whatever its status."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).read()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        with open(os.path.join(self.work, "origin.log"), errors="replace") as log:
            raise RuntimeError(f"{self.name}: the origin does not answer: {log.read()[-800:]}")

    def stop(self):
        """Ends the origin."""
        for process in reversed(self.processes):
            end(process)
        self.processes = []


@functools.lru_cache(maxsize=1000)
def text(name, size):
    """About so many bytes of text, always the same ones for a name."""
    chance = random.Random(name)
    words = [name]
    length = len(name)
    while length < size:
        words.append(chance.choice(WORDS))
        length += 1 + len(words[-1])
    return " ".join(words)


def about(finding):
    """What a finding is about, for the words of faults and traps."""
    return f"{finding['about']} {finding['paths']}".strip()
