"""The streams of prices, order flow and candles in this process: who is subscribed, what they sent lately,
and how the market feeds them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from typing import cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from core import clock
from core.plain_json import encode
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from market import runtime as market
from market.engine.bus.journal import KEEP_MS, RecentRecords
from market.engine.bus.journal import encode as pack
from market.prices.candles import TIMEFRAMES, key_of_candles
from market.prices.records import AbsorptionFound, AnyRecord, SeriesBegan, TickAccepted, closed_by
from market.store.checkpoints import Checkpoint
from market.streams.authenticated import authenticated_sockets
from market.streams.chaos import TopicFaults
from market.streams.consumer import Following, Stream, one_socket
from market.streams.hub.hub import Hub, replay
from market.streams.protocol import subscriptions
from market.streams.protocol.messages import (
    ALL,
    CANDLES,
    DEFAULT_TIMEFRAME,
    MARKET,
    ORDERFLOW,
    StreamKind,
    Subscribe,
)
from market.streams.protocol.subscriptions import Gap, Notice, Subscribed, SubscriptionChange, Subscriptions
from market.streams.resume import (
    CANDLES_KEPT_MS,
    NEVER_ENDED,
    KeptFrame,
    LastSent,
    NumberedFrame,
    RecentFrames,
    ReplayAllowance,
)
from market.streams.wire import (
    PLAIN_DIGITS,
    SEQ,
    FormingCandle,
    OutgoingFrame,
    OutgoingPrice,
    candle_update,
    closed_candle,
    extended,
    outgoing_flow,
    price_tick,
)
from serving.websocket.connection import frame


class NumberedStream(Stream):
    """Its frames have numbers from their source, by which a client resumes."""

    def __init__(self, kind: StreamKind, hub: Hub | None = None, keep_ms: int = KEEP_MS) -> None:
        super().__init__(kind, hub)
        self._changes = 0
        """Those of which not all clients have been notified yet: a crowd is notified in parts."""
        self._held: list[partial[None]] = []
        """What is sent when all have been notified, so that no later frame overtakes the notice of a
        change."""
        self.recent = RecentFrames(keep_ms, from_first=kind.has_timeframes)
        self.faults = TopicFaults(self)
        self._besides = (ALL,) if kind.takes_all else ()

    def clear(self) -> None:
        super().clear()
        self.faults.clear()
        self.recent.restart("")
        self._held, self._changes = [], 0

    @property
    def is_changing(self) -> bool:
        """What is sent now is held."""
        return self._changes > 0

    @property
    def followed(self) -> set[str]:
        """The symbols, or "*", with a subscriber."""
        return self.symbols_of(self.topics)

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        """Clients that make the demo's test instrument misbehave get it on topics of their own."""
        return self.faults.topics(subscribed.symbols, subscribed.features)

    def keys_of(self, topics: frozenset[str]) -> Collection[str]:
        """By what the frames on these topics are numbered."""
        return self.symbols_of(topics)

    def begin(self, epoch: str, known: Iterable[LastSent]) -> None:
        """Frames may have gone by unseen, or the numbering is another."""
        self.faults.release()
        self.recent.restart(epoch)
        for last in known:
            self.recent.know(last)
        # Held frames have the old numbers: the gap tells clients that they are missing. New series are kept.
        self._held = [held for held in self._held if held.func == self.begin_series]
        self.notify_all(self._gap, SEQ, holds=True)

    def send(
        self,
        symbol: str,
        outgoing: OutgoingFrame,
        *,
        is_offered: bool = True,
        is_tick: bool = True,
        since_ms: int = 0,
        dated_ms: int = 0,
    ) -> None:
        """A frame of an instrument that is not offered is numbered, but not sent."""
        if self._changes:
            self._held.append(
                partial(
                    self.send,
                    symbol,
                    outgoing,
                    is_offered=is_offered,
                    is_tick=is_tick,
                    since_ms=since_ms,
                    dated_ms=dated_ms,
                )
            )
            return
        self.recent.add(symbol, outgoing.seq, outgoing.frame, outgoing.sent_ms, is_tick=is_tick)
        if is_offered:
            self.publish(outgoing, symbol, *self._besides, since_ms=since_ms, dated_ms=dated_ms)
            if symbol == TEST_SYMBOL:
                self.faults.send(outgoing)

    def _hold(self) -> Callable[[], None]:
        """What is sent until then waits."""
        self._changes += 1
        return self._end_change

    def _end_change(self) -> None:
        self._changes -= 1
        if not self._changes:
            held, self._held = self._held, []
            for send in held:
                send()

    def _gap(self, topics: frozenset[str]) -> bytes | None:
        symbols, recent = self.symbols_of(topics), self.recent
        positions = recent.positions(self.keys_of(topics))
        return encode(
            Gap(symbols=sorted(symbols), epoch=recent.epoch, positions=positions, time=clock.now_ms())
        )

    def begin_series(self, symbol: str, last_tick: NumberedFrame | None, now_ms: int) -> None:
        """From now on its prices are of another kind, as `last_tick` is."""
        if self._changes:
            self._held.append(partial(self.begin_series, symbol, last_tick, now_ms))
            return
        self.end_series(symbol, last_tick)
        concerned = {symbol, ALL}
        self.notify("new_series", lambda named: [symbol] if concerned & named else [], now_ms, holds=True)

    def end_series(self, symbol: str, last_tick: NumberedFrame | None) -> None:
        self.recent.begin_series(symbol, last_tick)

    def notify_liveness(self, is_heard: bool) -> None:
        """Without an engine no frames are sent, which would look like a quiet market."""
        self.notify("live" if is_heard else "stale", lambda named: named, clock.now_ms())

    async def subscribe(self, client: Following, message: Subscribe) -> None:
        # Nothing is awaited here, so that no frame comes before the reply and none is missed after it.
        subscriber, wanted, now = client.subscriber, client.subscriptions, clock.now_ms()
        change = client.add(message)
        market.follow(None if wanted.has_all else wanted.symbols)
        reply, missed = self.open(message, wanted, change, now, client.replayed, client.hub.written)
        subscriber.wants_latest |= "latest" in wanted.features and self.kind.can_conflate
        client.listen()
        replay(client.socket.hub.slow, subscriber, chain([frame(encode(reply))], missed), self.kind.name)
        if change.joined and not market.is_heard():
            client.say(Notice(code="stale", symbols=change.joined, time=now))

    def open(
        self,
        message: Subscribe,
        subscribed: Subscriptions,
        change: SubscriptionChange,
        now_ms: int,
        allowance: ReplayAllowance,
        written: Callable[[bytes], bytes] = frame,
    ) -> tuple[Subscribed, Iterator[bytes]]:
        """The reply to a subscribe, and the frames after it. Nothing may be awaited between this and the
        hub's subscribe."""
        resume = None if message.resume is UNSET else message.resume
        for symbol in change.begun:
            # An instrument that is newer than the numbering has never been sent.
            if symbol != ALL and not self.recent.knows(symbol):
                self.recent.know(LastSent(symbol, 0))
        opening = self.recent.open(subscribed, change, resume, now_ms, allowance)
        is_numbered = "seq" in subscribed.features
        reply = subscriptions.subscribed(
            self.kind.name,
            subscribed.symbols,
            change.rejected,
            now_ms,
            message.id,
            timeframes=[*subscribed.timeframes] or UNSET,
            epoch=self.recent.epoch if is_numbered else UNSET,
            positions=opening.positions if is_numbered else UNSET,
            unrecovered=UNSET if resume is None else opening.unrecovered,
        )
        variant = self.variant_of(subscribed)
        # Each is made when it is due.
        return reply, (written(extended(data, seq, now_ms, variant)) for seq, data in opening.frames)


