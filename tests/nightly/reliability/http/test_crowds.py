"""Rows 43 and 44: how much thousands of silent connections cost, and how long slow clients are held."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.programs.debian import require_debian
from tests.reliability.clients.measures import rss_kib, sockets
from tests.reliability.clients.strangers import ask, connect, connections
from tests.reliability.fixtures import Tell
from tests.reliability.http.test_crowds import LEGIT, capped
from tests.reliability.services.processes import Installation, Process, logged

SPARE_FILES = 1_000
SILENT, SLOW, SLOW_A_SECOND = 10_000, 2_000, 200
# Besides what is promised: they are looked at now and then, and this machine does other things.
LATE_S = 15
__all__ = ["capped"]


@pytest.mark.row(
    "44",
    "beside 10,000 silent connections, at least 99% of others are served; at most 200 MB more memory",
)
def test_silent_connections_leave_room_for_others(
    capped: Process,  # noqa: F811 - the fixture
    tell: Tell,
) -> None:
    sources = [f"127.0.1.{number}" for number in range(1, 101)]
    before = rss_kib(capped.pid)
    with open_files(SILENT + SPARE_FILES), connections(capped.port, SILENT, sources):
        statuses = []
        for _ in range(100):
            with connect(capped.port, LEGIT) as client:
                statuses.append(ask(client))
        grown_mib = (rss_kib(capped.pid) - before) / 1024
    tell(f"{statuses.count(200)} of 100 served beside {SILENT:,} silent ones; RSS +{grown_mib:.0f} MiB")
    assert statuses.count(200) >= 99
    assert grown_mib <= 200


@contextmanager
def open_files(count: int) -> Iterator[None]:
    """This process may have as many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(count, before[0]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def server(embedded: Installation) -> Iterator[Process]:
    with embedded.web_process() as running:
        yield running


@pytest.mark.row(
    "43", "2,000: the service holds them <= 10/30 s, or idle 75 s, and 15 s more; available 100 % of probes"
)
@pytest.mark.parametrize(
    ("kind", "life_s"),
    # An answer that fits into the kernel's buffers is read from there, on a connection that is idle for us.
    [("-H", 10), ("-B", 30), ("-X", 75)],
    ids=["heads", "bodies", "reading"],
)
def test_slow_clients_are_disconnected(
    server: Process, kind: str, life_s: int, tmp_path: Path, tell: Tell
) -> None:
    """Debian's slowhttptest."""
    command = [require_debian("slowhttptest"), kind, "-c", str(SLOW), "-r", str(SLOW_A_SECOND), "-i", "5"]
    command += ["-l", f"{PATIENCE_S:.0f}", "-u", f"{server.url}/docs/streams", "-x", "10"]
    command += ["-w", "512", "-y", "1024", "-n", "5", "-z", "32"]
    opened_in_s, before = SLOW / SLOW_A_SECOND, sockets(server.pid)
    held, probes = [0], []
    with logged(command, tmp_path / "slow.log", cwd=tmp_path):
        began_at = time.monotonic()
        # Two may be probes that have just been answered.
        while held[-1] > 2 or time.monotonic() - began_at < opened_in_s:
            assert time.monotonic() - began_at < PATIENCE_S
            with connect(server.port) as client:
                probes.append(ask(client))
            held.append(sockets(server.pid) - before)
            time.sleep(0.2)
    ended_after_s = time.monotonic() - began_at
    tell(f"{probes.count(200)} of {len(probes)} probes served, {max(held):,} held at once")
    tell(f"all {SLOW:,}, opened in {opened_in_s:.0f} s, gone after {ended_after_s:.0f} s")
    assert set(probes) == {200}
    assert max(held) > SLOW / 4
    assert ended_after_s <= opened_in_s + life_s + LATE_S
