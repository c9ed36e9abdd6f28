"""Rows 43 and 44: many connections that say nothing, and a limit of open files that they would reach."""

from __future__ import annotations

import json
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker
from websockets.sync.client import connect as open_socket

from tests.patience import PATIENCE_S, wait_until
from tests.programs.debian import require_debian
from tests.reliability.clients.measures import rss_kib
from tests.reliability.clients.strangers import ask, connect, connections, is_open
from tests.reliability.fixtures import Tell, longer
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.wires import handshake

PER_ADDRESS = 20
FEW_FILES, SPARE_FILES = 256, 1_000
SILENT, SLOW, SLOW_A_SECOND = longer(3_000, 10_000), longer(500, 2_000), 200
# Besides what is promised: they are looked at now and then, and this machine does other things.
LATE_S = 15
CROWD, LEGIT = "127.0.0.9", "127.0.0.200"
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture
def capped(embedded: Installation) -> Iterator[Process]:
    most = str(PER_ADDRESS)
    with embedded.web_process(CONNECTIONS_PER_ADDRESS=most, CONNECTIONS_CAP_LOOPBACK="1") as server:
        yield server


@pytest.mark.row("44", "exactly the cap per address; other addresses are unaffected")
def test_connections_of_one_address_are_capped_without_affecting_others(capped: Process, tell: Tell) -> None:
    with connections(capped.port, PER_ADDRESS - 1, [CROWD]), connect(capped.port, CROWD) as last:
        assert ask(last) == 200
        with connect(capped.port, CROWD) as beyond:
            answer = beyond.recv(65536)
        with connect(capped.port, LEGIT) as other:
            assert ask(other) == 200
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    tell(f"{PER_ADDRESS} of {PER_ADDRESS + 1} admitted; the next got {error['status']} {error['code']}")
    assert (error["status"], error["code"], error["max"]) == (429, "too_many_connections", PER_ADDRESS)
    assert "CONNECTIONS_PER_ADDRESS" in capped.log.read_text()


@pytest.mark.row("44", "a place is free again when its connection ends")
def test_ended_connections_and_streams_free_their_places(capped: Process) -> None:
    def has_room() -> bool:
        with connect(capped.port, CROWD) as client:
            return ask(client) == 200

    with (
        connections(capped.port, PER_ADDRESS - 1, [CROWD]),
        connect(capped.port, CROWD) as stream,
    ):
        stream.sendall(handshake(path="/ws/market"))
        assert b" 101 " in stream.recv(65536)
        wait_until(lambda: not has_room())
        stream.close()
        wait_until(has_room)


@pytest.mark.row(
    "44",
    "beside 3,000 silent connections (10,000 in the full run), at least 99% of others are "
    "served; at most 200 MB more memory",
)
def test_silent_connections_leave_room_for_others(capped: Process, tell: Tell) -> None:
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
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, ["SCARCE"]) as running:
        yield running


def serves(server: Process) -> bool:
    with connect(server.port) as client:
        return ask(client) == 200


@pytest.mark.row(
    "44",
    "with 256 file descriptors, newcomers are served, authenticated clients stay, and one line is logged",
)
def test_beyond_the_limit_of_open_files_the_oldest_anonymous_connections_close(
    service: StreamService, tell: Tell
) -> None:
    server, key = service.servers[0], service.make_key()
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES))
    with (
        open_socket(f"ws://127.0.0.1:{server.port}/ws/market", compression=None) as stream,
        connect(server.port) as known,
    ):
        stream.send(json.dumps({"action": "subscribe", "symbols": ["SCARCE"], "api_key": key}))
        assert json.loads(stream.recv(PATIENCE_S))["type"] == "subscribed"
        assert ask(known, "/api/symbols", f"X-API-Key: {key}") == 200
        with connections(server.port, 5 * FEW_FILES) as silent:
            # It looks at its limit twice a second. Somebody may be lucky before.
            wait_until(lambda: "LimitNOFILE" in server.log.read_text())
            wait_until(lambda: serves(server))
            statuses = []
            for _ in range(20):
                with connect(server.port) as client:
                    statuses.append(ask(client))
            assert ask(known, "/api/symbols", f"X-API-Key: {key}") == 200
            (tick,) = service.tick("SCARCE")
            assert json.loads(stream.recv(PATIENCE_S))["bid"] == tick["bid"]
            still_open = sum(map(is_open, silent))
    said = server.log.read_text()
    tell(f"{statuses.count(200)} of 20 served, {still_open} of {len(silent)} silent ones still open")
    assert statuses == [200] * 20
    assert still_open < FEW_FILES
    assert "LimitNOFILE" in said
    assert "Traceback" not in said


@pytest.fixture
def server(embedded: Installation) -> Iterator[Process]:
    with embedded.web_process() as running:
        yield running


@pytest.mark.row(
    "43", "2,000: the service holds them <= 10/30 s, or idle 75 s, and 15 s more; available 100 % of probes"
)
@pytest.mark.full
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
    opened_in_s, before = SLOW / SLOW_A_SECOND, sockets_of(server.pid)
    held, probes = [0], []
    with (tmp_path / "slow.log").open("wb") as out:
        attack = subprocess.Popen(command, stdout=out, stderr=out, cwd=tmp_path)
    began_at = time.monotonic()
    try:
        # Two may be probes that have just been answered.
        while held[-1] > 2 or time.monotonic() - began_at < opened_in_s:
            assert time.monotonic() - began_at < PATIENCE_S
            with connect(server.port) as client:
                probes.append(ask(client))
            held.append(sockets_of(server.pid) - before)
            time.sleep(0.2)
    finally:
        attack.kill()
        attack.wait()
    ended_after_s = time.monotonic() - began_at
    tell(f"{probes.count(200)} of {len(probes)} probes served, {max(held):,} held at once")
    tell(f"all {SLOW:,}, opened in {opened_in_s:.0f} s, gone after {ended_after_s:.0f} s")
    assert set(probes) == {200}
    assert max(held) > SLOW / 4
    assert ended_after_s <= opened_in_s + life_s + LATE_S


def sockets_of(pid: int) -> int:
    """How many it has open."""
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(entry.readlink()).startswith("socket:")
    return found
