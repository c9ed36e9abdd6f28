"""How many days candles are kept, and the order flow of 1m candles with them, though never fewer candles than
a start reads into memory. Cut at midnight, so that a day has all of its 1m candles or none and every interval
adds up."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, QuerySet

from core.background import BackgroundLoop
from core.clock import clock, now_ms, passed_ms
from core.fault_log import EachFault
from core.threads import in_thread
from core.times import MINUTE_MS, midnight, moment
from instruments.models import Instrument
from market import own_prices
from market.models import Candle, OrderFlowMinute, UnfinishedImport
from market.prices.candles import DAY_MS, TIMEFRAMES
from market.prices.history import KEPT

from .databases import drop, market_tables, next_month

logger = logging.getLogger(__name__)

# Rows deleted at once, and the pause in which the engine gets to write.
BATCH = 5_000
PAUSE_S = 0.05
ROUND_S = 3600.0
RETRY_S = 60.0
ORDER_FLOW = "order flow"

# An import that stopped is not resumed after this long; a later one starts at the first line of the file.
IMPORTS_KEPT = timedelta(days=30)
NOT_SURE = (
    "No old candles are dropped: the machine's clock was set by %.1f days while the engine ran. Once it is "
    "right, start the engine again."
)
ALWAYS = datetime.min.replace(tzinfo=UTC)


class Removed(NamedTuple):
    what: str
    """A timeframe, or the order flow."""
    number: int


async def keep_tidy() -> None:
    """Each hour: make the coming months, drop what is too old. A clock that was set ahead drops nothing."""
    begun_ms = now_ms() - passed_ms()

    async def look() -> None:
        at_ms = now_ms()
        ahead_ms = at_ms - passed_ms() - begun_ms
        is_sure = not clock.off_ms and ahead_ms <= DAY_MS
        if not is_sure:
            logger.warning(NOT_SURE, max(ahead_ms, abs(clock.off_ms)) / DAY_MS)
        await tidy(moment(at_ms), drops=is_sure)

    broke = f"The candles could not be tidied up and are again in {RETRY_S:.0f} s"
    fault = EachFault(logger, broke)
    await BackgroundLoop(
        "market retention", look, fault=fault, broke=broke, passing=(), after=ROUND_S, again=RETRY_S
    ).run()


async def tidy(now: datetime, *, drops: bool = True) -> None:
    """Step by step, so that no thread of the API is away for long."""
    for month in await in_thread(lambda: market_tables().ensure_months(now)):
        logger.info("Made a table for the 1m candles of %s", f"{month:%Y-%m}")
    if not drops:
        return
    removed: Counter[str] = Counter()
    going = steps(now)
    while (step := await in_thread(next, going, None)) is not None:
        removed[step.what] += step.number
        await asyncio.sleep(PAUSE_S)
    await in_thread(drop_given_up_imports, now)
    await in_thread(own_prices.note_deciders)
    await in_thread(own_prices.forget_old)
    if removed:
        logger.info("Dropped %d rows of old candles and order flow: %s", removed.total(), dict(removed))


def drop_given_up_imports(now: datetime) -> int:
    UnfinishedImport.objects.filter(got_on_at=None).update(got_on_at=now)
    return UnfinishedImport.objects.filter(got_on_at__lt=now - IMPORTS_KEPT).delete()[0]


def steps(now: datetime) -> Iterator[Removed]:
    """Each is a short transaction of its own, in whichever thread asks for it."""
    for timeframe, days in settings.CANDLE_DAYS.items():
        if days:
            cut = midnight(now) - timedelta(days=days)
            if timeframe == "1m":
                yield from _whole_months(cut)
            for own in _by_instrument(timeframe, cut):
                yield from _slices(own, own.candles, timeframe, cut)
            if timeframe == "1m":
                yield from _order_flow(cut)


def _whole_months(cut: datetime) -> Iterator[Removed]:
    for month in market_tables().months():
        end = next_month(month)
        if end <= cut and not any(_needs(own, month, end) for own in _by_instrument("1m")):
            yield Removed("1m", drop(month))


class InstrumentCandles(NamedTuple):
    """The candles of an instrument, of one timeframe and kind."""

    candles: QuerySet[Candle]
    importing: QuerySet[UnfinishedImport]

    def kept_from(self) -> datetime:
        """The midnight before the oldest candle that a start reads, or before the position from which an
        import continues: a day has to be whole when its coarser candles are made."""
        kept_from = midnight(_opened_at(self.candles.order_by("-opened_at"), KEPT - 1) or ALWAYS)
        goes_on_at = self.importing.aggregate(first=Min("minute_at"))["first"]
        return kept_from if goes_on_at is None else min(kept_from, midnight(goes_on_at))


def _needs(own: InstrumentCandles, month: datetime, end: datetime) -> bool:
    """Whether some of the month's candles are among those of an instrument that stay."""
    return own.candles.filter(opened_at__gte=month, opened_at__lt=end).exists() and own.kept_from() < end


