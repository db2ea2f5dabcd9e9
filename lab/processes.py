"""Processes that the lab starts: where they run, what they take, and how they end.

CPU time and memory are those of a whole process tree, read from /proc. A tree can be held to some memory by a
control group, of either version. Everything is ended by its process id.
"""

import os
import signal
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))
PINNED = len(CORES) > 1
_GROUPS = "/sys/fs/cgroup"


def pinned(core, command):
    """The command on one core, counted from 0, or on a list of them; as it is on a machine that has only one."""
    cores = core if isinstance(core, list) else [core]
    names = ",".join(str(CORES[at]) for at in cores if at < len(CORES))
    return ["taskset", "-c", names, *command] if PINNED else command


def free_ports(number):
    """Ports of 127.0.0.1 that are free now, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [at.getsockname()[1] for at in sockets]
    for at in sockets:
        at.close()
    return ports


def stat(pid):
    """The fields of /proc/PID/stat after the command's name."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def tree(pid):
    """`pid` and its descendants, each with the moment of its start, which no reused pid shares."""
    children, started = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = stat(entry)
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry))
        started[int(entry)] = fields[19]
    found, queue = {}, [pid]
    while queue:
        at = queue.pop()
        if at in started:
            found[at] = started[at]
        queue += children.get(at, [])
    return found


def cpu_ticks(pid):
    """User and system time of a process tree, and of those of its processes that have ended."""
    ticks = 0
    for at in tree(pid):
        try:
            ticks += sum(map(int, stat(at)[11:15]))
        except OSError:
            pass
    return ticks


def memory_bytes(pid):
    """Memory of a process tree; what several of its processes share is counted once."""
    total = 0
    for at in tree(pid):
        try:
            with open(f"/proc/{at}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def end(process, patience=10):
    """Ends a process, then what is left of its descendants."""
    family = tree(process.pid)
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid, started in family.items():
        try:
            if stat(pid)[19] == started:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def started(command, port, log, core=None, env=None):
    """A server that listens at its port, on a core if one is named; its output is appended to `log`."""
    with open(log, "ab") as out:
        process = subprocess.Popen(
            command if core is None else pinned(core, command),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True,
        )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return process
        except OSError:
            time.sleep(0.05)
    end(process)
    with open(log, errors="replace") as text:
        raise RuntimeError(f"{command[0]}: nobody listens: {' '.join(text.read().split())[-400:]}")


class MemoryGroup:
    """A control group whose processes together get no more than some memory, their page cache included."""

    def __init__(self, name, size):
        two = os.path.exists(f"{_GROUPS}/cgroup.controllers")
        self.folder = f"{_GROUPS}/{'' if two else 'memory/'}larder-lab-{os.getpid()}-{name}"
        if two:
            with open(f"{_GROUPS}/cgroup.subtree_control", "w") as file:
                file.write("+memory")
        os.mkdir(self.folder)
        with open(f"{self.folder}/{'memory.max' if two else 'memory.limit_in_bytes'}", "w") as file:
            file.write(str(size))
        self._peak = f"{self.folder}/{'memory.peak' if two else 'memory.max_usage_in_bytes'}"

    def within(self, command):
        """The command, begun inside the group."""
        enter = f'echo $$ >{self.folder}/cgroup.procs && exec "$@"'
        return ["sh", "-c", enter, "sh", *command]

    def peak_bytes(self):
        """The most that was taken at once."""
        with open(self._peak) as file:
            return int(file.read())

    def remove(self):
        """Removes the group once its processes are gone."""
        for _ in range(50):
            try:
                os.rmdir(self.folder)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)
