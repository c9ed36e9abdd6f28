"""GET /api/news/calibration: the outcomes of each category and label, added up by the database at most once a
minute in each process."""

import asyncio
import time
from datetime import UTC, datetime
from itertools import product
from typing import Annotated, Any, ClassVar

import msgspec
from django.db import connection
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment, openapi
from core.threads import in_thread
from core.times import iso_time
from news.labels import LABELS
from news.models import Outcome
from news.models.items import NewsCategory
from news.models.outcomes import HORIZONS_H

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
    with connection.cursor() as cursor:
        cursor.execute(ADD_UP)
        found = {row[:3]: _figures(*row) for row in cursor.fetchall()}
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


class CalibrationViewSet(KeyedViewSet):
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
    async def retrieve(self) -> Answer:
        at, figures = await report.read()
        return Answer(encode(Calibration(iso_time(at), ENOUGH, figures, len(figures))))
