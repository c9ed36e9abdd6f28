"""The load client would notice what is lost, what is another's, and what comes twice."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from tests.nightly.benchmarks.processes import running
from tests.nightly.benchmarks.streams.load import Load
from tests.nightly.benchmarks.streams.places import GCC, HERE
from tests.patience import PATIENCE_S
from tests.programs.services import free_port

# In CI it must be there: a test that is left out shows nothing.
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None and not os.environ.get("CI"), reason="apt-get install gcc libc6-dev"
)
Times = Callable[[str, bool], int]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built")
    sources = sorted((HERE / "client").glob("*.c"))
    subprocess.run([*GCC, "-Werror", *sources, "-o", place / "load"], check=True)
    subprocess.run([*GCC, "-Werror", HERE / "peers" / "limit.c", "-o", place / "limit"], check=True)
    return place


def load(built: Path, port: int, tick_port: int, **options: float) -> Load:
    usual = {"port": port, "tick_port": tick_port, "own": 10, "seconds": 0.2, "patience": PATIENCE_S}
    everything = usual | options
    words = [f"{name}={value}" for name, value in everything.items()]
    done = subprocess.run([built / "load", *words], capture_output=True, timeout=PATIENCE_S, check=True)
    return msgspec.json.decode(done.stdout, type=Load)


@needs_gcc
@pytest.mark.parametrize("how", ["send", "join"])
def test_what_c_sends_comes_whole_and_to_whom_it_is_due(built: Path, tmp_path: Path, how: str) -> None:
    ports = free_port(), free_port()
    with running([str(built / "limit"), *map(str, ports), how], tmp_path / "log", ports):
        seen = load(built, *ports, clients=50, window=8, seconds=1, hold=1)

    assert (seen.missing, seen.wrong, seen.ended) == (0, 0, 0)
    assert seen.messages_per_s > 0
    assert 0 < seen.p50_ms <= seen.p99_ms


@needs_gcc
@pytest.mark.parametrize(
    ("times", "fault"),
    [
        (lambda tick, is_theirs: is_theirs, ""),
        (lambda tick, is_theirs: 1, "wrong"),
        (lambda tick, is_theirs: 2 * is_theirs, "wrong"),
        (lambda tick, is_theirs: is_theirs and "SYM007" not in tick, "missing"),
    ],
    ids=["what is theirs", "to everybody", "twice", "but one symbol"],
)
def test_the_client_notices_a_fault(built: Path, times: Times, fault: str) -> None:
    with faulty_server(times) as ports:
        # What never comes is waited for in vain, so for a moment only: later would be missing too.
        options = {"patience": 1} if fault == "missing" else {}
        seen = load(built, *ports, clients=20, rate=500, replies=1, **options)

    assert bool(seen.wrong) == (fault == "wrong")
    assert bool(seen.missing) == (fault == "missing")


@contextmanager
def faulty_server(times: Times) -> Iterator[tuple[int, int]]:
    """Gives each tick that comes at its tick port so many times to each client."""
    symbols: dict[ServerConnection, set[str]] = {}

    def hear(client: ServerConnection) -> None:
        symbols[client] = set(json.loads(client.recv())["symbols"])
        client.send("{}")
        with suppress(ConnectionClosed):
            for _ in client:
                pass

    def publish(tick_port: socket.socket) -> None:
        with tick_port.accept()[0] as source, source.makefile() as lines:
            for line in lines:
                for client, wanted in symbols.items():
                    # Who has all that was due to it goes.
                    with suppress(ConnectionClosed):
                        for _ in range(times(line, line[11:17] in wanted)):
                            client.send(line.rstrip())

    with socket.create_server(("127.0.0.1", 0)) as tick_port, serve(hear, "127.0.0.1", 0) as server:
        threads = [
            threading.Thread(target=server.serve_forever),
            threading.Thread(target=publish, args=(tick_port,)),
        ]
        for thread in threads:
            thread.start()
        yield server.socket.getsockname()[1], tick_port.getsockname()[1]
        server.shutdown()
        for thread in threads:
            thread.join(PATIENCE_S)
