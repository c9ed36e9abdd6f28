"""How many connections and files a process may hold open, and whether there is room for more."""

from __future__ import annotations

import errno
import os
import resource

# Beyond a million there is nothing to win, and some systems name a limit of a billion.
MOST = 1_048_576
LEAST_RESERVE, MOST_RESERVE = 32, 512


def raise_limit() -> tuple[int, int]:
    """As far as this user may. What the limit was, and what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft, soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, wanted


def open_files(was: int, now: int) -> str:
    raised = f", raised from {was:,}" if now > was else ""
    return f"Room for {now:,} open files and connections{raised}."


def limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft


def most_for_connections(of: int) -> int:
    """The rest is for databases, files and other services, which must not fail because clients came."""
    return of - min(max(of // 8, LEAST_RESERVE), MOST_RESERVE)


def are_used_up() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
