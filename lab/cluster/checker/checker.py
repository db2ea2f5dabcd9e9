#!/usr/bin/env python3
"""Clusters with faults, and whether what their purges promise is so: real nodes and NATS servers in network namespaces,
one run for each seed. Docs: docs/lab/cluster.md.

  LARDER_BIN=target/release/larder lab/cluster/checker/checker.py --runs 1000 --jobs 4
  ... checker.py --seed 42            plays one seed again, and keeps its folder

A run ends with everything that it started, also after Ctrl-C. Exit status 1: a promise was broken, 77: namespaces
cannot be made here or NATS is missing.
"""

import argparse
import collections
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from arena import Arena, is_allowed
from faults import KINDS, SERVERS, draw, seeds_of
from natsd import program

HERE = os.path.dirname(os.path.abspath(__file__))
# Longest time of a run, on a machine that does much else.
LONGEST_S = 300
# The time in which all are to have caught up once the stream is there; only far beyond it a run fails.
CONVERGES_S, GENEROUS_S = 1.0, 30.0


def dies_with_its_parent():
    """Has a child end with the checker, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def begin(arena, folder, script, *arguments):
    """Starts a script in the hub's namespace, with mounts and processes of its own: all of them end with it."""
    enter = ["nsenter", f"--net=/run/netns/{arena.hub}", "unshare", "--mount", "--pid", "--fork"]
    command = [*enter, "--kill-child", "--mount-proc", sys.executable, f"{HERE}/{script}", *map(str, arguments)]
    with open(f"{folder}/run.log", "wb") as log:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, preexec_fn=dies_with_its_parent, start_new_session=True
        )


def figures(options):
    """Figures instead of faults."""
    tag = f"{os.getpid()}f"
    arena, folder = Arena(tag, options.nodes, SERVERS), tempfile.mkdtemp(prefix="larder-figures-")
    try:
        arena.make()
        asked = (options.nodes, options.rounds, options.rate, options.seconds)
        process = begin(arena, folder, "figures.py", tag, folder, *asked)
        try:
            print(process.communicate()[0].decode(), end="")
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            with open(f"{folder}/run.log") as log:
                print(log.read())
        return process.returncode
    finally:
        arena.remove()
        shutil.rmtree(folder, ignore_errors=True)