# Candles as they are closed, and as they form for clients that asked for that.
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

    async def subscribe(self, client: Following, message: Subscribe) -> None:
        wanted = client.subscriptions
        if message.timeframes is UNSET:
            message = replace(message, timeframes=frozenset(wanted.timeframes or (DEFAULT_TIMEFRAME,)))
        await super().subscribe(client, message)
        self.forming.want(wanted)

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
        """Of records that had no subscriber when they came."""
        for record, at_ms in zip(records, came_ms, strict=True):
            for closed in closed_by(record):
                key, sent = (
                    key_of_candles(record.symbol, closed.timeframe),
                    closed_candle(record.symbol, closed),
                )
                self.recent.keep(key, [closed.seq], [sent], [at_ms], (closed.seq, sent))

    def end_series(self, symbol: str, last_tick: NumberedFrame | None) -> None:
        """From now on, clients are first shown the last candle of the present series."""
        keys = [key_of_candles(symbol, timeframe) for timeframe in TIMEFRAMES]
        for key, seq in self.recent.positions(keys).items():
            self.recent.begin_series(key, (seq, key.encode()))


class FormingCandles:
    """Sends the candles that form, once a second and only while a client is subscribed."""

    _timer: asyncio.TimerHandle | None = None

    def __init__(self, stream: CandleStream) -> None:
        self._stream = stream
        self.clear()

    def clear(self) -> None:
        self.is_wanted = False
        """Whether a client was subscribed at the last look."""
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
        self.is_wanted = any(topic.endswith(FORMING) for topic in self._stream.topics)
        if not self.is_wanted:
            self._ticked.clear()
            return
        self._look_later()
        # While a crowd is notified of a change, no later frame may overtake the notice.
        if not self._stream.is_changing:
            ticked, self._ticked = self._ticked, set()
            sent_ms = clock.now_ms()
            for symbol in ticked:
                self._send(symbol, sent_ms)

    def _send(self, symbol: str, sent_ms: int) -> None:
        facts, quote = catalogue.find(symbol), market.prices.quotes.get(symbol)
        if facts is None or quote is None or not facts.is_offered:
            return
        history = market.prices.history(facts)
        for timeframe in TIMEFRAMES:
            topic = key_of_candles(symbol, timeframe) + FORMING
            if self._stream.has(topic) and (row := history.forming_row(timeframe)) is not None:
                sent = candle_update(symbol, timeframe, row, is_closed=False, time_ms=quote.time_ms)
                self._stream.publish(FormingCandle(sent, 0, sent_ms), topic)


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


