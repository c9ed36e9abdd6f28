"""Row 59: everything stands still for a while, and goes on unaware of it. Old ticks are never new."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.connection import Connection

from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.subscribed import asking
from tests.reliability.fixtures import Tell
from tests.reliability.services.engine_processes import writer_of
from tests.reliability.services.frozen import frozen, is_stopped
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, Tick, streaming

SYMBOL = "FROZEN"
FROZEN_S = 60.0
# A tick this old says so beforehand, or its client is gone.
OLD_MS = 5_000
STALE, LIVE = "stale", "live"
pytestmark = pytest.mark.row("59", "no price older than 5 s without a mark, nothing lost without notice")


class Heard(NamedTuple):
    at_ms: int
    frame: dict[str, Any]

    @property
    def code(self) -> str:
        """Of a notice; a gap is one too."""
        return str(self.frame.get("code", STALE if self.frame.get("type") == "gap" else ""))


class Listener:
    """Until the stack is left."""

    def __init__(self, stack: ExitStack, port: int, key: str, symbol: str = SYMBOL) -> None:
        self.heard: list[Heard] = []
        source = stack.enter_context(asking(port, key, [symbol], features=["seq"]))
        self._thread = threading.Thread(target=self._listen, args=(source,), daemon=True)
        self._thread.start()

    def _listen(self, source: Connection) -> None:
        with suppress(WebSocketException):
            for text in source:
                self.heard.append(Heard(time.time_ns() // 1_000_000, json.loads(text)))

    @property
    def ticks(self) -> list[Heard]:
        return [heard for heard in self.heard if "bid" in heard.frame]

    @property
    def codes(self) -> list[str]:
        return [heard.code for heard in self.heard if heard.code]

    @property
    def is_dropped(self) -> bool:
        return not self._thread.is_alive()


class Whole(NamedTuple):
    """A service with all that it runs on."""

    service: StreamService
    pids: list[int]
    key: str
    listener: Listener

    def tick(self, count: int = 1) -> list[Tick]:
        """And wait until it was heard."""
        ticks = self.service.tick(SYMBOL, count)
        bid = ticks[-1]["bid"]
        wait_until(lambda: any(heard.frame["bid"] == bid for heard in self.listener.ticks))
        return ticks


def unmarked(heard: Sequence[Heard]) -> list[Heard]:
    """Ticks that were old when they came, of clients who had not been told at a later time to expect such."""
    found, source_ms = [], 0
    for each in heard:
        if each.code == STALE:
            source_ms = each.frame["time"]
        elif (
            "bid" in each.frame
            and each.at_ms - each.frame["time"] > OLD_MS
            and each.frame["time"] > source_ms
        ):
            found.append(each)
    return found


@contextmanager
def installed(mode: str, directory: Path, embedded: Installation) -> Iterator[tuple[Installation, list[int]]]:
    """With the processes of its servers."""
    if mode == "embedded":
        yield embedded, []
        return
    database, redis = PrivatePostgres(directory), PrivateRedis(directory)
    with database.running() as postmaster, redis.running():
        with redis.client as client:
            pid = client.info("server")["process_id"]
        yield Installation(directory, database.url, redis.url), [pid, postmaster]


@pytest.fixture(params=["embedded", "scaled"])
def whole(request: pytest.FixtureRequest, tmp_path: Path, embedded: Installation) -> Iterator[Whole]:
    with ExitStack() as stack:
        installation, servers = stack.enter_context(installed(request.param, tmp_path, embedded))
        service = stack.enter_context(streaming(installation, 1, [SYMBOL]))
        pids = [service.servers[0].pid, *([writer_of(installation)] if servers else []), *servers]
        key = service.make_key(requests_per_minute=1_000_000)
        listener = Listener(stack, service.servers[0].port, key)
        wait_until(lambda: bool(listener.heard))
        running = Whole(service, pids, key, listener)
        running.tick()
        yield running


def volume(whole: Whole) -> float:
    """Of all minutes: as many as there were ticks."""
    answer = whole.service.servers[0].ask(f"/api/market/{SYMBOL}?timeframe=1m", whole.key)
    assert answer.status_code == 200, answer.text
    return float(sum(candle["volume"] for candle in answer.json()["ohlcv"]))


def frozen_for(whole: Whole, seconds: float) -> tuple[list[Tick], bool]:
    """A tick that somebody sends meanwhile, and whether it was taken in the end."""
    ticks = whole.service.make_ticks([SYMBOL])
    taken: list[bool] = []
    pushing = threading.Thread(target=lambda: taken.append(whole.service.push(ticks, PATIENCE_S)))
    with frozen(whole.pids):
        wait_until(lambda: all(is_stopped(pid) for pid in whole.pids))
        pushing.start()
        time.sleep(seconds)
    pushing.join()
    return ticks, taken == [True]


def test_after_a_frozen_machine_thaws_no_old_tick_is_shown_as_fresh(whole: Whole, tell: Tell) -> None:
    before = volume(whole)
    old, is_taken = frozen_for(whole, FROZEN_S)
    wait_until(lambda: whole.listener.is_dropped or LIVE in whole.listener.codes)
    if not whole.listener.is_dropped:
        whole.tick()
    else:
        whole.service.tick(SYMBOL)
    heard, dropped = whole.listener.ticks, whole.listener.is_dropped
    wait_until(lambda: volume(whole) == before + 1 + is_taken)
    tell(f"frozen for {FROZEN_S:.0f} s: {len(unmarked(whole.listener.heard))} old ticks unmarked")
    tell(f"told {whole.listener.codes}, dropped {dropped}; the tick of meanwhile taken: {is_taken}")
    assert unmarked(whole.listener.heard) == []
    assert dropped or whole.listener.codes[0] == STALE
    # What came late says when it was.
    assert all(each.frame["time"] == old[0]["time"] for each in heard if each.frame["bid"] == old[0]["bid"])
    assert missed(heard) == 0
    quote = whole.service.servers[0].ask(f"/api/market/{SYMBOL}/quote", whole.key)
    assert quote.status_code == 200


def missed(ticks: Sequence[Heard]) -> int:
    numbers = [each.frame["seq"] for each in ticks]
    return len(set(range(numbers[0], numbers[-1])) - set(numbers)) + len(numbers) - len(set(numbers))


def test_a_frozen_process_says_so_before_it_passes_on_what_arrived_meanwhile(
    scaled: Installation, tell: Tell
) -> None:
    with streaming(scaled, 2, ["THAWED"]) as service, ExitStack() as stack:
        listener = Listener(stack, service.servers[1].port, service.make_key(), "THAWED")
        wait_until(lambda: bool(listener.heard))
        service.tick("THAWED")
        with frozen([service.servers[1].pid]):
            ends_at = time.monotonic() + FROZEN_S
            while time.monotonic() < ends_at:
                service.tick("THAWED", 5)
                time.sleep(0.1)
        last = service.tick("THAWED")[-1]["bid"]
        wait_until(lambda: any(heard.frame["bid"] == last for heard in listener.ticks))
    old = [heard for heard in listener.ticks if heard.at_ms - heard.frame["time"] > OLD_MS]
    tell(f"{len(old)} old ticks, unmarked {len(unmarked(listener.heard))}, missed {missed(listener.ticks)}")
    assert old != []
    assert unmarked(listener.heard) == []
    assert missed(listener.ticks) == 0
