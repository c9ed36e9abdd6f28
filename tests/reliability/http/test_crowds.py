"""Row 44: many connections that say nothing, and a limit of open files that they would reach."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator

import pytest

from tests.contract.streams.client import next_frame
from tests.patience import wait_until
from tests.reliability.clients.strangers import ask, connect, connections, is_open
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.fixtures import Tell, sqlite_in
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.wires import handshake

PER_ADDRESS = 20
FEW_FILES = 256
CROWD, LEGIT = "127.0.0.9", "127.0.0.200"


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    installation, most = sqlite_in(tmp_path_factory.mktemp("capped")), str(PER_ADDRESS)
    with installation.web_process(CONNECTIONS_PER_ADDRESS=most, CONNECTIONS_CAP_LOOPBACK="1") as server:
        yield server


@pytest.mark.row("44", "exactly the cap per address; other addresses are unaffected; ended ones free a place")
def test_connections_and_streams_of_one_address_are_capped_without_affecting_others(
    capped: Process, tell: Tell
) -> None:
    with connections(capped.port, PER_ADDRESS - 1, [CROWD]), connect(capped.port, CROWD) as last:
        last.sendall(handshake(path="/ws/market"))
        assert b" 101 " in last.recv(65536)
        with connect(capped.port, CROWD) as beyond:
            answer = beyond.recv(65536)
        assert serves(capped, LEGIT)
        last.close()
        wait_until(lambda: serves(capped, CROWD))
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    tell(f"{PER_ADDRESS} of {PER_ADDRESS + 1} admitted; the next got {error['status']} {error['code']}")
    assert (error["status"], error["code"], error["max"]) == (429, "too_many_connections", PER_ADDRESS)
    assert "CONNECTIONS_PER_ADDRESS" in capped.log.read_text()


def serves(server: Process, address: str = "127.0.0.1") -> bool:
    with connect(server.port, address) as client:
        return ask(client) == 200


@pytest.fixture
def service(embedded_for_module: Installation) -> Iterator[StreamService]:
    with streaming(embedded_for_module, 1, ["SCARCE"]) as running:
        yield running


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
        subscribed(server.port, key, ["SCARCE"]) as (stream, _),
        connect(server.port) as known,
    ):
        assert ask(known, "/api/symbols", f"X-API-Key: {key}") == 200
        with connections(server.port, 5 * FEW_FILES) as silent:
            # It looks at its limit twice a second. Somebody may be lucky before.
            wait_until(lambda: "LimitNOFILE" in server.log.read_text())
            for _ in range(20):
                wait_until(lambda: serves(server))
            assert ask(known, "/api/symbols", f"X-API-Key: {key}") == 200
            (tick,) = service.tick("SCARCE")
            assert next_frame(stream)["bid"] == tick["bid"]
            still_open = sum(map(is_open, silent))
    said = server.log.read_text()
    tell(f"20 served, {still_open} of {len(silent)} silent ones still open")
    assert still_open < FEW_FILES
    assert "LimitNOFILE" in said
    assert "Traceback" not in said
