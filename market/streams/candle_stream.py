"""Candles as they are closed, and as they form for clients that asked for that."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence

from core import clock
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime as market
from market.engine.bus.journal import RecentRecords
from market.prices.candles import TIMEFRAMES, key_of_candles
from market.prices.records import AnyRecord, closed_by
from market.store.checkpoints import Checkpoint
from market.streams.hub.hub import Hub
from market.streams.protocol.messages import CANDLES
from market.streams.protocol.subscriptions import Subscriptions

from .resume import CANDLES_KEPT_MS, NEVER_ENDED, KeptFrame, LastSent, NumberedFrame
from .stream import NumberedStream
from .wire import FormingCandle, OutgoingFrame, candle_update, closed_candle

FORMING, FORMING_S = "/forming", 1.0


class CandleStream(NumberedStream):
    """Its topics are what its frames are numbered by, EURUSD/1m; those that form have topics of their own."""

    def __init__(self) -> None:
        super().__init__(CANDLES, keep_ms=CANDLES_KEPT_MS)
        self.forming = FormingCandles(self)
        self.recent.is_offered = lambda key: catalogue.is_offered(key.partition("/")[0])
        self.recent.make = candle_frame

    def clear(self) -> None:
        super().clear()
        self.forming.clear()

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        keys = subscribed.keys
        forming = [key + FORMING for key in keys] if "forming" in subscribed.events else []
        return {*keys, *forming}

    def keys_of(self, topics: frozenset[str]) -> Collection[str]:
        return [topic for topic in topics if not topic.endswith(FORMING)]

    def send_closed(self, record: AnyRecord, sent_ms: int, *, is_offered: bool, since_ms: int = 0) -> None:
        symbol = record.symbol
        for closed in closed_by(record):
            outgoing = OutgoingFrame(closed_candle(symbol, closed), closed.seq, sent_ms)
            key = key_of_candles(symbol, closed.timeframe)
            self.send(key, outgoing, is_offered=is_offered, since_ms=since_ms)

    def keep_closed(self, records: Sequence[AnyRecord], came_ms: Sequence[int]) -> None:
        """Of records that nobody wanted when they came."""
        for record, at_ms in zip(records, came_ms, strict=True):
            for closed in closed_by(record):
                key, frame = (
                    key_of_candles(record.symbol, closed.timeframe),
                    closed_candle(record.symbol, closed),
                )
                self.recent.keep(key, [closed.seq], [frame], [at_ms], (closed.seq, frame))

    def end_series(self, symbol: str, last_tick: NumberedFrame | None) -> None:
        """What is shown first from now on is the last candle of the series that goes on."""
        keys = [key_of_candles(symbol, timeframe) for timeframe in TIMEFRAMES]
        for key, seq in self.recent.positions(keys).items():
            self.recent.begin_series(key, (seq, key.encode()))


class FormingCandles:
    """Sends the candles that form, once a second and only while somebody wants them."""

    _timer: asyncio.TimerHandle | None = None

    def __init__(self, stream: CandleStream) -> None:
        self._stream = stream
        self.clear()

    def clear(self) -> None:
        self.is_wanted = False
        """Whether anybody asked, as far as was looked."""
        self._ticked: set[str] = set()
        """Symbols that a tick came of since the last look."""
        if self._timer is not None:
            self._timer.cancel()

    def want(self, subscribed: Subscriptions) -> None:
        if "forming" in subscribed.events and not self.is_wanted:
            self.is_wanted = True
            self._look_later()

    def note(self, symbol: str) -> None:
        self._ticked.add(symbol)

    def _look_later(self) -> None:
        self._timer = self._stream.hub.loop.call_later(FORMING_S, self.look)

    def look(self) -> None:
        hub = self._stream.hub
        self.is_wanted = any(topic.endswith(FORMING) for topic in hub.topics)
        if not self.is_wanted:
            self._ticked.clear()
            return
        self._look_later()
        # While a crowd is told of a change, no later frame may overtake that.
        if not self._stream.is_changing:
            ticked, self._ticked = self._ticked, set()
            sent_ms = clock.now_ms()
            for symbol in ticked:
                self._send(hub, symbol, sent_ms)

    def _send(self, hub: Hub, symbol: str, sent_ms: int) -> None:
        facts, quote = catalogue.find(symbol), market.prices.quotes.get(symbol)
        if facts is None or quote is None or not facts.is_offered:
            return
        history = market.prices.history(facts)
        for timeframe in TIMEFRAMES:
            topic = key_of_candles(symbol, timeframe) + FORMING
            if hub.has(topic) and (row := history.forming_row(timeframe)) is not None:
                frame = candle_update(symbol, timeframe, row, is_closed=False, time_ms=quote.time_ms)
                hub.publish(FormingCandle(frame, 0, sent_ms), topic)


def candle_frame(kept: bytes) -> bytes:
    """What is kept is a frame, or the key of the last closed candle that this process knows."""
    if kept[:1] == b"{":
        return kept
    symbol, _, timeframe = kept.decode().partition("/")
    facts = catalogue.known(symbol)
    row = None if facts is None else market.prices.history(facts).last_row(timeframe)
    if facts is None or row is None:
        return b""
    ended_ms = facts.hours.end_of_trading(row.opened_ms, row.opened_ms + TIMEFRAMES[timeframe])
    return candle_update(symbol, timeframe, row, is_closed=True, time_ms=ended_ms)


def last_candles(facts: InstrumentFacts, checkpoint: Checkpoint, past: RecentRecords) -> Iterator[LastSent]:
    """What was sent last of each timeframe before this process began to listen."""
    history, since_ms = market.prices.history(facts), checkpoint.kind_since_ms
    for timeframe, span_ms in TIMEFRAMES.items():
        key, seq = key_of_candles(facts.symbol, timeframe), checkpoint.candle_seqs.get(timeframe, 0)
        last_ms = history.last_closed_ms(timeframe)
        ended_at = past.ended.get(key, NEVER_ENDED)[0]
        if since_ms is not None and (last_ms is None or last_ms + span_ms <= since_ms):
            # Its series began, and none of it was closed.
            ended_at = seq
        yield LastSent(key, seq, key.encode(), _candles_of(past, facts, key), ended_at)


def _candles_of(past: RecentRecords, facts: InstrumentFacts, key: str) -> Iterator[KeptFrame]:
    for at_ms, closed in past.candles.get(key, ()):
        yield at_ms, closed.seq, closed_candle(facts.symbol, closed)
