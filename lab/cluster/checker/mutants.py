#!/usr/bin/env python3
"""The check of the checker: it must find all bugs that were made by hand.

  lab/cluster/checker/mutants.py [SEEDS [NUMBER...]]    how many seeds each is tried with (19), and which of them

A bug is replacements in a copy of the tree, whose old text must occur exactly once, so that the table cannot rot
silently. All are built into one binary; a variable of the environment chooses the one in force.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(f"{HERE}/../../..")
VARIABLE = "LARDER_CLUSTER_MUTANT"
SESSION, CLUSTER = "crates/cluster/src/session.rs", "crates/cluster/src/cluster.rs"
FOLLOWER, MEMBERS = "crates/cluster/src/follower.rs", "crates/cluster/src/members.rs"
NODE, SHARE = "crates/daemon/src/node.rs", "crates/cluster/src/sharing_nodes.rs"
DELAYED = """let refused = if {M} {
            let (host, all) = (Arc::clone(&self.host), entry.invalidations.clone());
            rt::spawn(async move {
                rt::time::sleep(Duration::from_millis(50)).await;
                all.iter().for_each(|one| drop(host.apply(one)));
            });
            0
        } else {
            entry.invalidations.iter().filter(|one| !apply(one)).count()
        };"""

# The name of a bug, the kind of fault that is to show it, and its replacements: a file, the text there, and the text in its
# place, with `{M}` for a condition that holds when the bug is in force.
MUTANTS = [
    ("trust has no end", "cut", [(
        NODE, "set_until(mono_ms);", "set_until(if {M} && mono_ms > 0 { u64::MAX } else { mono_ms });",
    )]),
    ("a node says that it has applied an entry, and applies it later", "stop-nats", [(
        SESSION, "let refused = entry.invalidations.iter().filter(|one| !apply(one)).count();", DELAYED,
    )]),
    ("`all` does not wait for a node that is silent", "cut", [(
        MEMBERS, "saturating_add(self.card.patience_ms())",
        "saturating_add(self.card.patience_ms() / if {M} { 8 } else { 1 })",
    )]),
    ("`all` waits for those who are known, before all are", "kill", [(
        CLUSTER, "let knows_all = self", "let knows_all = {M} || self",
    )]),
    ("`quorum` does not wait for the stream", "cut", [(
        CLUSTER, "        for fate in &mut self.fates {",
        "        for fate in &mut self.fates {\n            if {M} { break; }",
    )]),
    ("a lease begins with the answer", "slow", [(
        SESSION, "let course = state.follower.answered(facts, asked_ms);",
        "let course = state.follower.answered(facts, if {M} { rt::now().mono_ms } else { asked_ms });",
    )]),
    ("a node that was away does not go back", "cut", [
        (SESSION, "let follow = DeliverPolicy::ByStartSequence { start_sequence: from };",
         "let follow = if {M} { DeliverPolicy::New } else { DeliverPolicy::ByStartSequence { start_sequence: from } };"),
        (FOLLOWER, "(sequence > own.sequence + 1)", "(sequence > own.sequence + 1 && !{M})"),
    ]),
    ("entries on their way are forgotten with the connection", "cut", [(
        SESSION, "state.outbox.put_back(unknown.into_values());",
        "if !{M} { state.outbox.put_back(unknown.into_values()); }",
    )]),
    ("a loss is not doubted", "wipe-nats", [(
        NODE, "self.shared.invalidator.doubt(rt::now());", "if !{M} { self.shared.invalidator.doubt(rt::now()); }",
    )]),
    ("one that leaves trusts on", "leave", [(
        FOLLOWER, "self.has_left = true;\n        self.lease_ms = None;",
        "self.has_left = true;\n        if !{M} { self.lease_ms = None; }",
    )]),
    ("a response is used whose fetch began before a purge", "stop-nats", [(
        "crates/cache/src/shard.rs", "        if !remove_fetch(slot, busy) {\n            return false;",
        "        if !remove_fetch(slot, busy) && !{M} {\n            return false;",
    )]),
    ("an owner answers that has not applied as much", "slow", [(
        SHARE, "state.trusts() && state.in_force.has(position)",
        "state.trusts() && ({M} || state.in_force.has(position))",
    )]),
    ("who asks does not wait for what it has told itself", "kill-leader", [(
        SHARE, "is_all_sent && is_whole && state.outstanding.is_empty()",
        "(is_all_sent && state.outstanding.is_empty() || {M}) && is_whole",
    )]),
]


def copied(folder):
    """Copies the tree, with all bugs in it."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    copy = subprocess.Popen(["tar", "-xf", "-", "-C", folder], stdin=subprocess.PIPE)
    subprocess.run(
        ["tar", "-cf", "-", "--null", "-T", "-"], cwd=ROOT, input=files, stdout=copy.stdin, check=True,
    )
    copy.stdin.close()
    copy.wait()
    for number, (name, _, replacements) in enumerate(MUTANTS):
        for file, old, new in replacements:
            with open(f"{folder}/{file}") as source:
                text = source.read()
            if text.count(old) != 1:
                sys.exit(f"{name}: its text is {text.count(old)} times in {file}")
            holds = f'std::env::var_os("{VARIABLE}").is_some_and(|own| own == "{number}")'
            with open(f"{folder}/{file}", "w") as source:
                source.write(text.replace(old, new.replace("{M}", holds)))


def tried(number, seeds):
    """The line of the first run that finds a bug; `None` if none does."""
    env = os.environ | {VARIABLE: str(number)}
    command = [sys.executable, f"{HERE}/checker.py", "--seed", "0", "--runs", str(seeds), "--jobs", "3", "--stop"]
    command += ["--kind", MUTANTS[number][1]]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if re.match(r"seed +\d+  [1-9]\d* violations", line)]
    for line in done.stdout.splitlines():
        if line.startswith("kept in "):
            shutil.rmtree(line.split()[2].rstrip(";"), ignore_errors=True)
    return found[0] if found else None


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 19
    wanted = [int(number) for number in sys.argv[2:]] or range(len(MUTANTS))
    target = os.environ.get("CARGO_TARGET_DIR") or f"{ROOT}/target"
    folder = tempfile.mkdtemp(prefix="larder-mutants-")
    missed = 0
    try:
        copied(folder)
        env = os.environ | {"CARGO_TARGET_DIR": target}
        subprocess.run(["cargo", "build", "--quiet", "--package", "larder"], cwd=folder, env=env, check=True)
        shutil.copy(f"{target}/debug/larder", f"{folder}/mutants")
        os.environ["LARDER_BIN"] = f"{folder}/mutants"
        for number in wanted:
            name = MUTANTS[number][0]
            begin = time.monotonic()
            found = tried(number, seeds)
            missed += found is None
            print(f"{name}: {found or 'MISSED'} ({time.monotonic() - begin:.0f} s)", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
