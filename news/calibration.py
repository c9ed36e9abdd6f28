"""What scores are worth: the one with which an item entered the feed, and how prices moved afterwards."""

import asyncio
import logging
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, product
from statistics import fmean
from typing import Annotated, Any, ClassVar

import msgspec
from django.utils import timezone
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from core.background import BackgroundLoop
from core.contract.answers import Answer
from core.contract.parameters import describes
from core.database import UNANSWERED, fetch
from core.fault_log import EachFault
from core.struct_schemas import Moment, openapi
from core.threads import in_thread
from core.times import iso_time
from core.viewset import ApiViewSet
from instruments.models import Instrument
from market.models import Candle
from market.prices import TIMEFRAMES
from market.store import present_kind
from news.labels import LABELS, sentiment_label
from news.models import HORIZONS_H, INVERSE, NewsCategory, NewsItem, Outcome
from news.sentiment.linear import plain, words
from news.sentiment.signs import CURRENCY, kinds

# GET /api/news/calibration: the outcomes of each category and label, added up by the database at most once
# a minute in each process.
# Fewer items say nothing: of thirty fair coins, twenty may well show heads.
ENOUGH = 30
Count = Annotated[int, Meta(ge=0)]


class Figures(msgspec.Struct, frozen=True):
    """How prices moved after the items of a category and a label."""

    component: ClassVar[str] = "NewsCalibration"

    category: Annotated[str, openapi(enum=NewsCategory.values, description="The category of the items.")]
    sentiment: Annotated[str, openapi(enum=LABELS, description="The label with which they entered.")]
    horizon: Annotated[str, openapi(enum=tuple(HORIZONS_H), description="Since the item entered the feed.")]
    count: Annotated[Count, Meta(description="Items with a price at both ends.")] = 0
    left_out: Annotated[
        Count, Meta(description="Items that cannot be judged: closed market, or no informative price.")
    ] = 0
    pending: Annotated[
        Count, Meta(description="Items whose horizon has not passed, or whose prices may still come.")
    ] = 0
    mean_move_percent: Annotated[
        float | None, Meta(description="The mean move of the price, in percent; null without items.")
    ] = None
    median_move_percent: Annotated[
        float | None, Meta(description="The median move of the price, in percent; null without items.")
    ] = None
    hit_rate: Annotated[
        float | None,
        Meta(
            ge=0,
            le=1,
            description="How often the price moved in the direction of the label; null for neutral.",
        ),
    ] = None
    too_few: Annotated[
        bool, Meta(description="Whether `count` is below `enough`: the figures are then not significant.")
    ] = True


class Calibration(msgspec.Struct):
    as_of: Annotated[Moment, Meta(description="When the figures were computed; at most a minute ago.")]
    enough: Annotated[int, Meta(description="With fewer items than this, the figures are not significant.")]
    items: Annotated[list[Figures], Meta(description="One for each category, label and horizon.")]
    count: Annotated[int, Meta(description="Rows in this response.")]


SAMPLE = Calibration(
    "2026-11-20T14:00:00.000Z",
    ENOUGH,
    [Figures("gold", "bullish", "1h", 412, 37, 2, 0.0312, 0.0188, 0.5461, too_few=False)],
    count=24,
)


# The median is the middle row, or the mean of the two middle rows, of each group ordered by move.
ADD_UP = f"""
WITH ranked AS (
    SELECT category, label, horizon, move_percent, settled_at,
        row_number() OVER (
            PARTITION BY category, label, horizon, move_percent IS NULL ORDER BY move_percent
        ) AS place,
        count(move_percent) OVER (PARTITION BY category, label, horizon) AS priced
    FROM {Outcome._meta.db_table}
)
SELECT category, label, horizon,
    count(move_percent),
    sum(CASE WHEN settled_at IS NOT NULL AND move_percent IS NULL THEN 1 ELSE 0 END),
    sum(CASE WHEN settled_at IS NULL THEN 1 ELSE 0 END),
    avg(move_percent),
    avg(CASE WHEN place IN ((priced + 1) / 2, (priced + 2) / 2) THEN move_percent END),
    avg(CASE WHEN move_percent IS NULL OR label = 'neutral' THEN NULL
        WHEN (label = 'bullish' AND move_percent > 0) OR (label = 'bearish' AND move_percent < 0) THEN 1.0
        ELSE 0.0 END)
FROM ranked GROUP BY category, label, horizon
"""  # noqa: S608 - a name of our own


def add_up() -> list[Figures]:
    """Every category, label and horizon, including those without outcomes yet."""
    found = {row[:3]: _figures(*row) for row in fetch(ADD_UP)}
    groups = product(NewsCategory.values, LABELS, HORIZONS_H)
    return [found.get(group, Figures(*group)) for group in groups]


