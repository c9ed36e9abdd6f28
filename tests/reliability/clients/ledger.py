"""A client that loses its connection again and again, comes back with its place, and keeps what it heard."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from tests.patience import PATIENCE_S

Frame = dict[str, Any]
CUT = (WebSocketException, InvalidHandshake, OSError, EOFError)


class Ledger:
    """Of one stream; `sessions` end when the connection does."""

    def __init__(self, path: str, key: str, symbols: list[str]) -> None:
        self.path, self._key, self._symbols = path, key, symbols
        self.heard: defaultdict[str, list[Frame]] = defaultdict(list)
        self.started_after: dict[str, int] = {}
        self.sessions = self.unrecovered = 0
        self._epoch = ""
        self.is_placed = asyncio.Event()
        """Set once it knows where the numbers stand: nothing may be missed from then on."""

    async def keep_coming(self, port: int) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._session(port)
            except CUT:
                await asyncio.sleep(0.01)

    async def _session(self, port: int) -> None:
        url = f"ws://127.0.0.1:{port}{self.path}"
        async with connect(
            url, compression=None, ping_interval=None, open_timeout=PATIENCE_S, close_timeout=0.1
        ) as connection:
            message = {"action": "subscribe", "symbols": self._symbols, "api_key": self._key}
            await connection.send(json.dumps(message | self._wishes()))
            async with asyncio.timeout(PATIENCE_S):
                self._begin(json.loads(await connection.recv()))
            await self._listen(connection)

    async def _listen(self, connection: ClientConnection) -> None:
        async for text in connection:
            self._keep(json.loads(text))

    def _begin(self, reply: Frame) -> None:
        assert reply["type"] == "subscribed", reply
        self.sessions += 1
        self.unrecovered += not reply.get("recovered", True)
        self._place(reply)
        self.is_placed.set()

    def _place(self, reply: Frame) -> None:
        self._epoch = reply["epoch"]
        self.started_after = self.started_after or reply["positions"]

    def _wishes(self) -> Frame:
        if not self.is_placed.is_set():
            return {"features": ["seq"]}
        return {"features": ["seq"], "resume": {"epoch": self._epoch, "positions": self.positions}}

    def _keep(self, frame: Frame) -> None:
        self.heard[frame["symbol"]].append(frame)

    @property
    def positions(self) -> dict[str, int]:
        last = {symbol: frames[-1]["seq"] for symbol, frames in self.heard.items()}
        return self.started_after | last

    @property
    def count(self) -> int:
        return sum(map(len, self.heard.values()))

    def faults(self, source: Mapping[str, list[Frame]], field: str) -> tuple[int, int, int]:
        """Gaps, duplicates, and frames that are not what the source sent under their number."""
        gaps = duplicates = wrong = 0
        for symbol, sent in source.items():
            first = self.started_after[symbol] + 1
            numbers = [frame["seq"] for frame in self.heard[symbol]]
            gaps += len(set(range(first, first + len(sent))) - set(numbers))
            duplicates += len(numbers) - len(set(numbers))
            wrong += sum(after <= before for before, after in zip(numbers, numbers[1:], strict=False))
            wrong += sum(not 0 <= number - first < len(sent) for number in numbers)
            known = [frame for frame in self.heard[symbol] if 0 <= frame["seq"] - first < len(sent)]
            wrong += sum(frame[field] != sent[frame["seq"] - first][field] for frame in known)
        return gaps, duplicates, wrong


class SignalLedger(Ledger):
    """Signals have ids instead of numbers."""

    def __init__(self, key: str, symbols: list[str], since: str) -> None:
        super().__init__("/ws/signals", key, symbols)
        self._since = since

    def _place(self, reply: Frame) -> None:
        """It knew before."""

    def _wishes(self) -> Frame:
        return {"since": self.ids[-1] if self.ids else self._since}

    def faults_of_ids(self, sent: list[str]) -> tuple[int, int, int]:
        """The same of signals; wrong are those out of order."""
        ids = self.ids
        known = set(ids)
        is_in_order = [id_ for id_ in sent if id_ in known] == list(dict.fromkeys(ids))
        return len(set(sent) - known), len(ids) - len(known), int(not is_in_order)

    @property
    def ids(self) -> list[str]:
        return [frame["id"] for frames in self.heard.values() for frame in frames]
