"""Row 12 over restarts of a single process: who was away gets exactly the ticks and closed candles that were
missed, or is told."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from core.clock import now_ms
from core.times import MINUTE_MS
from market.prices.candles import DAY_MS, TIMEFRAMES
from tests.contract.streams.client import CANDLES, MARKET, ORDERFLOW, Frame
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.programs.services import free_port
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService

SYMBOLS, TICKS = ["AGAINA", "AGAINB"], 30
PATHS = (MARKET, ORDERFLOW, CANDLES)
# Ticks of days that are past, a minute apart, so that nobody waits for candles. They soon pass midnight,
# where all timeframes end.
DAYS_AGO, BEFORE_MIDNIGHT = 5, 50
TERM, KILL = signal.SIGTERM, signal.SIGKILL


class Returning:
    """One client of one stream, and all that it was ever told."""

    def __init__(self, path: str, key: str) -> None:
        self._path, self._key = path, key
        self.heard: defaultdict[str, list[Frame]] = defaultdict(list)
        self.started_after: dict[str, int] = {}
        self.epochs: list[str] = []
        self.recovered: list[bool] = []

    @contextmanager
    def connected(self, port: int) -> Iterator[Connection]:
        message: dict[str, Any] = {"features": ["seq"]}
        if self._path == CANDLES:
            message["timeframes"] = list(TIMEFRAMES)
        if self.epochs:
            message["resume"] = {"epoch": self.epochs[-1], "positions": self.positions}
        with subscribed(port, self._key, SYMBOLS, self._path, **message) as (connection, reply):
            self.recovered += [reply["recovered"]] if self.epochs else []
            self.epochs.append(reply["epoch"])
            self.started_after = self.started_after or reply["positions"]
            yield connection

    def hear_until(self, port: int, head: dict[str, int]) -> None:
        with self.connected(port) as connection:
            while any(self.positions[key] < number for key, number in head.items()):
                self._keep(connection)

    def hear_to_the_end(self, port: int, is_there: threading.Event) -> None:
        """Until the server is gone."""
        with self.connected(port) as connection:
            is_there.set()
            try:
                while True:
                    self._keep(connection)
            except (ConnectionClosed, OSError):
                return

    def _keep(self, connection: Connection) -> None:
        frame = json.loads(connection.recv(PATIENCE_S))
        if "seq" in frame:
            timeframe = f"/{frame['timeframe']}" if "timeframe" in frame else ""
            self.heard[f"{frame['symbol']}{timeframe}"].append(frame)

    @property
    def positions(self) -> dict[str, int]:
        return self.started_after | {key: frames[-1]["seq"] for key, frames in self.heard.items()}

    def faults(self) -> tuple[int, int]:
        """Numbers that are missing, and that came again or too late."""
        missing = again = 0
        for key, frames in self.heard.items():
            numbers = [self.started_after[key], *(frame["seq"] for frame in frames)]
            steps = [after - before for before, after in zip(numbers, numbers[1:], strict=False)]
            missing += sum(step - 1 for step in steps if step > 1)
            again += sum(step < 1 for step in steps)
        return missing, again


class Restarts:
    """Of each stream one client that hears all up to the end of each process, and one that leaves before."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self._port = installation, free_port()
        self._service = StreamService(installation, SYMBOLS)
        self._at_ms = (now_ms() // DAY_MS - DAYS_AGO) * DAY_MS - BEFORE_MIDNIGHT * MINUTE_MS
        self._key = key = self._service.make_key(requests_per_minute=10_000)
        self.staying = [Returning(path, key) for path in PATHS]
        self.leaving = [Returning(path, key) for path in PATHS]
        self.acknowledged: defaultdict[str, list[float]] = defaultdict(list)
        """Bids by symbol."""

    @property
    def clients(self) -> list[Returning]:
        return [*self.staying, *self.leaving]

    def run(self, ends_by: signal.Signals, *, is_busy: bool = False) -> None:
        """One process, from its start to its end; the last ticks are those that half of the clients miss."""
        with interruptible(), self.installation.web_process(self._port) as server:
            self._service.servers = [server]
            wait_until(self._push)
            # Nobody resumes from the number 0, and the first tick is none of the order flow's.
            assert self._push()
            self.catch_up()
            self._push_many()
            ears, is_there = [], [threading.Event() for _ in self.staying]
            for client, event in zip(self.staying, is_there, strict=True):
                ears.append(threading.Thread(target=client.hear_to_the_end, args=(self._port, event)))
                ears[-1].start()
                assert event.wait(PATIENCE_S)
            self._push_many()
            pusher = threading.Thread(target=self._push_until_it_breaks)
            if is_busy:
                pusher.start()
                enough = len(self.acknowledged[SYMBOLS[0]]) + TICKS
                wait_until(lambda: len(self.acknowledged[SYMBOLS[0]]) > enough)
            os.kill(server.pid, ends_by)
            for thread in [*ears, *([pusher] if is_busy else [])]:
                thread.join(PATIENCE_S)

    def finish(self) -> int:
        """The last process: everybody hears all there is. How many candles REST has otherwise."""
        with self.installation.web_process(self._port) as server:
            self._service.servers = [server]
            wait_until(self._push)
            self.catch_up()
            return sum(self._unlike_rest(symbol, timeframe) for symbol in SYMBOLS for timeframe in TIMEFRAMES)

    def _unlike_rest(self, symbol: str, timeframe: str) -> int:
        path = f"/api/market/{symbol}?timeframe={timeframe}&bars=500&closed_only=true"
        stored = {bar["time"]: bar for bar in self._service.servers[0].ask(path, self._key).json()["ohlcv"]}
        frames = self.staying[-1].heard[f"{symbol}/{timeframe}"]
        sent = {frame["candle"]["time"]: frame["candle"] for frame in frames}
        since = max(min(stored, default=""), min(sent, default=""))
        return sum(stored.get(at) != sent.get(at) for at in stored.keys() | sent.keys() if at >= since)

    def catch_up(self) -> None:
        for path, *both in zip(PATHS, self.staying, self.leaving, strict=True):
            observer = Returning(path, self._key)
            with observer.connected(self._port):
                head = observer.started_after
            for client in both:
                client.hear_until(self._port, head)

    def _push_many(self) -> None:
        for _ in range(TICKS):
            assert self._push()

    def _push(self) -> bool:
        self._at_ms += MINUTE_MS
        ticks = [tick | {"time": self._at_ms} for tick in self._service.make_ticks(SYMBOLS)]
        if not self._service.push(ticks):
            return False
        for tick in ticks:
            self.acknowledged[tick["symbol"]].append(tick["bid"])
        return True

    def _push_until_it_breaks(self) -> None:
        try:
            while self._push():
                pass
        except Exception:  # noqa: BLE001 - however the end of a server says so
            return

    def lost(self) -> int:
        """Acknowledged ticks that a client of the prices was never sent, or not in their order."""
        count = 0
        for symbol, bids in self.acknowledged.items():
            for client in (self.staying[0], self.leaving[0]):
                sent = iter([frame["bid"] for frame in client.heard[symbol]])
                # The first two came before they did.
                count += sum(bid not in sent for bid in bids[2:])
        return count

    def contradictions(self) -> int:
        """Numbers under which two clients were sent different frames."""
        return sum(
            known[key, frame["seq"]] != frame
            for one, other in zip(self.staying, self.leaving, strict=True)
            for known in [{(key, each["seq"]): each for key, told in one.heard.items() for each in told}]
            for key, frames in other.heard.items()
            for frame in frames
            if (key, frame["seq"]) in known
        )

    def faults(self) -> tuple[int, int]:
        missing, again = zip(*(client.faults() for client in self.clients), strict=True)
        return sum(missing), sum(again)

    def unrecovered(self) -> int:
        return sum(not is_whole for client in self.clients for is_whole in client.recovered)


@pytest.mark.row("12", "across restarts of one process: no gaps, no duplicates, every client recovers")
def test_clients_resume_across_restarts(embedded: Installation, tell: Tell) -> None:
    check(embedded, (KILL, TERM), tell)


def check(embedded: Installation, ends: tuple[signal.Signals, ...], tell: Tell) -> None:
    restarts = Restarts(embedded)
    for ends_by in ends:
        restarts.run(ends_by, is_busy=ends_by is KILL)
    unlike_rest = restarts.finish()

    missing, again = restarts.faults()
    count = sum(len(bids) for bids in restarts.acknowledged.values())
    numberings = len({epoch for client in restarts.clients for epoch in client.epochs})
    tell(
        f"{count} ticks over {len(ends)} restarts: missing: {missing}, duplicated: {again}, "
        f"unrecovered {restarts.unrecovered()}, numberings {numberings}"
    )
    assert (missing, again, unlike_rest) == (0, 0, 0)
    assert (restarts.lost(), restarts.contradictions()) == (0, 0)
    assert (restarts.unrecovered(), numberings) == (0, 1)
    assert all(restarts.staying[-1].heard[f"{SYMBOLS[0]}/{timeframe}"] for timeframe in TIMEFRAMES)


@pytest.mark.row("12, 13", "what was tampered with is told, and never recovered in part")
def test_control_lost_journal_entries_are_reported(embedded: Installation, tell: Tell) -> None:
    restarts = Restarts(embedded)
    restarts.run(TERM)
    alter_the_last(embedded.directory)
    restarts.finish()

    missing, _ = restarts.faults()
    tell(f"missing: {missing}, not recovered: {restarts.unrecovered()}")
    # The clients that left before the last ticks.
    assert [client.recovered[-1] for client in restarts.leaving[:2]] == [False, False]
    assert missing > 0


def alter_the_last(directory: Path) -> None:
    path = sorted((directory / "journal").glob("*.kept"))[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