prices = NumberedStream(MARKET)
order_flow = NumberedStream(ORDERFLOW)
candles = CandleStream()
STREAMED = TickAccepted, AbsorptionFound
unpack = msgspec.msgpack.Decoder(TickAccepted | AbsorptionFound).decode
NEVER_QUOTED = Checkpoint(None, None)


def publish(records: Sequence[AnyRecord]) -> None:
    """Each record is encoded once, however many listen, and nothing is awaited."""
    sent_ms = clock.now_ms()
    for record in records:
        if isinstance(record, TickAccepted):
            symbol, since_ms = record.symbol, record.accepted_ms
            facts = catalogue.by_symbol.get(symbol)
            # The engine may learn a little later than this process that an instrument is no longer offered.
            is_offered = facts is not None and facts.is_offered
            price = None if facts is None else OutgoingPrice(record, facts.digits, sent_ms)
            flow = outgoing_flow(record, sent_ms)
            if price is not None:
                dated_ms = record.time_ms + record.ahead_ms
                prices.send(symbol, price, is_offered=is_offered, since_ms=since_ms, dated_ms=dated_ms)
            if flow is not None:
                order_flow.send(symbol, flow, is_offered=is_offered, since_ms=since_ms)
            if record.closed:
                candles.send_closed(record, sent_ms, is_offered=is_offered, since_ms=since_ms)
            if candles.forming.is_wanted:
                candles.forming.note(symbol)
        else:
            _publish_other(record, sent_ms)


def _publish_other(record: AnyRecord, sent_ms: int) -> None:
    if isinstance(record, AbsorptionFound):
        if (flow := outgoing_flow(record, sent_ms)) is not None:
            is_offered = catalogue.is_offered(record.symbol)
            order_flow.send(record.symbol, flow, is_offered=is_offered, is_tick=False)
    elif isinstance(record, SeriesBegan):
        _begin_series(record, sent_ms)
    elif closed_by(record):
        candles.send_closed(record, sent_ms, is_offered=catalogue.is_offered(record.symbol))


def keep(symbol: str, records: Sequence[AnyRecord], came_ms: Sequence[int]) -> None:
    """Records that had no subscriber when they came. Frames are made of them when a client resumes."""
    if any(stream.is_changing for stream in STREAMS):
        # Held like all that comes now, and then sent to those who have subscribed meanwhile.
        publish(records)
        return
    candles.keep_closed(records, came_ms)
    streamed = [isinstance(record, STREAMED) for record in records]
    sent = cast(list[TickAccepted | AbsorptionFound], [*compress(records, streamed)])
    # Packed they take a third of the memory, and each is freed in one piece.
    packed, came_ms = [*map(pack, sent)], [*compress(came_ms, streamed)]
    is_tick = [type(record) is TickAccepted for record in sent]
    if catalogue.known(symbol) is not None:
        seqs = [record.seq for record in sent if isinstance(record, TickAccepted)]
        _keep(prices, symbol, seqs, packed, came_ms, is_tick, is_tick)
    flow_seqs = [record.flow_seq for record in sent]
    _keep(order_flow, symbol, [*filter(None, flow_seqs)], packed, came_ms, flow_seqs, is_tick)


