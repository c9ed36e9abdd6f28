from __future__ import annotations

import errno
import socket

from django.core.management.base import CommandError

BACKLOG = 2048
UNREAD_MS = 60_000
# The kernel doubles it. Clients have little to say, and what is refused is not taken in before.
RECEIVE_BUFFER_BYTES = 32 * 1024


def take_port(host: str, port: int) -> socket.socket:
    """Listen before anything else is done, so that a taken port costs nobody a minute of preparation."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this and what follows.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # One whose client never reads would outlive its own close.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
    try:
        listener.bind((host.strip("[]"), port))
    except OverflowError:
        raise CommandError(f"{port} is no port; choose one up to 65535.") from None
    except OSError as error:
        listener.close()
        raise CommandError(_sentence(error, host, port)) from None
    return listener


def _sentence(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken. Stop what uses it, or choose another: PORT={port + 1} make run"
    if error.errno == errno.EACCES:
        return f"Port {port} is for the system. Choose one above 1023: PORT=8000 make run"
    return f"Cannot listen on {host}, port {port}: {error.strerror or error}."
