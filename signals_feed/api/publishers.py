"""GET /api/publishers/{user}: how well a publisher does, over every signal."""

from decimal import Decimal
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta
from rest_framework.request import Request

from core.contract.answers import Answer
from core.contract.errors import NotFound
from core.contract.parameters import describes
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol
from core.threads import in_thread_promptly
from core.times import iso_time
from core.viewset import ApiViewSet
from signals_feed.marks import Mark
from signals_feed.models import Signal
from signals_feed.publisher_checks import MOST_CHECKED, CheckedResults, checked_results
from signals_feed.publishers.lookup import NO_SUCH_PUBLISHER, Publisher, find, scorecards
from signals_feed.publishers.purses import Standing
from signals_feed.publishers.record import EquityPoint, ListName, Scorecard, TrackRecord
from signals_feed.publishers.standings import is_quiet
from signals_feed.wire import Publisher as PublisherName

ClosedCount = Annotated[int, Meta(ge=0, description="The number of closed signals; all of them count.")]
EpisodeCount = Annotated[
    int,
    Meta(
        ge=0,
        description="Signals of one instrument and direction that begin while the first of them is open are "
        "one episode. Its result is the lower of its first signal's and the mean of all, with open signals "
        "at their present price.",
    ),
]
WinRate = Annotated[
    float | None,
    Meta(
        description="Share of episodes with a result above 0. Open ones that are behind are losses, other "
        "open ones do not count; null while none counts."
    ),
]
ExpectancyR = Annotated[
    float | None, Meta(description="Mean result of an episode, in R; null before the first.")
]
TotalR = Annotated[float, Meta(description="Sum of the results of all episodes, in R.")]


class SymbolRecord(msgspec.Struct):
    symbol: Symbol
    signals: ClosedCount
    episodes: EpisodeCount
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

    signals: Annotated[
        int, Meta(ge=1, description="The number of signals so far; only the last point may have open ones.")
    ]
    time: Annotated[Moment, Meta(description="When the last of them closed; now, if some are open.")]
    r: Annotated[float, Meta(description="Sum of the results of episodes up to here.")]
    low_r: Annotated[float, Meta(description="Lowest sum since the previous point.")]
    high_r: Annotated[float, Meta(description="Highest sum since the previous point.")]


class PublisherRank(msgspec.Struct):
    list: Annotated[
        ListName,
        Meta(
            description="By the feed that filled the signals: a venue; prices that were pushed to the "
            "service, or came from another address than the venue's own; simulated ones."
        ),
    ]
    evidence: Annotated[
        float,
        Meta(ge=0, description="Without skill, fewer than one account in that many ever has so much."),
    ]
    at_least_r: Annotated[
        float | None,
        Meta(
            description="How much lower every result could be with `evidence` still at 20. The list is by "
            "it; null below 20."
        ),
    ]
    proven: Annotated[bool, Meta(description="`evidence` has reached 5,000 and stands at 20 or more.")]
    ranked: Annotated[
        bool, Meta(description="`at_least_r` is above 0, and the last publication at most 90 days ago.")
    ]


def how_many(mark: Mark) -> Meta:
    return Meta(ge=0, description=mark.meaning)


class MarkCounts(msgspec.Struct):
    checked: Annotated[int, Meta(ge=0, description="How many signals these are.")]
    verified_at_venue: Annotated[int, how_many(Mark.VENUE)]
    recorded_here: Annotated[int, how_many(Mark.RECORDED)]
    demonstration: Annotated[int, how_many(Mark.DEMONSTRATION)]
    not_verified: Annotated[int, how_many(Mark.NOT_VERIFIED)]
    witnessed_before_end: Annotated[
        int, Meta(ge=0, description="How many of them a witness saw before they ended.")
    ]


class PublisherRecord(msgspec.Struct):
    component: ClassVar[str] = "Publisher"

    user: PublisherName
    ranks: Annotated[
        list[PublisherRank],
        Meta(
            description="One for each list with signals of this publisher. Signals by the rules of before "
            "are in none."
        ),
    ]
    active: Annotated[int, Meta(ge=0, description="Signals that are still open.")]
    waiting: Annotated[
        int, Meta(ge=0, description="Those of them that wait for their fill, in no figure but `active`.")
    ]
    signals: ClosedCount
    unfilled: Annotated[
        int, Meta(ge=0, description="Signals that ended without a fill; they are in no other figure.")
    ]
    contradicted: Annotated[
        int,
        Meta(
            ge=0,
            description="Signals whose record contradicts its own evidence, the rules or the ledger. None "
            "of them counts as a gain in any figure; a loss counts.",
        ),
    ]
    unjudged: Annotated[
        int,
        Meta(
            ge=0,
            description="Signals that the service has not judged since it was started. Until it has, none "
            "of them counts as a gain, and `ranks` is empty.",
        ),
    ]
    episodes: EpisodeCount
    win_rate: WinRate
    expectancy_r: ExpectancyR
    total_r: TotalR
    too_few: Annotated[
        bool, Meta(description="Fewer than 30 episodes have ended, so the figures say little yet.")
    ]
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
            description="Deepest fall of `total_r` below its highest point, which starts at 0.",
        ),
    ]
    max_drawdown_signals: Annotated[
        int,
        Meta(ge=0, description="Most signals in a row after which the sum was below its highest point."),
    ]
    marks: Annotated[
        MarkCounts,
        Meta(description=f"Of open signals and the newest {MOST_CHECKED} results, in the last five minutes."),
    ]
    closed_by: Annotated[ClosedBy, Meta(description="How many signals closed for each reason.")]
    by_symbol: Annotated[
        list[SymbolRecord], Meta(description="The same figures for each instrument with filled signals.")
    ]
    equity: Annotated[
        list[EquitySum],
        Meta(
            description="In the order in which episodes ended, oldest first; all open ones make the last "
            "point. At most 400 points; in a longer history, neighbouring episodes share one."
        ),
    ]


