"""The name by which a process signs what it writes, so that others can tell whether it still lives."""

import os
import socket
import uuid
from pathlib import Path


def own_name() -> str:
    """Another one each time."""
    return f"{socket.gethostname()}:{os.getpid()}:{_namespace()}.{uuid.uuid4().hex[:8]}"


def is_alive(name: str) -> bool | None:
    """A process of this machine that is no more needs no waiting for; None where nobody here can say."""
    if not name:
        return None
    host, pid, mark = name.rsplit(":", 2)
    namespace = mark.partition(".")[0]
    # Containers may share a host's name, and each counts its processes by itself.
    if host != socket.gethostname() or not namespace or namespace != _namespace() or int(pid) == os.getpid():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _namespace() -> str:
    """In which process ids mean the same as here; empty where nobody can say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
