"""Sites with planted faults before `larder advise`: what it finds, what it must not find, and what its advice brings.

    run.py WORK RESULTS SITE...     RESULTS is the folder for what report.py reads
"""

import concurrent.futures
import json
import os
import sys
from dataclasses import asdict, dataclass, field

from crowd import ratio, visits, walk, wrong_pages
from front import Evidence, Front, Proxy, of_log
from processes import free_ports
from report import WITHIN
from sites.api import Api
from sites.mediawiki import Mediawiki
from sites.notes import Notes
from sites.static import Static
from sites.wordpress import Wordpress

SMOKE = os.environ.get("SMOKE") == "1"
SMOKE_SECONDS = 6
# The most corrections that a smoke test tries of each site.
SMOKE_CORRECTIONS = 1
SEED = 7
SITES = {site.name: site for site in (Static, Api, Notes, Wordpress, Mediawiki)}


@dataclass
class Result:
    """What came of one site, as the page shows it. Ratios are in percent."""

    name: str
    seconds: int
    rate: int
    is_twin: bool
    # Of its files in the work folder.
    folder: str
    checks: list = field(default_factory=list)
    visits: int = 0
    measured: float = 0
    told: float = 0
    told_by_log: float | None = None
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


def judged(result, site, advice, source, to_find):
    """Holds findings against the table; the first finding of each fault. `to_find` are the faults that `source` proves."""
    told = {}
    for finding in advice.findings:
        fault = next((one for one in site.faults if one.matches(finding.kind, finding.about)), None)
        if fault:
            if finding.kind == fault.kind:
                told.setdefault(fault.name, finding)
            continue
        trap = next((one for one in site.traps if one.matches(finding.about)), None)
        result.invented += 1
        result.check(f"nothing is invented {source}, {trap.name if trap else 'beside the table'}", False, finding)
    for fault in to_find:
        found = told.get(fault.name, "")
        result.check(f"found {source}: {fault.name} ({fault.kind})", found, found)
    return told


def shown_by_ring(result, site, work):
    """Has the site visited through Larder, whose log ring is the evidence; each fault's finding, and the lines of those that
    have some."""
    with Front(os.path.join(work, f"{result.folder}-ring"), site) as front:
        result.measured = result.visited(site, front)
        evidence = Evidence(front)
        advice = evidence.advice()
        result.told = advice.ratio
        result.close("the replay has the ratio that visitors saw", result.told, result.measured)
        faults = [fault for fault in site.faults if fault.in_smoke or not SMOKE]
        told = judged(result, site, advice, "in the log ring", faults)
        texts = {
            fault: evidence.applied(finding.number) for fault, finding in told.items() if finding.predicted is not None
        }
    return told, texts


def shown_by_log(result, site, work):
    """Has the site visited before Larder comes; the findings of nginx's log."""
    front = Front(os.path.join(work, f"{result.folder}-log"), site)
    with Proxy(os.path.join(work, f"{result.folder}-proxy"), site) as proxy:
        walked(site, proxy.port)
    advice = of_log(front, proxy).advice()
    result.told_by_log = advice.ratio
    result.close("nginx's log alone says what Larder's ratio will be", advice.ratio, result.measured)
    return judged(result, site, advice, "in nginx's log", [fault for fault in site.faults if fault.by_log])


def corrected(result, site, fault, findings, text, work):
    """The same visits from a cold cache, with the lines of one finding; a row for the page."""
    row = {"name": fault.name, "kind": fault.kind, "found": any(findings), "measured": None, "predicted": []}
    if text is not None:
        with Front(os.path.join(work, f"{result.folder}-corrected"), site, text) as front:
            row["measured"] = result.visited(site, front)
        for finding in filter(None, findings):
            row["predicted"].append(finding.predicted)
            result.close(f"what is predicted for {fault.name}", finding.predicted, row["measured"])
    return row


def study(name, well, work):
    """One site: what its faults look like in the log ring and in nginx's log, and what their corrections bring. A twin has
    no faults to find."""
    folder = f"{name}-twin" if well else name
    site = SITES[name](os.path.join(work, folder), free_ports(1)[0], well)
    result = Result(name, SMOKE_SECONDS if SMOKE else site.seconds, site.rate, well, folder)
    result.traps = [trap.name for trap in site.traps]
    try:
        site.start()
        by_ring, texts = shown_by_ring(result, site, work)
        by_log = shown_by_log(result, site, work) if site.has_log else {}
        tried = 0
        for fault in site.faults:
            text = texts.get(fault.name) if tried < SMOKE_CORRECTIONS or not SMOKE else None
            tried += text is not None
            findings = [by_ring.get(fault.name), by_log.get(fault.name)]
            result.faults.append(corrected(result, site, fault, findings, text, work))
    finally:
        site.stop()
    return result


def main(work, results, names):
    tasks = [(name, well) for name in names for well in (False, True)]
    # The sites of a smoke test run beside each other: they wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(len(tasks) if SMOKE else 1) as pool:
        done = list(pool.map(lambda task: study(*task, work), tasks))
    for name in names:
        with open(os.path.join(results, f"{name}.json"), "w") as file:
            json.dump([asdict(result) for result in done if result.name == name], file)
    checks = [good for result in done for good in result.checks]
    print(f"larder advise before {', '.join(names)}: {sum(checks)} of {len(checks)} checks hold")
    return 0 if all(checks) else 1


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
