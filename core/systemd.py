"""Tells systemd, if it started this process with Type=notify, that the service is ready and that it lives."""

import asyncio
import socket
from contextlib import suppress
from functools import cache

from django.conf import settings

# Signs of life in the time of a watchdog, so that one that comes late costs nothing.
SIGNS = 4


def tell_ready() -> None:
    """Called again, it changes nothing."""
    _tell(b"READY=1")


async def feed_watchdog(within_s: float) -> None:
    """Until cancelled: a process whose loop stands still for so long is killed by systemd. This is asked for
    here, because a WatchdogSec of the unit would also kill an earlier release, which feeds none."""
    _tell(b"WATCHDOG_USEC=%d" % (within_s * 1_000_000))
    while settings.NOTIFY_SOCKET:
        # Not waiting for a systemd that does not read.
        _tell(b"WATCHDOG=1", socket.MSG_DONTWAIT)
        await asyncio.sleep(within_s / SIGNS)


def _tell(what: bytes, flags: int = 0) -> None:
    path = settings.NOTIFY_SOCKET
    if not path:
        return
    # A name that begins with @ is no file: the kernel has it with a zero byte instead.
    address = f"\0{path[1:]}" if path.startswith("@") else path
    with suppress(OSError):
        _socket().sendto(what, flags, address)


@cache
def _socket() -> socket.socket:
    """Kept, because a process without a free descriptor lives too."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
