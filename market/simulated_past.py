"""The simulated market's past: 1m candles for DEMO_DAYS, and 500 of each coarser interval. It is only
made up where no ticks were sent."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import msgspec
from django.conf import settings
from django.db import transaction

from core.times import MINUTE_MS
from instruments.facts import DEMO, InstrumentFacts
from instruments.hours import Span, TradingHours
from market.prices.candles import COARSER, DAY_MS, CandleBuilder, PriceBar, aggregate, interval_start
from market.prices.history import KEPT
from market.prices.order_flow import UNITS, FlowState
from market.prices.records import Tick
from market.simulated.simulated_market import SimulatedMarket, minute_flows, simulated

from .models import Candle
from .store import FlowToWrite, candle_rows

# Enough for 500 days of trading, with weekends and holidays between them.
PAST_MS = 730 * DAY_MS

# The least number of candles of each coarser interval.
COARSE_KEPT = KEPT + 20

# The past has order flow for at least this many minutes: two thirds of a day that never closes.
FLOW_MINUTES = 1_000


def minutes_ms() -> int:
    """How far back minutes are made."""
    return int(settings.DEMO_DAYS) * DAY_MS


def recent_from(facts: InstrumentFacts, until_ms: int) -> int:
    """A midnight: what forms later lacks nothing of its day. Of a market that never closes the one before."""
    never_closes = facts.hours.next_open(until_ms) is None
    return interval_start(until_ms, DAY_MS) - DAY_MS * never_closes


def recent_rows(facts: InstrumentFacts, until_ms: int) -> list[candle_rows.CandleToWrite]:
    """Of an instrument that has none: what the engine goes on from."""
    return _minute_rows(facts, recent_from(facts, until_ms), until_ms)


def older_rows(facts: InstrumentFacts, until_ms: int) -> list[candle_rows.CandleToWrite]:
    """All that came before a midnight."""
    first_minute_ms = until_ms - minutes_ms()
    rows = _minute_rows(facts, first_minute_ms, until_ms)
    known = Counter(timeframe for _, timeframe, _, _ in rows)
    return [*_coarse_rows(facts, first_minute_ms - PAST_MS, first_minute_ms, known), *rows]


def older_flows(facts: InstrumentFacts, rows: Iterable[candle_rows.CandleToWrite]) -> list[FlowToWrite]:
    """The order flow of the last minutes among candles, from a midnight on."""
    bars = minute_bars(rows)
    if not bars:
        return []
    first_ms = interval_start(bars[-FLOW_MINUTES:][0].opened_ms, DAY_MS)
    return _flows(facts, (bar for bar in bars if bar.opened_ms >= first_ms))


def recent_flows(facts: InstrumentFacts, rows: Iterable[candle_rows.CandleToWrite]) -> list[FlowToWrite]:
    """All of it, so that it joins what is older."""
    return _flows(facts, minute_bars(rows))


def minute_bars(rows: Iterable[candle_rows.CandleToWrite]) -> list[PriceBar]:
    return [candle for _, timeframe, candle, _ in rows if timeframe == "1m"]


def _flows(facts: InstrumentFacts, bars: Iterable[PriceBar]) -> list[FlowToWrite]:
    minutes = minute_flows(bars, settings.DEMO_SEED, facts.symbol)
    return [FlowToWrite(facts.id, True, minute) for minute in minutes]


def flow_state(flows: list[FlowToWrite]) -> FlowState | None:
    """What the engine goes on from, so that the running sum of the day has no break."""
    if not flows:
        return None
    last = flows[-1].minute
    return FlowState(
        day=last.opened_ms // DAY_MS,
        units=round(last.cumulative_delta * UNITS),
        minute_ms=last.opened_ms,
        sold=round(last.bid_volume * UNITS),
        bought=round(last.ask_volume * UNITS),
        absorptions=last.absorptions,
    )


def fill_gap(facts: InstrumentFacts, last_ms: int, since_ms: int, until_ms: int) -> bool:
    """The minutes from one moment to another, after the last one that is stored; False if there are none."""
    if not any(facts.hours.sessions_between(since_ms, until_ms)):
        return False
    market = simulated(facts, settings.DEMO_SEED)
    first_minute_ms = max(since_ms, interval_start(until_ms - minutes_ms(), DAY_MS))
    rows: list[candle_rows.CandleToWrite] = []
    if first_minute_ms > since_ms:
        # Away for longer than minutes are made for: coarse candles of whole days lead up to them.
        next_day_ms = interval_start(since_ms, DAY_MS) + DAY_MS
        rows += _coarse_rows(facts, next_day_ms, first_minute_ms, {})
    builder = CandleBuilder()
    for minute in candle_rows.read_minutes_since(facts, interval_start(last_ms, DAY_MS), simulated=True):
        builder.resume(minute)
    rows += _minutes(facts, market, builder, first_minute_ms, until_ms)
    with transaction.atomic():
        candle_rows.write_candles(rows)
    return True


def last_quote(facts: InstrumentFacts, until_ms: int) -> Tick | None:
    """On a closed market, that of its last session. Bars and ticks are made apart, and a client that sees
    both takes it for the close of its minute: so it has that price, at the time of the last tick."""
    session = facts.hours.last_open_before(until_ms - 1)
    if session is None:
        return None
    last_ms = min(session[1], until_ms) - 1
    (minute,) = simulated_minutes(facts, interval_start(last_ms, MINUTE_MS), last_ms + 1)
    time_ms = simulated(facts, settings.DEMO_SEED).quote_at(last_ms).time_ms
    return Tick(facts.symbol, minute.close, _ask_of(minute, minute.close, facts.digits), time_ms)


def simulated_minutes(facts: InstrumentFacts, start_ms: int, end_ms: int) -> Iterator[PriceBar]:
    """1m candles of the open hours on the bid, made as they are asked for."""
    market = simulated(facts, settings.DEMO_SEED)
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            yield PriceBar(*bar, DEMO)


def _basis() -> str:
    """As the engine makes what follows, or the first live candle would be half a spread away."""
    return Candle.Basis.MID if settings.CANDLE_PRICE == "mid" else Candle.Basis.BID


def _priced(bid: PriceBar, basis: str, digits: int) -> PriceBar:
    """The bars of a simulated market are made on the bid."""
    if basis == Candle.Basis.BID:
        return bid
    prices = {name: getattr(bid, name) for name in ("open", "high", "low", "close")}
    mids = {name: round((price + _ask_of(bid, price, digits)) / 2, digits) for name, price in prices.items()}
    return msgspec.structs.replace(bid, **mids)


def _ask_of(bar: PriceBar, bid: float, digits: int) -> float:
    """A simulated bar has one spread."""
    return round(bid + bar.ask_high - bar.high, digits)


def _minute_rows(facts: InstrumentFacts, start_ms: int, end_ms: int) -> list[candle_rows.CandleToWrite]:
    """1m candles from a midnight on, and those that they complete."""
    basis = _basis()
    finest = [_priced(each, basis, facts.digits) for each in simulated_minutes(facts, start_ms, end_ms)]
    rows: list[candle_rows.CandleToWrite] = [(facts.id, "1m", minute, basis) for minute in finest]
    over_ms = end_ms if facts.hours.is_open(end_ms) else facts.hours.next_open(end_ms)
    for timeframe, span_ms in COARSER.items():
        finest = list(aggregate(finest, span_ms))
        # Only the last one may have something to come.
        is_over = finest and (over_ms is None or finest[-1].opened_ms + span_ms <= over_ms)
        rows += [(facts.id, timeframe, candle, basis) for candle in finest[: None if is_over else -1]]
    return rows


def _minutes(
    facts: InstrumentFacts, market: SimulatedMarket, builder: CandleBuilder, start_ms: int, end_ms: int
) -> Iterator[candle_rows.CandleToWrite]:
    """1m candles, and those that they complete together with what the builder has taken before."""
    basis = _basis()
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            minute = _priced(PriceBar(*bar, DEMO), basis, facts.digits)
            for timeframe, candle in builder.add_minute(minute):
                yield facts.id, timeframe, candle, basis
        if not facts.hours.is_open(closes_ms) and (reopens_ms := facts.hours.next_open(closes_ms)):
            for timeframe, candle in builder.close_until(reopens_ms):
                yield facts.id, timeframe, candle, basis


def _coarse_rows(
    facts: InstrumentFacts, start_ms: int, end_ms: int, known: Mapping[str, int]
) -> Iterator[candle_rows.CandleToWrite]:
    """The coarser intervals before the 1m candles begin, each as far back as `bars=500` asks."""
    pieces = list(_coarse_pieces(facts.hours, start_ms, end_ms, known))
    bars = simulated(facts, settings.DEMO_SEED).bars_of([span for span, _ in pieces])
    basis = _basis()
    made = [
        (_priced(PriceBar(*bar, DEMO), basis, facts.digits), step_ms)
        for bar, (_, step_ms) in zip(bars, pieces, strict=True)
    ]
    for timeframe, span_ms in COARSER.items():
        for candle in aggregate((bar for bar, step_ms in made if step_ms <= span_ms), span_ms):
            yield facts.id, timeframe, candle, basis


def _coarse_pieces(
    hours: TradingHours, start_ms: int, end_ms: int, known: Mapping[str, int]
) -> list[tuple[Span, int]]:
    """The open time of whole days, in order, cut into the finest interval of which there are too few."""
    missing = {timeframe: COARSE_KEPT - known.get(timeframe, 0) for timeframe in COARSER}
    parts = _cut(hours.sessions_between(start_ms, end_ms), DAY_MS)
    days = [list(of_day) for _, of_day in groupby(parts, lambda part: interval_start(part[0], DAY_MS))]
    pieces: list[list[tuple[Span, int]]] = []
    for day in reversed(days):
        step_ms = next((COARSER[timeframe] for timeframe, more in missing.items() if more > 0), None)
        if step_ms is None:
            break
        spans = list(_cut(day, step_ms))
        pieces.append([(span, step_ms) for span in spans])
        for timeframe, span_ms in COARSER.items():
            missing[timeframe] -= len({interval_start(opens_ms, span_ms) for opens_ms, _ in spans})
    return [piece for of_day in reversed(pieces) for piece in of_day]


def _cut(spans: Iterable[Span], step_ms: int) -> Iterator[Span]:
    for opens_ms, closes_ms in spans:
        for begin_ms in range(interval_start(opens_ms, step_ms), closes_ms, step_ms):
            yield max(opens_ms, begin_ms), min(closes_ms, begin_ms + step_ms)
