"""Tells systemd, if it started this process with Type=notify, that the service is ready."""

import socket
from contextlib import suppress

from django.conf import settings


def tell_ready() -> None:
    """Called again, it changes nothing."""
    path = settings.NOTIFY_SOCKET
    if not path:
        return
    # A name that begins with @ is no file: the kernel has it with a zero byte instead.
    address = f"\0{path[1:]}" if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd, suppress(OSError):
        to_systemd.sendto(b"READY=1", address)
