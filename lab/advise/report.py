"""The page of the lab, docs/lab/advise.md, made from the results of its sites.

    report.py FOLDER      FOLDER has SITE.json of each site
"""

import glob
import json
import os
import platform
import re
import subprocess
import sys
import time

# How far a prediction may be from what is measured, in points of the hit ratio.
WITHIN = 2


def table(result):
    """The faults of a site, with what their corrections bring."""
    rows = [
        f"## {result['name']}", "",
        f"{result['visits']:,} visits; {result['measured']:.1f} % of them are answered by stored responses, "
        f"{result['told']:.1f} % in the replay.", "",
        "| fault | finding | ratio predicted | measured |", "|---|---|---|---|",
    ]
    for fault in result["faults"]:
        measured = "–" if fault["measured"] is None else f"{fault['measured']:.1f} %"
        predicted = ", by the log ".join(f"{one:.1f} %" for one in fault["predicted"]) or "–"
        kind = f"`{fault['kind']}`" if fault["found"] else "not found"
        rows.append(f"| {fault['name']} | {kind} | {predicted} | {measured} |")
    return "\n".join(rows)


def furthest(pairs):
    """The largest distance of two figures, in points."""
    distances = [abs(first - second) for first, second in pairs if first is not None and second is not None]
    return f"{max(distances):.1f} at most, of {len(distances)}" if distances else "–"


def machine():
    """The machine and the version of Larder."""
    version = subprocess.run([os.environ["LARDER_BIN"], "--version"], capture_output=True, text=True, check=True)
    return f"- cores: {os.cpu_count()}\n- kernel: {platform.release()}\n- larder: {version.stdout.strip()}"


def main(folder):
    results = []
    for path in sorted(glob.glob(f"{folder}/*.json")):
        with open(path) as file:
            results += json.load(file)
    sites = [result for result in results if not result["is_twin"]]
    twins = [result for result in results if result["is_twin"]]
    faults = [fault for result in sites for fault in result["faults"]]
    parts = {
        "sites": len(sites), "faults": len(faults), "traps": sum(len(result["traps"]) for result in sites),
        "found": sum(fault["found"] for fault in faults), "invented": sum(result["invented"] for result in sites),
        "on_twins": sum(result["invented"] for result in twins), "leaks": sum(result["leaks"] for result in results),
        "within": WITHIN, "replayed": furthest([(result["told"], result["measured"]) for result in results]),
        "predicted": furthest([(one, fault["measured"]) for fault in faults for one in fault["predicted"]]),
        "before": furthest([(one["told_by_log"], one["measured"]) for one in results]),
        "tables": "\n\n".join(table(result) for result in sites),
        "rounds": "; ".join(f"{one['name']}: {one['seconds']} s at {one['rate']} visits a second" for one in sites),
        "trap_list": "\n".join(f"  - {trap}" for result in sites for trap in result["traps"]),
        "date": time.strftime("%-d %B %Y"), "machine": machine(),
    }
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/page.md") as file:
        text = re.sub(r"\{(\w+)\}", lambda found: str(parts[found[1]]), file.read())
    path = os.path.join(os.path.dirname(os.path.dirname(here)), "docs", "lab", "advise.md")
    with open(path, "w") as file:
        file.write(text)
    print(f"advise: {path}")


if __name__ == "__main__":
    main(sys.argv[1])
