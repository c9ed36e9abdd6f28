"""Debian's nginx with a configuration of ours, on the server's core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.nightly.benchmarks.configurations import fill
from tests.programs.services import free_port

from .places import HERE, NGINX_MODULES, PLACE
from .processes import children, running

Ports = tuple[int, int, tuple[int, ...]]


@contextmanager
def nginx(name: str, directory: Path, words: Mapping[str, object]) -> Iterator[Ports]:
    """Yields the port of clients, that of ticks, and the workers."""
    port, tick_port = free_port(), free_port()
    ports = {"CLIENT_PORT": port, "TICK_PORT": tick_port}
    places = {"DIRECTORY": PLACE, "MODULES": NGINX_MODULES}
    filled = fill(HERE / "peers" / name, directory, {**ports, **places, **words})
    log = directory / "nginx.log"
    with running(["nginx", "-p", str(directory), "-c", str(filled)], log, [port]) as pid:
        yield port, tick_port, tuple(children(pid))
