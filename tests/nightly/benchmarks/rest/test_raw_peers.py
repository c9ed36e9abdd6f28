"""The peers that are programs of their own: they start, and send what ours sends."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from tests.nightly.benchmarks.packages import absent
from tests.nightly.benchmarks.servers import Peer
from tests.programs.installation import SETTINGS

from . import short_path
from .__main__ import prepare, warm_and_measure
from .agreement import Said, ask, check_agreement, check_same
from .cases import ALL, QUOTE, RECORDED
from .names import BOLT, DRF, FASTAPI, GRANIAN, NGINX, NODE, OURS, SHARED, SOCKETIFY, STARLETTE
from .servers import Servers, running

ROWS = 3
ELSEWHERE = (SHARED, FASTAPI, DRF)
"""They need Redis, or have tests of their own."""
PACKAGES = {NODE: "nodejs", NGINX: "nginx-light"}


class Running(NamedTuple):
    peers: dict[str, Peer]
    not_run: dict[str, str]
    servers: Servers

    @property
    def key(self) -> str:
        return self.servers.key


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        environment = SETTINGS | {"VAR_DIR": directory}
        servers = Servers(Path(directory), environment, prepare(environment, ROWS), None)
        with running(servers, [name for name in ALL if name not in ELSEWHERE]) as (peers, not_run):
            yield Running({peer.name: peer for peer in peers}, not_run, servers)


def test_all_run_whose_programs_are_there(started: Running) -> None:
    missing = absent({"nodejs": "node", "nginx-light": "nginx"})
    expected = {name for name, package in PACKAGES.items() if package in missing}

    assert set(started.not_run) == expected
    assert {OURS, GRANIAN, SOCKETIFY, STARLETTE, BOLT} <= set(started.peers)


def test_all_send_what_ours_sends_and_check_the_key(started: Running) -> None:
    check_agreement([*started.peers.values()], RECORDED, started.key)


def test_another_answer_is_refused(started: Running) -> None:
    expected = ask(started.peers[OURS], QUOTE.path, started.key)
    other = Said(200, expected.body.replace(b"1.08", b"1.09"), expected.headers)

    with pytest.raises(RuntimeError, match="other bytes"):
        check_same(GRANIAN, QUOTE, expected, other)


def test_an_answer_without_our_headers_is_refused(started: Running) -> None:
    ours, starlette = (ask(started.peers[name], QUOTE.path, started.key) for name in (OURS, STARLETTE))
    del starlette.headers["x-ratelimit-remaining"]

    with pytest.raises(RuntimeError, match="without x-ratelimit-remaining"):
        check_same(STARLETTE, QUOTE, ours, starlette)


def test_the_window_is_counted(started: Running) -> None:
    for name in (NODE, GRANIAN, SOCKETIFY, STARLETTE):
        if name in started.peers:
            left = [
                int(ask(started.peers[name], QUOTE.path, started.key).headers["x-ratelimit-remaining"])
                for _ in range(2)
            ]
            assert left[0] - left[1] == 1, name


def test_ours_is_asked_on_the_short_path(started: Running) -> None:
    ours = started.peers[OURS]

    with ours.awake():
        assert short_path.is_on(ours.port, QUOTE.path, started.key)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not there")
def test_processor_time_of_children_is_counted(started: Running) -> None:
    """granian serves in a child."""
    load = warm_and_measure(started.peers[GRANIAN], QUOTE, started.key, 1)

    assert 0 < load.per_cpu_second < 1_000_000
