"""Frames go straight to the numbers of sockets, and a number belongs to another as soon as it is given back:
none ever goes to a number that is not its connection's any more."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.programs.services import free_port
from tests.reliability.clients.restless import ENDS, Restless
from tests.reliability.conftest import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import ROOT, Installation, Process, stop, tied, wait_until_healthy
from tests.reliability.services.stream_services import StreamService

SYMBOLS = [f"NUMBER{number}" for number in range(8)]
TICKS_A_SECOND, WORKERS, VISITS, SEEN = 200, 20, 10, 500
# The test's own connection for asking, and one more of its kind.
SPARE = 2
pytestmark = pytest.mark.usefixtures("rows")


class Counted(StreamService):
    """A service that counts what goes straight to a socket, and what would go to the wrong one."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation, SYMBOLS)
        self._counts = installation.directory / "counts.json"

    @contextmanager
    def serving(self, **changes: str) -> Iterator[None]:
        log = self.installation.directory / "counted.log"
        port = free_port()
        environment = self.installation.environment(
            COUNTS=str(self._counts), DJANGO_SETTINGS_MODULE="config.settings", **changes
        )
        with log.open("wb") as out:
            command = tied("-m", "tests.reliability.streams.serve_counted", "--port", str(port))
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
        self.servers.append(Process(port, process.pid, log))
        try:
            wait_until_healthy(process, self.servers[0])
            wait_until(lambda: self.push(self.make_ticks(SYMBOLS)))
            yield
        finally:
            stop(process)

    @property
    def sockets(self) -> int:
        """Of the process, whoever they belong to."""
        place, found = Path(f"/proc/{self.servers[0].pid}/fd"), 0
        for link in place.iterdir():
            with suppress(FileNotFoundError):
                found += link.readlink().name.startswith("socket:")
        return found

    @property
    def counts(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(Path(self._counts).read_text())
        return found


class Storm:
    """Until enough of everything was seen."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.foreign: list[bytes] = []

    def blow(self, service: Counted, key: str, seed: int, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            restless = Restless(service.servers[0].port, key, SYMBOLS, seed)
            asyncio.run(restless.run(WORKERS, VISITS))
            self.done += restless.done
            self.foreign += restless.foreign
            seed += 1


@pytest.mark.row("63, sockets' numbers", "no frame sent to another socket, nothing left behind")
def test_no_frame_is_sent_to_a_reused_socket_number(embedded: Installation, tell: Tell, seed: int) -> None:
    check(embedded, tell, seed, SEEN)


def check(embedded: Installation, tell: Tell, seed: int, frames: int) -> None:
    """Over so many frames at least."""
    service, storm = Counted(embedded), Storm()
    key = service.make_key()
    with service.serving(), Flow(service, TICKS_A_SECOND) as flow:
        before = service.sockets
        storm.blow(
            service,
            key,
            seed,
            lambda: service.counts["direct"] > frames and all(storm.done[how] for how in (*ENDS, "http")),
        )
        flow.stop()
        counts = service.counts
        # Row 63: whoever went has left nothing behind.
        wait_until(lambda: service.sockets <= before + SPARE)
        wait_until(lambda: service.open_streams(key) == 0)
    ways = ", ".join(f"{how} {storm.done[how]:,}" for how in (*ENDS, "http"))
    tell(
        f"{counts['direct']:,} frames sent directly: {counts['wrong']} to the wrong socket,"
        f" {len(storm.foreign)} received by the wrong client"
    )
    tell(f"ended by {ways}")
    assert (counts["wrong"], storm.foreign) == (0, [])


@pytest.mark.row("sockets' numbers", "the control sees hundreds")
def test_control_without_notice_of_closed_sockets_frames_go_astray(
    embedded: Installation, tell: Tell, seed: int
) -> None:
    service = Counted(embedded)
    key = service.make_key()
    with service.serving(NOTICE="0"), Flow(service, TICKS_A_SECOND):
        Storm().blow(service, key, seed, lambda: service.counts["wrong"] >= SEEN)
        counts = service.counts
    tell(f"{counts['direct']:,} frames sent directly, {counts['wrong']:,} of them to the wrong socket")