SAMPLE = PublisherRecord(
    user="marta",
    ranks=[PublisherRank("venue", 1.03, None, proven=False, ranked=False)],
    active=1,
    waiting=1,
    signals=2,
    unfilled=0,
    contradicted=0,
    unjudged=0,
    episodes=2,
    win_rate=0.5,
    expectancy_r=0.5,
    total_r=1.0,
    too_few=True,
    best_excursion_r=2.0,
    worst_excursion_r=-1.125,
    max_drawdown_r=1.0,
    max_drawdown_signals=1,
    marks=MarkCounts(2, 2, 0, 0, 0, witnessed_before_end=2),
    closed_by=ClosedBy(take_profit=1, stop_loss=1, manual=0, expired=0, cancelled=0),
    by_symbol=[SymbolRecord("EURUSD", 1, 1, 0.0, -1.0, -1.0), SymbolRecord("XAUUSD", 1, 1, 1.0, 2.0, 2.0)],
    equity=[
        EquitySum(1, "2026-11-20T08:31:17.004Z", 2.0, 2.0, 2.0),
        EquitySum(2, "2026-11-20T11:02:54.310Z", 1.0, 1.0, 1.0),
    ],
)


class PublisherViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "user", "[^/]+"

    @describes(
        "getPublisher",
        PublisherRecord,
        "A publisher's scorecard",
        tag="Signals",
        examples={"A publisher with too few signals": SAMPLE},
        details="Covers all signals that were filled, including expired and cancelled ones, and open ones at "
        "their present price, as far as it may be shown. 1 R is what a signal risked: the distance from the "
        "price paid to the stop. Under a former name of the publisher, the answer is the present record, "
        "whose `user` is the present name.",
        refusals=[NotFound(NO_SUCH_PUBLISHER)],
    )
    async def retrieve(self, request: Request, user: str) -> Answer:
        body = await in_thread_promptly(read_scorecard, user)
        if body is None:
            raise NotFound(NO_SUCH_PUBLISHER)
        return Answer(body)


def read_scorecard(user: str) -> bytes | None:
    publisher = find(user)
    if publisher is None:
        return None
    return encode(record_of(publisher, scorecards.read(publisher), checked_results.of(publisher)))


def record_of(publisher: Publisher, card: Scorecard, found: CheckedResults) -> PublisherRecord:
    figures = card.figures
    return PublisherRecord(
        user=publisher.name,
        ranks=[rank_of(publisher, name, standing) for name, standing in card.standings.items()],
        active=publisher.active,
        waiting=publisher.waiting,
        signals=card.closed,
        unfilled=card.unfilled,
        contradicted=card.contradicted,
        unjudged=card.unjudged,
        episodes=figures.all.episodes,
        win_rate=number(figures.all.win_rate),
        expectancy_r=number(figures.all.expectancy_r),
        total_r=float(figures.all.total_r),
        too_few=figures.all.too_few,
        best_excursion_r=number(card.best_r),
        worst_excursion_r=number(card.worst_r),
        max_drawdown_r=float(figures.drawdown.deepest_r),
        max_drawdown_signals=figures.drawdown.longest,
        marks=MarkCounts(
            checked=found.checked,
            **{mark.value: found.marks[mark] for mark in Mark},
            witnessed_before_end=found.witnessed_before_end,
        ),
        closed_by=ClosedBy(**{reason: card.by_reason[reason] for reason in Signal.CloseReason.values}),
        by_symbol=[symbol_record(symbol, record) for symbol, record in figures.by_symbol.items()],
        equity=[equity_sum(point) for point in figures.equity.points],
    )


def rank_of(publisher: Publisher, name: ListName, standing: Standing) -> PublisherRank:
    return PublisherRank(
        name,
        round(standing.evidence, 4),
        standing.at_least_r,
        proven=standing.is_proven,
        ranked=standing.is_told_from_luck and not is_quiet(publisher),
    )


def symbol_record(symbol: str, record: TrackRecord) -> SymbolRecord:
    rates = number(record.win_rate), number(record.expectancy_r)
    return SymbolRecord(symbol, record.signals, record.episodes, *rates, float(record.total_r))


def equity_sum(point: EquityPoint) -> EquitySum:
    sums = float(point.equity_r), float(point.low_r), float(point.high_r)
    return EquitySum(point.signals, iso_time(point.at), *sums)


def number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
