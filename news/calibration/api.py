"""GET /api/news/calibration: what the scores were worth."""

from typing import Annotated

import msgspec
from django.http import HttpRequest
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment
from core.times import iso_time

from .figures import ENOUGH, Figures, report


class Calibration(msgspec.Struct):
    as_of: Annotated[Moment, Meta(description="When the figures were added up; at most a minute ago.")]
    enough: Annotated[int, Meta(description="From this many items on, figures say something.")]
    items: list[Figures]
    count: int


SAMPLE = Calibration(
    "2026-11-20T14:00:00.000Z",
    ENOUGH,
    [Figures("gold", "bullish", "1h", 412, 37, 2, 0.0312, 0.0188, 0.5461, too_few=False)],
    count=24,
)


class CalibrationViewSet(KeyedViewSet):
    @describes(
        "getNewsCalibration",
        Calibration,
        "How prices moved after news was published",
        tag="News",
        examples={"One of its rows": SAMPLE},
        details=(
            "For each category, label and horizon: how far prices moved from the first one after an item "
            "entered the feed to the last one before the horizon ended. Judged by the score with which it "
            "entered, whatever was said later. An item is judged by the instruments that it names and its "
            "score is about, together, or else by its category's main one: EURUSD, XAUUSD, BTCUSD, US500. "
            "News of the currency that a price is counted in are judged by the inverse: those of the yen by "
            "1/USDJPY. Where the market was closed at one of the two moments, or no price tells, the item is "
            "left out and counted so. A bullish item hits when that price rose, a bearish one when it fell; "
            "a neutral one promises nothing."
        ),
    )
    async def retrieve(self, request: HttpRequest) -> Answer:
        at, figures = await report.read()
        return Answer(encode(Calibration(iso_time(at), ENOUGH, figures, len(figures))))