def _order_flow(cut: datetime) -> Iterator[Removed]:
    """It goes after the candles of its minutes."""
    for simulated in (False, True):
        flows = OrderFlowMinute.objects.filter(simulated=simulated)
        old = flows.filter(instrument=OuterRef("pk"), opened_at__lt=cut)
        instruments = Instrument.objects.filter(Exists(old)).order_by("pk")
        for instrument_id in instruments.values_list("pk", flat=True):
            own = _candles_of(instrument_id, "1m", simulated=simulated)
            yield from _slices(own, flows.filter(instrument=instrument_id), ORDER_FLOW, cut)


def _slices(
    own: InstrumentCandles, rows: QuerySet[Candle] | QuerySet[OrderFlowMinute], name: str, cut: datetime
) -> Iterator[Removed]:
    """From the oldest on, so that what is left begins at a midnight whenever this is interrupted."""
    span = timedelta(days=max(1, BATCH * TIMEFRAMES.get(name, MINUTE_MS) // DAY_MS))
    oldest = _opened_at(rows.order_by("opened_at"))
    if oldest is None or oldest >= cut:
        return
    # Looked at each time: an import may begin meanwhile.
    while oldest is not None and oldest < (until := min(cut, own.kept_from())):
        number, _ = rows.filter(opened_at__lt=min(until, midnight(oldest) + span)).delete()
        yield Removed(name, number)
        oldest = _opened_at(rows.order_by("opened_at"))


def _by_instrument(timeframe: str, cut: datetime | None = None) -> Iterator[InstrumentCandles]:
    """Of all instruments, or of those that have candles from before a moment."""
    for simulated in (False, True):
        instruments = Instrument.objects.order_by("pk")
        if cut is not None:
            # One statement: to ask for the oldest candle of each of thousands takes seconds.
            of_kind = Candle.objects.filter(simulated=simulated, timeframe=timeframe, opened_at__lt=cut)
            instruments = instruments.filter(Exists(of_kind.filter(instrument=OuterRef("pk"))))
        for instrument_id in instruments.values_list("pk", flat=True):
            yield _candles_of(instrument_id, timeframe, simulated=simulated)


def _candles_of(instrument_id: int, timeframe: str, *, simulated: bool) -> InstrumentCandles:
    importing = UnfinishedImport.objects.filter(instrument=instrument_id)
    return InstrumentCandles(
        Candle.objects.filter(instrument=instrument_id, simulated=simulated, timeframe=timeframe),
        importing.none() if simulated or timeframe != "1m" else importing,
    )


def _opened_at(rows: QuerySet[Candle] | QuerySet[OrderFlowMinute], place: int = 0) -> datetime | None:
    return next(iter(rows.values_list("opened_at", flat=True)[place : place + 1]), None)
