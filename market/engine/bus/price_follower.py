"""The prices of a web process follow the records of the bus: at once where somebody wants them, and otherwise
when somebody does, or when too much waits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from core.clock import now_ms
from instruments.catalogue import catalogue
from market.prices.history import History
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, SeriesBegan
from market.store.checkpoints import Checkpoint
from market.store.loading import load_series

from .journal import RecordKeeper, RecordListener
from .put_off import FollowedSymbols, PutOff, PutOffRecords, WantedSymbols

NumberingListener = Callable[[str, Mapping[str, Checkpoint]], None]
"""Is given the epoch of the numbering, and where each instrument stands."""

# So long a thread waits for the loop, before it takes what is known.
AWAY_S = 1.0


class BusListener(NamedTuple):
    hear: RecordListener
    """Gets records after they were applied, and an empty list where those that came were all put off."""
    keep: RecordKeeper
    missed: NumberingListener
    followed: FollowedSymbols
    told: Callable[[bytes], None] = lambda status: None
    """Gets the engine's status where the reader was asked for it."""


class PriceFollower:
    def __init__(self, prices: Prices, listener: BusListener) -> None:
        self._prices, self._listener = prices, listener
        self.wanted, self._put_off = WantedSymbols(listener.followed), PutOffRecords()
        self._home: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def start(self) -> None:
        self._home, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._prices.before_looking = self.look

    def stop(self) -> None:
        self._prices.before_looking = None

    def look(self, symbol: str) -> None:
        """Somebody looks at it, in any thread."""
        self.wanted.look(symbol, time.monotonic())
        if symbol in self._put_off:
            if threading.get_ident() == self._thread:
                self._take_in(symbol, self._put_off.take(symbol))
            else:
                self._ask_loop()

    def follow(self, symbols: Iterable[str]) -> None:
        """A client is sent what comes of them from now on."""
        for symbol in symbols:
            self.wanted.follow(symbol, time.monotonic())
            self._take_in(symbol, self._put_off.take(symbol))

    def follow_all(self) -> None:
        self.wanted.has_all = True
        self._take_in_all()

    def begin(self, fresh: Prices, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Everything anew: what was put off came before."""
        self._put_off.clear()
        self._prices.replace(fresh)
        self._listener.missed(epoch, checkpoints)

    async def take(self, known: Sequence[AnyRecord], heard: Sequence[AnyRecord]) -> None:
        """`known` were heard before the prices were loaded anew, and are only applied. All at once, after
        what may fail: what is taken again must not be applied twice."""
        records = [*known, *heard]
        if not all(map(catalogue.by_symbol.__contains__, {record.symbol for record in records} - {""})):
            await catalogue.load()
        begun = deque[History | None]()
        if SeriesBegan in set(map(type, records)):
            for record in records:
                if type(record) is SeriesBegan:
                    begun.append(await self._series_of(record))
                    # What was put off belongs to the series before.
                    self.follow([record.symbol])
        self._apply(known, begun)
        at_once = self._put_off.sift(heard, self.wanted, now_ms())
        self._apply(at_once, begun)
        for symbol, put_off in self._put_off.take_too_much(now_ms()):
            self._take_in(symbol, put_off)
        self._listener.hear(at_once)

    async def _series_of(self, began: SeriesBegan) -> History | None:
        facts = catalogue.known(began.symbol)
        return None if facts is None else await load_series(facts, began.at_ms, simulated=began.simulated)

    def _apply(self, records: Sequence[AnyRecord], begun: deque[History | None]) -> None:
        for record in records:
            if type(record) is SeriesBegan and (fresh := begun.popleft()) is not None:
                self._prices.histories[record.symbol] = fresh
            if (facts := catalogue.known(record.symbol)) is not None:
                self._prices.apply(record, facts)

    def _take_in(self, symbol: str, put_off: PutOff | None) -> None:
        if put_off is None or not put_off.records:
            return
        if (facts := catalogue.known(symbol)) is not None:
            self._prices.apply_all(put_off.records, facts)
        self._listener.keep(symbol, put_off.records, put_off.came_ms)

    def _take_in_all(self) -> None:
        for symbol in self._put_off.symbols:
            self._take_in(symbol, self._put_off.take(symbol))

    def _ask_loop(self) -> None:
        """Prices belong to the loop. Whoever looks at one symbol for a page mostly looks at others too."""
        done = Future[None]()

        def take_in_all() -> None:
            self._take_in_all()
            done.set_result(None)

        # Where the loop has ended nothing more comes, and what is known is all that will be.
        with contextlib.suppress(RuntimeError, TimeoutError):
            if self._home is not None:
                self._home.call_soon_threadsafe(take_in_all)
                done.result(AWAY_S)