def _figures(category: str, label: str, horizon: str, count: int, *others: Any) -> Figures:
    left_out, pending, *shares = others
    mean, median, hits = (None if share is None else round(float(share), 4) for share in shares)
    totals = count, int(left_out), int(pending)
    return Figures(category, label, horizon, *totals, mean, median, hits, too_few=count < ENOUGH)


KEPT_S = 60.0


class Report:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._latest: tuple[datetime, list[Figures]] | None = None
        self._made_at = 0.0

    async def read(self) -> tuple[datetime, list[Figures]]:
        """Concurrent readers wait for one computation."""
        async with self._lock:
            if self._latest is None or time.monotonic() - self._made_at > KEPT_S:
                at = datetime.now(UTC)
                self._latest, self._made_at = (at, await in_thread(add_up)), time.monotonic()
            return self._latest

    def forget(self) -> None:
        self._latest, self._lock = None, asyncio.Lock()


report = Report()


class CalibrationViewSet(ApiViewSet):
    @action(detail=False)  # type: ignore[type-var]
    @describes(
        "getNewsCalibration",
        Calibration,
        "How prices moved after news was published",
        tag="News",
        examples={"One of its rows": SAMPLE},
        details=(
            "For each category, label and horizon: how far prices moved from the first one after an item "
            "entered the feed to the last one before the horizon ended. Items are judged by the score with "
            "which they entered; later changes do not count. An item is judged by the mean of the "
            "instruments that it names and that its score is about, or otherwise by the main one of its "
            "category: EURUSD, XAUUSD, BTCUSD or US500. News about the currency in which a price is "
            "expressed is judged by the inverse: news about the yen by 1/USDJPY. If the market was closed at "
            "one of the two moments, or no price is informative, the item is counted in `left_out`. A "
            "bullish item is a hit if that price rose, a bearish one if it fell; a neutral one predicts "
            "nothing."
        ),
    )
    async def calibration(self, request: Request) -> Answer:
        at, figures = await report.read()
        return Answer(Calibration(iso_time(at), ENOUGH, figures, len(figures)))


# Outcomes are opened when an item enters the feed, before their result can be known. A score is about one
# asset, that of the item's category (docs/sentiment.md). A price is of one asset in another, so what is good
# for the yen is bad for USDJPY; and what is good for stocks says nothing about oil.
# Used for items that name no instrument which their score is about; macro means risk assets.
MAIN_SYMBOLS = {"forex": "EURUSD", "gold": "XAUUSD", "crypto": "BTCUSD", "macro": "US500"}
KINDS = {"forex": "forex", "gold": "commodity", "crypto": "crypto", "macro": "index"}
Named = tuple[str, str]
"""The symbol and the type of an instrument."""
LONGEST = Outcome._meta.get_field("symbols").max_length or 0
PAIR = re.compile(r"([A-Z]{3})[^A-Z]?([A-Z]{3})(?![A-Z])")
CATEGORIES = {"forex": "forex", "crypto": "crypto", "index": "macro", "stock": "macro"}
METALS = ("XAU", "XAG", "XPT", "XPD")


def open_outcomes(items: Sequence[NewsItem], entered_at: datetime) -> None:
    """An item that has entered before keeps its first outcomes."""
    symbols = _symbols_of(items)
    Outcome.objects.bulk_create(
        (
            Outcome(
                item=item,
                horizon=horizon,
                category=item.category,
                score=(score := item.sentiment_score or 0.0),
                label=sentiment_label(score),
                symbols=symbols[item.pk],
                entered_at=entered_at,
                due_at=entered_at + timedelta(hours=hours),
            )
            for item in items
            for horizon, hours in HORIZONS_H.items()
        ),
        ignore_conflicts=True,
    )


def _symbols_of(items: Sequence[NewsItem]) -> dict[int, str]:
    named: defaultdict[int, list[Named]] = defaultdict(list)
    through = NewsItem.symbols.through.objects.filter(newsitem__in=[item.pk for item in items])
    columns = ("newsitem_id", "instrument__symbol", "instrument__type")
    for pk, symbol, kind in through.order_by("instrument__symbol").values_list(*columns):
        named[pk].append((symbol, kind))
    return {item.pk: _judged_by(item, named[item.pk]) for item in items}


def _judged_by(item: NewsItem, named: Sequence[Named]) -> str:
    """Empty if no price reflects the news: EURUSD says nothing about the peso."""
    main = (MAIN_SYMBOLS[item.category], KINDS[item.category])
    return _sided(item, named, is_named=True) or _sided(item, [main], is_named=False)


def _sided(item: NewsItem, instruments: Sequence[Named], *, is_named: bool) -> str:
    sides = (
        (symbol, side_of(item.title, item.category, symbol, kind, is_named=is_named))
        for symbol, kind in instruments
    )
    joined = " ".join(symbol if side > 0 else f"{INVERSE}{symbol}" for symbol, side in sides if side)
    return joined if len(joined) <= LONGEST else joined[: LONGEST + 1].rpartition(" ")[0]