def _keep(
    stream: NumberedStream,
    symbol: str,
    seqs: Sequence[int],
    packed: Sequence[bytes],
    came_ms: Sequence[int],
    selectors: Sequence[int],
    is_tick: Sequence[bool],
) -> None:
    if seqs:
        kept = [*compress(packed, selectors)]
        newest_first = zip(
            reversed(seqs), reversed(kept), reversed([*compress(is_tick, selectors)]), strict=True
        )
        last_tick = next(((seq, each) for seq, each, is_one in newest_first if is_one), None)
        stream.recent.keep(symbol, seqs, kept, [*compress(came_ms, selectors)], last_tick)


def price_frame(kept: bytes) -> bytes:
    if is_frame(kept):
        return kept
    tick = cast(TickAccepted, unpack(kept))
    facts = catalogue.known(tick.symbol)
    return price_tick(tick, PLAIN_DIGITS if facts is None else facts.digits)


def flow_frame(kept: bytes) -> bytes:
    outgoing = None if is_frame(kept) else outgoing_flow(unpack(kept), 0)
    return kept if outgoing is None else outgoing.frame


def is_frame(kept: bytes) -> bool:
    """JSON, and not a packed record."""
    return kept[:1] == b"{"


def followed() -> set[str] | None:
    """By clients, or None for all symbols."""
    named = prices.followed | order_flow.followed | candles.followed
    return None if ALL in named else named


def _begin_series(record: SeriesBegan, now_ms: int) -> None:
    facts, tick = catalogue.known(record.symbol), None
    if facts is not None and record.bid:
        taken = TickAccepted(record.symbol, record.bid, record.ask, record.time_ms, 0.0, record.seq)
        tick = record.seq, price_tick(taken, facts.digits)
    for stream in STREAMS:
        stream.begin_series(record.symbol, tick if stream is prices else None, now_ms)


def begin_numbering(epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
    """Start from where the numbering stands. Clients that listened before may have missed something."""
    known = [(facts, checkpoints.get(facts.symbol, NEVER_QUOTED)) for facts in catalogue.all()]
    past = market.take_recent()
    for stream, read_last in READ_LAST.items():
        stream.begin(epoch, chain.from_iterable(read_last(*each, past) for each in known))


def _prices_of(past: RecentRecords, facts: InstrumentFacts) -> Iterator[KeptFrame]:
    for at_ms, record in past.prices.get(facts.symbol, ()):
        if isinstance(record, TickAccepted):
            yield at_ms, record.seq, price_tick(record, facts.digits)


def _flow_of(past: RecentRecords, facts: InstrumentFacts) -> Iterator[KeptFrame]:
    for at_ms, record in past.flow.get(facts.symbol, ()):
        outgoing = outgoing_flow(record, at_ms)
        if outgoing is not None:
            yield at_ms, outgoing.seq, outgoing.frame


def _last_price(facts: InstrumentFacts, checkpoint: Checkpoint, past: RecentRecords) -> Iterator[LastSent]:
    seq, tick, shown = checkpoint.seq, checkpoint.last, None
    if tick is not None:
        volume = 1.0 if facts.volume_kind == "ticks" else tick.volume
        bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
        shown = price_tick(TickAccepted(facts.symbol, bid, ask, tick.time_ms, volume, seq), facts.digits)
    ended_at = seq if checkpoint.awaits_first else past.ended.get(facts.symbol, NEVER_ENDED)[0]
    yield LastSent(facts.symbol, seq, shown, _prices_of(past, facts), ended_at)


def _last_flow(facts: InstrumentFacts, checkpoint: Checkpoint, past: RecentRecords) -> Iterator[LastSent]:
    seq = checkpoint.flow_seq
    ended_at = seq if checkpoint.awaits_first else past.ended.get(facts.symbol, NEVER_ENDED)[1]
    yield LastSent(facts.symbol, seq, None, _flow_of(past, facts), ended_at)


ReadLast = Callable[[InstrumentFacts, Checkpoint, RecentRecords], Iterable[LastSent]]
READ_LAST: dict[NumberedStream, ReadLast] = {
    prices: _last_price,
    order_flow: _last_flow,
    candles: last_candles,
}
"""How to find what each stream sent last before this process began to listen."""
STREAMS = tuple(READ_LAST)
for each in (prices, order_flow):
    each.recent.is_offered = catalogue.is_offered
prices.recent.make, order_flow.recent.make = price_frame, flow_frame


def stop() -> None:
    for stream in STREAMS:
        stream.clear()
    one_socket.clear()
    authenticated_sockets.clear()
