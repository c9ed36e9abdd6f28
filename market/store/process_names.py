"""The name by which a process signs what it writes, so that others can tell whether it still lives."""

import os
import socket
import uuid
from pathlib import Path

known_rules = 1
"""The newest rules of signals that this process knows; handed down."""


def own_name() -> str:
    """Another one each time."""
    return name_of(os.getpid())


def name_of(pid: int) -> str:
    mark = f"{_namespace()}.{uuid.uuid4().hex[:8]}.{_started(pid)}"
    return f"{socket.gethostname()}:{pid}:{mark}.{known_rules}"


def rules_of(name: str) -> int:
    """Names that an earlier version gave do not tell."""
    *_, rules = (*name.rpartition(":")[2].split("."), "", "", "")[:4]
    return int(rules or 1)


def place_of(name: str) -> str:
    """As an operator looks for it."""
    host, pid, _ = name.rsplit(":", 2)
    return f"process {pid} on {host}"


def is_alive(name: str) -> bool | None:
    """A process of this machine that is no more needs no waiting for; None where nobody here can say."""
    if not name:
        return None
    host, pid, mark = name.rsplit(":", 2)
    # A name that an earlier version gave does not tell when the process was started.
    namespace, _, started = (*mark.split("."), "", "")[:3]
    # Containers may share a host's name, and each counts its processes by itself.
    if host != socket.gethostname() or not namespace or namespace != _namespace() or int(pid) == os.getpid():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # Another process may have got its number since.
    return "" in (started, found := _started(int(pid))) or started == found


def _namespace() -> str:
    """In which process ids mean the same as here; empty where nobody can say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When, in ticks of the kernel since the machine was started; empty where nobody can say."""
    try:
        # The name of the program, in parentheses, may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