def category_of(symbol: str, kind: str) -> str:
    """The category whose news concern an instrument; empty for oil and others that no category covers."""
    if kind == "commodity":
        return "gold" if symbol.startswith(METALS) else ""
    return CATEGORIES[kind]


def side_of(title: str, category: str, symbol: str, kind: str, *, is_named: bool) -> int:
    """1 if a positive score should raise the price, -1 if it should lower it, 0 if neither."""
    if category == "forex":
        return _side_of_pair(title, symbol, is_named=is_named)
    return 1 if category_of(symbol, kind) == category else 0


def currency_of(title: str) -> str:
    """The currency that a forex score is about: the first one named, or the base of a pair; or empty."""
    found = (kind.name for kind in kinds(words(plain(title))) if kind.name.startswith(CURRENCY))
    return next(found, "").removeprefix(CURRENCY).upper()


def _side_of_pair(title: str, symbol: str, *, is_named: bool) -> int:
    pair, currency = PAIR.match(symbol), currency_of(title)
    if pair is None:
        return 0
    if not currency:
        # Staff linked the item to the pair, and the score is then about the base.
        return 1 if is_named else 0
    return (currency == pair[1]) - (currency == pair[2])


# Settles outcomes: looks up, once a horizon has passed, how far prices moved in it.
logger = logging.getLogger(__name__)
ROUND_S = 60.0
# Outcomes that lack prices are looked at only once in this many rounds: they pile up over weekends.
LATE_EVERY = 15
LATE_AFTER = timedelta(minutes=10)
BATCH = 200
# After this the last minute has been closed and written.
SETTLED_AFTER = timedelta(minutes=2)
# Missing prices may still be filled in from a venue's history, but not after a day.
GIVEN_UP_AFTER = timedelta(days=1)
# A price further away than this does not count: the market was closed, or the feed was down.
NEAR, NEAR_BY_HOURS = timedelta(minutes=15), timedelta(hours=1)


def settling_loop() -> BackgroundLoop:
    rounds = count()

    async def settle_due() -> None:
        now = timezone.now()
        since, last = now - LATE_AFTER if next(rounds) % LATE_EVERY else None, 0
        # Settled in batches, so that no thread of the API is occupied for long.
        while (last := await in_thread(settle, now, after=last, since=since)) > 0:
            pass

    return BackgroundLoop(
        "news outcomes",
        settle_due,
        fault=EachFault(logger, "The outcomes of news wait for the database"),
        broke="Settling the outcomes of news broke and goes on",
        passing=UNANSWERED,
        after=ROUND_S,
    )


def settle(now: datetime, after: int = 0, *, since: datetime | None = None) -> int:
    """Settles one batch of what is due; returns the number of its last outcome, or 0 when none is left."""
    found = Outcome.objects.due(now - SETTLED_AFTER).filter(pk__gt=after)
    due = list((found.filter(due_at__gte=since) if since else found)[:BATCH])
    for outcome in due:
        move = measure(outcome)
        if move is not None or not outcome.symbols or now - outcome.due_at > GIVEN_UP_AFTER:
            # Another process may have settled it in the meantime, with the same result.
            Outcome.objects.filter(pk=outcome.pk, settled_at=None).update(settled_at=now, move_percent=move)
    return due[-1].pk if due else 0


def measure(outcome: Outcome) -> float | None:
    """The mean over the item's instruments: one item is one observation."""
    moves = (_move_of(sided, outcome) for sided in outcome.symbols.split())
    priced = [move for move in moves if move is not None]
    return fmean(priced) if priced else None


def _move_of(sided: str, outcome: Outcome) -> float | None:
    symbol = sided.removeprefix(INVERSE)
    change = _change_of(symbol, "1m", outcome, NEAR)
    if change is None and outcome.due_at - outcome.entered_at >= timedelta(days=1):
        # Without stored minutes, hourly candles are precise enough for a day, but not for an hour.
        change = _change_of(symbol, "1h", outcome, NEAR_BY_HOURS)
    if change is None:
        return None
    return ((1 / change if sided.startswith(INVERSE) else change) - 1) * 100


def _change_of(symbol: str, timeframe: str, outcome: Outcome, near: timedelta) -> float | None:
    """The close of the last candle that closed before the end, divided by the open of the first one that
    opened after the start; None if either is missing."""
    instrument_id = Instrument.objects.filter(symbol=symbol).values_list("pk", flat=True).first()
    if instrument_id is None:
        return None
    own = {"instrument": instrument_id, "simulated": present_kind(instrument_id), "timeframe": timeframe}
    candles = Candle.objects.filter(**own).order_by("opened_at")
    start, end = outcome.entered_at, outcome.due_at - timedelta(milliseconds=TIMEFRAMES[timeframe])
    entry = candles.filter(opened_at__range=(start, start + near)).first()
    leave = candles.filter(opened_at__range=(end - near, end)).last()
    return float(leave.close) / float(entry.open) if entry and entry.open and leave else None
