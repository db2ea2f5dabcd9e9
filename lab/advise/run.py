"""Sites with planted faults before `larder advise`: what it finds, what it must not find, and what its advice brings.

    run.py WORK SITE...
"""

import concurrent.futures
import json
import os
import sys
from dataclasses import asdict, dataclass, field

from crowd import ratio, visits, walk, wrong_pages
from front import Front, Proxy, of_log
from processes import free_ports
from sites.api import Api
from sites.notes import Notes
from sites.static import Static

SMOKE = os.environ.get("SMOKE") == "1"
SMOKE_SECONDS = 6
SEED = 7
# How far a prediction may be from what is measured, in points of the hit ratio.
WITHIN = 2
SITES = {site.name: site for site in (Static, Api, Notes)}


@dataclass
class Result:
    """What came of one site, as the page shows it. Ratios are in percent."""

    name: str
    seconds: int
    rate: int
    is_twin: bool
    checks: list = field(default_factory=list)
    visits: int = 0
    measured: float = 0
    told: float = 0
    faults: list = field(default_factory=list)
    traps: list = field(default_factory=list)
    invented: int = 0
    leaks: int = 0

    def check(self, what, good, got=""):
        """Notes a check, and prints it."""
        name = f"{self.name} without faults" if self.is_twin else self.name
        self.checks.append(bool(good))
        print(f"{'ok    ' if good else 'FAILED'}  {name}: {what}" + (f"  [{got}]" if got != "" else ""), flush=True)

    def close(self, what, predicted, measured):
        """Notes whether two ratios are within what is promised."""
        self.check(what, abs(predicted - measured) <= WITHIN, f"{predicted:.1f} %, measured {measured:.1f} %")

    def visited(self, site, front):
        """Has one round of visits made through this Larder; the ratio that they measured."""
        answers = walked(site, front.port)
        wrong = wrong_pages(answers)
        self.visits = len(answers)
        self.leaks += len(wrong)
        self.check("visitors see their own pages", not wrong, "; ".join(wrong[:3]))
        unanswered = sum(answer.status == 0 for answer in answers)
        self.check("every visit has an answer", unanswered == 0, unanswered or "")
        return ratio(answers)


def walked(site, port):
    """The answers of one round of visits to this port."""
    site.reset()
    seconds = SMOKE_SECONDS if SMOKE else site.seconds
    return walk(port, site.host, visits(site.parts(), seconds, site.rate, SEED, site.cookies))


def to_find(site):
    """The faults that a log proves, with the origin's answers."""
    return [fault for fault in site.faults if fault.by_log]


def judged(result, site, advice):
    """Holds findings against the table; the first finding of each fault."""
    told = {}
    for finding in advice.findings:
        fault = next((one for one in site.faults if one.matches(finding.kind, finding.about)), None)
        if fault:
            told.setdefault(fault.name, finding)
            continue
        trap = next((one for one in site.traps if one.matches(finding.about)), None)
        result.invented += 1
        result.check(f"nothing is invented, {trap.name if trap else 'beside the table'}", False, finding)
    for fault in to_find(site):
        result.check(f"found: {fault.name} ({fault.kind})", fault.name in told, told.get(fault.name, ""))
    return told


def corrected(result, site, fault, finding, text, work):
    """The same visits from a cold cache, with the lines of one finding; a row for the page."""
    row = {"name": fault.name, "kind": fault.kind, "found": finding is not None, "predicted": None, "measured": None}
    if text is not None:
        with Front(os.path.join(work, f"{site.name}-corrected"), site, text) as front:
            row["predicted"], row["measured"] = finding.predicted, result.visited(site, front)
        result.close(f"what is predicted for {fault.name}", row["predicted"], row["measured"])
    return row


def study(name, well, work):
    """One site, before Larder runs and after: what nginx's log tells, and what it brings. A twin has no faults to find."""
    folder = os.path.join(work, f"{name}-twin" if well else name)
    site = SITES[name](folder, free_ports(1)[0], well)
    result = Result(name, SMOKE_SECONDS if SMOKE else site.seconds, site.rate, well)
    result.traps = [trap.name for trap in site.traps]
    try:
        site.start()
        front = Front(f"{folder}-front", site)
        with Proxy(f"{folder}-proxy", site) as proxy:
            walked(site, proxy.port)
        evidence = of_log(front, proxy)
        advice = evidence.advice()
        told = judged(result, site, advice)
        texts = {
            fault: evidence.applied(finding.number) for fault, finding in told.items() if finding.predicted is not None
        }
        with front:
            result.measured, result.told = result.visited(site, front), advice.ratio
        result.close("the log says what Larder's ratio will be", result.told, result.measured)
        for fault in to_find(site):
            finding, text = told.get(fault.name), texts.get(fault.name)
            result.faults.append(corrected(result, site, fault, finding, text, work))
    finally:
        site.stop()
    return result


def main(work, names):
    tasks = [(name, well) for name in names for well in (False, True)]
    # The sites of a smoke test run beside each other: they wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(len(tasks) if SMOKE else 1) as pool:
        done = list(pool.map(lambda task: study(*task, work), tasks))
    checks = [good for result in done for good in result.checks]
    print(f"larder advise before {', '.join(names)}: {sum(checks)} of {len(checks)} checks hold")
    return 0 if all(checks) else 1


sys.exit(main(sys.argv[1], sys.argv[2:]))
