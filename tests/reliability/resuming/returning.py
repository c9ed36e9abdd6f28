"""Clients that are away while the only process of an installation ends and another starts."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.contract.streams.client import MARKET, ORDERFLOW
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.programs.services import free_port
from tests.reliability.clients.ledger import Frame
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService

SYMBOLS = ["AGAINA", "AGAINB"]
TICKS = 30


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
        url = f"ws://127.0.0.1:{port}{self._path}"
        with connect(url, compression=None, ping_interval=None, open_timeout=PATIENCE_S) as connection:
            message: dict[str, Any] = {
                "action": "subscribe",
                "symbols": SYMBOLS,
                "api_key": self._key,
                "features": ["seq"],
            }
            if self.epochs:
                message["resume"] = {"epoch": self.epochs[-1], "positions": self.positions}
            connection.send(json.dumps(message))
            reply = json.loads(connection.recv(PATIENCE_S))
            assert reply["type"] == "subscribed", reply
            self.recovered += [reply["recovered"]] if self.epochs else []
            self.epochs.append(reply["epoch"])
            self.started_after = self.started_after or reply["positions"]
            yield connection

    def hear_until(self, port: int, head: dict[str, int]) -> None:
        with self.connected(port) as connection:
            while any(self.positions[symbol] < head[symbol] for symbol in SYMBOLS):
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
            self.heard[frame["symbol"]].append(frame)

    @property
    def positions(self) -> dict[str, int]:
        return self.started_after | {symbol: frames[-1]["seq"] for symbol, frames in self.heard.items()}

    def faults(self) -> tuple[int, int]:
        """Numbers that are missing, and that came again or too late."""
        missing = again = 0
        for symbol, frames in self.heard.items():
            numbers = [self.started_after[symbol], *(frame["seq"] for frame in frames)]
            steps = [after - before for before, after in zip(numbers, numbers[1:], strict=False)]
            missing += sum(step - 1 for step in steps if step > 1)
            again += sum(step < 1 for step in steps)
        return missing, again


class Restarts:
    """Of each stream one client that hears all up to the end of each process, and one that leaves before."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self._port = installation, free_port()
        self._service = StreamService(installation, SYMBOLS)
        self._key = key = self._service.make_key()
        self.staying = [Returning(path, key) for path in (MARKET, ORDERFLOW)]
        self.leaving = [Returning(path, key) for path in (MARKET, ORDERFLOW)]
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

    def finish(self) -> None:
        """The last process: everybody hears all there is."""
        with self.installation.web_process(self._port) as server:
            self._service.servers = [server]
            wait_until(self._push)
            self.catch_up()

    def catch_up(self) -> None:
        for number, path in enumerate((MARKET, ORDERFLOW)):
            observer = Returning(path, self._key)
            with observer.connected(self._port):
                head = observer.started_after
            for client in (self.staying[number], self.leaving[number]):
                client.hear_until(self._port, head)

    def _push_many(self) -> None:
        for _ in range(TICKS):
            assert self._push()

    def _push(self) -> bool:
        ticks = self._service.make_ticks(SYMBOLS)
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
            first[symbol, frame["seq"]] != frame
            for one, other in zip(self.staying, self.leaving, strict=True)
            for first in [{(name, each["seq"]): each for name in SYMBOLS for each in one.heard[name]}]
            for symbol in SYMBOLS
            for frame in other.heard[symbol]
            if (symbol, frame["seq"]) in first
        )

    def faults(self) -> tuple[int, int]:
        missing, again = zip(*(client.faults() for client in self.clients), strict=True)
        return sum(missing), sum(again)

    def numberings(self) -> int:
        return len({epoch for client in self.clients for epoch in client.epochs})

    def unrecovered(self) -> int:
        return sum(not is_whole for client in self.clients for is_whole in client.recovered)
