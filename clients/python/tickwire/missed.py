"""Holes in streams, and how one is filled over REST. It does no I/O."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote as quoted

from .answers import Value, given
from .errors import BrokenAnswer, Json
from .pages import LONGEST_PAGE, as_text, time_ms
from .state import Place

logger = logging.getLogger(__name__)

# What a frame says stands in the answers of every process by then.
AGREED_AFTER_S = 1.0
STEPS_MS = {"1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000, "4h": 14_400_000, "1d": 86_400_000}


@dataclass(frozen=True)
class Missed:
    """A hole in a stream."""

    symbol: str
    """Or "*" if it is not known of which."""
    timeframe: str | None
    """Of candles."""
    first: int | None
    last: int | None
    """The numbers (`seq`) of the first and the last missing frame; None if the numbering began again in
    between, or if the stream has no numbers."""
    start_ms: int | None
    end_ms: int
    """The times of the frames before and after it, or of the service's reply where there is none; of candles,
    when they opened. None if nothing came before."""
    filled: int | None = None
    """How many frames were fetched over REST; None if that was not tried."""
    is_filled: bool = False
    """Whether these are all."""

    def __str__(self) -> str:
        what = f"{self.symbol}/{self.timeframe}" if self.timeframe else self.symbol
        numbers = "of unknown numbers" if self.first is None else f"{self.first} to {self.last}"
        start = "the beginning" if self.start_ms is None else _told(self.start_ms)
        fetched = "" if self.filled is None else f", {self.filled} of them fetched"
        return f"{what}: {numbers}, from {start} to {_told(self.end_ms)}{fetched}"


OnMissed = Callable[[Missed], None]


def warn(missed: Missed) -> None:
    level = logging.INFO if missed.is_filled else logging.WARNING
    logger.log(level, "Frames were missed. %s", missed)


@dataclass(frozen=True)
class Hole:
    """What a stream knows of it."""

    missed: Missed
    key: str
    before: Place | None
    after: Place | None
    """Where the stream goes on."""


class Fill(ABC):
    """Asks for what is missing, page by page."""

    def __init__(self, what: str, hole: Hole, before: Place, after: Place) -> None:
        self.path = f"market/{quoted(hole.missed.symbol, safe='')}/{what}"
        self.hole, self.before, self.after = hole, before, after
        self._cursor: str | None = None
        self._passes = self._count = 0
        self.has_begun = self.has_ended = self.is_done = False
        self.epoch = before.epoch
        """Of the frames taken last."""
        self.wait_s = 0.0
        """How long to wait before the next page."""

    @abstractmethod
    def query(self) -> dict[str, Value]: ...

    @abstractmethod
    def frames(self, page: Json) -> list[Json]:
        """Those of a page that are missing."""

    def parameters(self) -> dict[str, str | int]:
        return given(self.query() | {"limit": LONGEST_PAGE, "cursor": self._cursor})

    def take(self, page: Json) -> list[Json]:
        try:
            frames, self._cursor = self.frames(page), page["next"]
        except (KeyError, TypeError, ValueError):
            raise BrokenAnswer("The response was not a complete page.") from None
        self._count += len(frames)
        # A process may know a frame a moment after another one has sent it: its end is asked for twice.
        self._passes += self._cursor is None
        self.is_done = self.has_ended or self._passes > 1
        self.wait_s = AGREED_AFTER_S if self._cursor is None else 0.0
        return frames

    @property
    def missed(self) -> Missed:
        first, last = self.hole.missed.first, self.hole.missed.last
        is_whole = self.has_begun if first is None or last is None else self._count > last - first
        return replace(self.hole.missed, filled=self._count, is_filled=self.has_ended and is_whole)


class TickFill(Fill):
    def __init__(self, hole: Hole, before: Place, after: Place) -> None:
        super().__init__("ticks", hole, before, after)
        self._seqs = {before.epoch: before.seq}
        """The last number of each epoch: nothing is taken twice."""
        self._start_ms = self._came_ms = before.time

    def query(self) -> dict[str, Value]:
        # The end is known by its number; the time of a tick may be later than that of the reply after it.
        return {"start": self._start_ms}

    def frames(self, page: Json) -> list[Json]:
        self.epoch = epoch = page["epoch"]
        last = self.after.seq if epoch == self.after.epoch else None
        found = []
        # Between two numbers of one epoch there is no other one.
        is_between = last is not None or self.before.epoch != self.after.epoch
        for item in page["items"] if is_between else ():
            seq = item["seq"]
            self.has_begun |= epoch == self.before.epoch and seq <= self.before.seq
            self.has_ended |= last is not None and seq >= last
            if seq > self._seqs.get(epoch, 0) and (last is None or seq <= last):
                self._seqs[epoch] = seq
                found.append(_tick(self.hole.missed.symbol, item))
                self._came_ms = found[-1]["time"]
        if page["next"] is None:
            self._start_ms = self._came_ms
        self.has_ended |= self.after.seq == 0 and page["next"] is None
        return found


class CandleFill(Fill):
    """The candle that showed the hole follows by itself. An earlier one that was corrected meanwhile is not
    among those that are fetched."""

    def __init__(self, hole: Hole, before: Place, after: Place) -> None:
        super().__init__("history", hole, before, after)
        self._timeframe = str(hole.missed.timeframe)
        self.has_begun = True
        self.is_done = hole.missed.end_ms <= before.time + 1

    def query(self) -> dict[str, Value]:
        return {"timeframe": self._timeframe, "start": self.before.time + 1, "end": self.hole.missed.end_ms}

    def frames(self, page: Json) -> list[Json]:
        self.has_ended = page["next"] is None
        of = {"symbol": self.hole.missed.symbol, "timeframe": self._timeframe}
        step_ms = STEPS_MS[self._timeframe]
        return [
            {**of, "candle": candle, "closed": True, "time": time_ms(candle["time"]) + step_ms}
            for candle in page["ohlcv"]
        ]


def _tick(symbol: str, item: Json) -> Json:
    prices = {name: item[name] for name in ("bid", "ask", "spread")}
    at = {"time": time_ms(item["timestamp"]), "volume": item["volume"], "seq": item["seq"]}
    return {"symbol": symbol, **prices, **at}


def _told(moment_ms: int) -> str:
    return as_text(datetime.fromtimestamp(moment_ms / 1000, UTC))


def log_unfilled(hole: Hole, failure: Exception) -> None:
    logger.warning("Missed frames of %s could not be fetched: %s", hole.key, failure)
