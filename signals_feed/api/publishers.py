"""GET /api/publishers/{user}: how well a publisher does, over every signal."""

from decimal import Decimal
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.errors import NotFound
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol
from core.threads import in_thread_promptly
from core.times import iso_time
from signals_feed.models import Signal
from signals_feed.publishers.equity import EquityPoint
from signals_feed.publishers.lookup import NO_SUCH_PUBLISHER, Publisher, find, scorecards
from signals_feed.publishers.scorecards import Scorecard, TrackRecord
from signals_feed.wire import Publisher as PublisherName

ClosedCount = Annotated[int, Meta(ge=0, description="The number of closed signals; all of them count.")]
WinRate = Annotated[
    float | None,
    Meta(description="Share of signals with a `pnl_r` above 0; null before the first has closed."),
]
ExpectancyR = Annotated[float | None, Meta(description="Mean of `pnl_r`.")]
TotalR = Annotated[float, Meta(description="Sum of `pnl_r`.")]


class SymbolRecord(msgspec.Struct):
    symbol: Symbol
    signals: ClosedCount
    win_rate: WinRate
    expectancy_r: ExpectancyR
    total_r: TotalR


class ClosedBy(msgspec.Struct):
    take_profit: Annotated[int, Meta(ge=0, description="The price reached the target.")]
    stop_loss: Annotated[int, Meta(ge=0, description="The price reached the stop.")]
    manual: Annotated[int, Meta(ge=0, description="The publisher closed it.")]
    expired: Annotated[int, Meta(ge=0, description="It ended after seven days.")]
    cancelled: Annotated[int, Meta(ge=0, description="It was cancelled, with a reason.")]


class EquitySum(msgspec.Struct):
    component: ClassVar[str] = "EquityPoint"

    signals: Annotated[int, Meta(ge=1, description="The number of closed signals so far.")]
    time: Annotated[Moment, Meta(description="When the last of them closed.")]
    r: Annotated[float, Meta(description="Sum of `pnl_r` up to here.")]
    low_r: Annotated[float, Meta(description="Lowest sum since the previous point.")]
    high_r: Annotated[float, Meta(description="Highest sum since the previous point.")]


class PublisherRecord(msgspec.Struct):
    component: ClassVar[str] = "Publisher"

    user: PublisherName
    active: Annotated[int, Meta(ge=0, description="Signals that are still open.")]
    signals: ClosedCount
    win_rate: WinRate
    expectancy_r: ExpectancyR
    total_r: TotalR
    too_few: Annotated[bool, Meta(description="Fewer than 30 closed signals, so the figures say little yet.")]
    best_excursion_r: Annotated[
        float | None, Meta(description="The most that any signal was ahead while it was open.")
    ]
    worst_excursion_r: Annotated[
        float | None, Meta(description="The most that any signal was behind while it was open; negative.")
    ]
    max_drawdown_r: Annotated[
        float,
        Meta(
            ge=0,
            description="Deepest fall of the sum of `pnl_r` below its highest point, which starts at 0.",
        ),
    ]
    max_drawdown_signals: Annotated[
        int,
        Meta(ge=0, description="Most signals in a row after which the sum was below its highest point."),
    ]
    closed_by: Annotated[ClosedBy, Meta(description="How many signals closed for each reason.")]
    by_symbol: Annotated[
        list[SymbolRecord], Meta(description="The same figures for each instrument with closed signals.")
    ]
    equity: Annotated[
        list[EquitySum],
        Meta(
            description="In the order of closing, oldest first. At most 400 points; in a longer history, "
            "neighbouring signals share one."
        ),
    ]


SAMPLE = PublisherRecord(
    user="marta",
    active=1,
    signals=2,
    win_rate=0.5,
    expectancy_r=0.5,
    total_r=1.0,
    too_few=True,
    best_excursion_r=2.0,
    worst_excursion_r=-1.125,
    max_drawdown_r=1.0,
    max_drawdown_signals=1,
    closed_by=ClosedBy(take_profit=1, stop_loss=1, manual=0, expired=0, cancelled=0),
    by_symbol=[SymbolRecord("EURUSD", 1, 0.0, -1.0, -1.0), SymbolRecord("XAUUSD", 1, 1.0, 2.0, 2.0)],
    equity=[
        EquitySum(1, "2026-11-20T08:31:17.004Z", 2.0, 2.0, 2.0),
        EquitySum(2, "2026-11-20T11:02:54.310Z", 1.0, 1.0, 1.0),
    ],
)


class PublisherViewSet(KeyedViewSet):
    @describes(
        "getPublisher",
        PublisherRecord,
        "A publisher's scorecard",
        tag="Signals",
        examples={"A publisher with too few signals": SAMPLE},
        details="Covers all closed signals, including expired and cancelled ones. 1 R is what a signal "
        "risked: the distance from the price paid to the stop.",
        refusals=[NotFound(NO_SUCH_PUBLISHER)],
    )
    async def retrieve(self, user: str) -> Answer:
        body = await in_thread_promptly(read_scorecard, user)
        if body is None:
            raise NotFound(NO_SUCH_PUBLISHER)
        return Answer(body)


def read_scorecard(user: str) -> bytes | None:
    publisher = find(user)
    if publisher is None:
        return None
    return encode(record_of(publisher, scorecards.read(publisher)))


def record_of(publisher: Publisher, card: Scorecard) -> PublisherRecord:
    return PublisherRecord(
        user=publisher.name,
        active=publisher.active,
        signals=card.all.signals,
        win_rate=number(card.all.win_rate),
        expectancy_r=number(card.all.expectancy_r),
        total_r=float(card.all.total_r),
        too_few=card.too_few,
        best_excursion_r=number(card.best_r),
        worst_excursion_r=number(card.worst_r),
        max_drawdown_r=float(card.drawdown.deepest_r),
        max_drawdown_signals=card.drawdown.longest,
        closed_by=ClosedBy(**{reason: card.by_reason[reason] for reason in Signal.CloseReason.values}),
        by_symbol=[symbol_record(symbol, record) for symbol, record in card.by_symbol.items()],
        equity=[equity_sum(point) for point in card.equity.points],
    )


def symbol_record(symbol: str, record: TrackRecord) -> SymbolRecord:
    rates = number(record.win_rate), number(record.expectancy_r)
    return SymbolRecord(symbol, record.signals, *rates, float(record.total_r))


def equity_sum(point: EquityPoint) -> EquitySum:
    sums = float(point.equity_r), float(point.low_r), float(point.high_r)
    return EquitySum(point.signals, iso_time(point.closed_at), *sums)


def number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