class Checker:
    """Many runs."""

    def __init__(self, options):
        self.options = options
        self.folder = options.folder or tempfile.mkdtemp(prefix="larder-checker-")
        os.makedirs(self.folder, exist_ok=True)
        self.running = set()
        self.results = []
        self.is_over = False

    def run(self, seed):
        """One run: its result, as `run.py` prints it."""
        if self.is_over:
            return None
        plan, tag = draw(seed), f"{os.getpid()}s{seed}"
        arena = Arena(tag, len(plan["nodes"]), SERVERS)
        folder = f"{self.folder}/{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            arena.make()
            result = self._inside(seed, tag, folder, arena)
        finally:
            arena.remove()
        is_good = not (result.get("violations") or "broken" in result or "panics" in result or is_late(result))
        if is_good and not self.options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            for node in plan["nodes"]:
                shutil.rmtree(f"{folder}/{node['name']}/disk", ignore_errors=True)
        return result

    def _inside(self, seed, tag, folder, arena):
        process = begin(arena, folder, "run.py", seed, tag, folder)
        self.running.add(process)
        if self.is_over and not self.options.stop:
            process.kill()
        try:
            out, _ = process.communicate(timeout=LONGEST_S)
            return json.loads(out.splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as why:
            process.kill()
            process.wait()
            faults = [own["kind"] for own in draw(seed)["faults"]]
            return {"seed": seed, "faults": faults, "broken": f"the run itself: {type(why).__name__}"}
        finally:
            self.running.discard(process)

    def all(self):
        """All runs, side by side; their results as they come."""
        seeds = seeds_of(self.options.kind, self.options.seed, self.options.runs)
        results = self.results
        with ThreadPoolExecutor(self.options.jobs) as pool:
            try:
                for result in filter(None, pool.map(self.run, seeds)):
                    results.append(result)
                    tell(result, self.options.verbose or len(seeds) == 1)
                    self.is_over |= self.options.stop and result.get("violations", 0) > 0
            except BaseException:
                self.is_over = True
                for process in list(self.running):
                    process.kill()
                raise
        return results


def is_late(result):
    """Returns true if it took the nodes far too long, or forever, to catch up."""
    return "never" in result or any(own > GENEROUS_S for own in result.get("caught_up_s", {}).values())


def tell(result, is_verbose):
    """One line of a run, and more of one that failed."""
    late = max(result.get("caught_up_s", {"": 0}).values())
    word = "broken: " + result["broken"] if "broken" in result else f"{result['violations']} violations"
    print(
        f"seed {result['seed']:6}  {word}  {'+'.join(result['faults'])}  reads {result.get('reads', 0)}"
        f"  up {result.get('stream_up_s', '-')} s, then {late} s", flush=True,
    )
    if result.get("violations") or result.get("panics") or is_late(result):
        for lines in result.get("shown", []):
            print("  " + "\n  ".join(lines))
        print("  " + json.dumps({name: own for name, own in result.items() if name != "shown"}), flush=True)
    elif is_verbose:
        print("  " + json.dumps(result), flush=True)


def quantile(values, part):
    """A quantile of values, the nearest one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def summary(results):
    """What all runs together show: lines."""
    good = [own for own in results if "broken" not in own]
    purges, doubts, by_kind = collections.Counter(), collections.Counter(), {}
    for own in good:
        purges.update(own["purges"])
        doubts.update(own["doubts"])
        for kind in set(own["faults"]):
            by_kind.setdefault(kind, []).append(own)
    yield (
        f"runs {len(results)}, broken {len(results) - len(good)}, with violations "
        f"{sum(own['violations'] > 0 for own in good)}, late {sum(map(is_late, good))}; "
        f"reads {sum(own['reads'] for own in good)}, of them hits {sum(own['hits'] for own in good)}, "
        f"told by another node {sum(own.get('shared', 0) for own in good)}, "
        f"refused by a node {sum(own['failed'] for own in good)}, of another key {sum(own['foreign'] for own in good)}"
    )
    yield "purges: " + ", ".join(f"{word}: {count}" for word, count in sorted(purges.items()))
    yield "doubts: " + ", ".join(f"{why}: {count}" for why, count in sorted(doubts.items()))
    for kind in KINDS:
        own = by_kind.get(kind, [])
        if not own:
            continue
        times = [at for one in own for at in one.get("caught_up_s", {}).values()]
        ups = [one["stream_up_s"] for one in own if "stream_up_s" in one]
        yield (
            f"| {kind} | {len(own)} | {sum(sum(one['purges'].values()) for one in own)} | "
            f"{sum(one['reads'] for one in own)} | {sum(one['violations'] > 0 for one in own)} | "
            f"{quantile(ups, 0.5):.2f} / {quantile(ups, 1):.2f} | {quantile(times, 0.5):.2f} / "
            f"{quantile(times, 0.99):.2f} / {quantile(times, 1):.2f} |"
        )
    times = [at for one in good for at in one.get("caught_up_s", {}).values()]
    within = sum(at <= CONVERGES_S for at in times)
    yield (
        f"caught up, once the stream was there: {within} of {len(times)} nodes within {CONVERGES_S} s; "
        f"p50 {quantile(times, 0.5):.2f} s, p90 {quantile(times, 0.9):.2f} s, p99 {quantile(times, 0.99):.2f} s, "
        f"longest {quantile(times, 1):.2f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, help="only seeds whose first fault is of this kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", help="where failing runs are kept")
    parser.add_argument("--keep", action="store_true", help="keep the folders of all runs")
    parser.add_argument("--safety", action="store_true", help="fail for broken promises only, however slow all is")
    parser.add_argument("--stop", action="store_true", help="begin no run behind one that broke a promise")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--figures", action="store_true", help="figures of a cluster where nothing fails")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    larder = os.environ.get("LARDER_BIN", "target/debug/larder")
    if not program() or not os.access(larder, os.X_OK) or not is_allowed():
        print("needs nats-server, LARDER_BIN, and namespaces, which root may make")
        sys.exit(77)
    os.environ["LARDER_BIN"] = os.path.abspath(larder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.figures:
        sys.exit(figures(options))
    checker = Checker(options)
    try:
        results = checker.all()
    except KeyboardInterrupt:
        results = checker.results
    print("\n".join(summary(results)))
    bad = [
        own["seed"] for own in results
        if own.get("violations") or "panics" in own or (is_late(own) and not options.safety)
    ]
    if bad or options.keep:
        print(f"kept in {checker.folder}; again with --seed N" + (f": {bad}" if bad else ""))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
