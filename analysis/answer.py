"""The body of an analysis, as it is sent."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from core.struct_schemas import Date, Moment, one_of, openapi
from news.labels import Label

Score = Annotated[float, Meta(ge=-1, le=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Volume = Annotated[float, Meta(ge=0)]


class WeighedItem(msgspec.Struct, frozen=True):
    id: Annotated[int, Meta(description="As in `/api/news?expand=id`.")]
    title: str
    sentiment: Label
    sentiment_score: Score
    timestamp: Moment
    relevance: Annotated[
        Literal["symbol", "category"],
        Meta(description="The item names the instrument, or belongs to its category."),
    ]
    side: Annotated[
        int,
        Meta(
            ge=-1,
            le=1,
            description="1, or −1 where good news lowers the price, as news about the yen does for USDJPY.",
        ),
    ]
    weight: Annotated[
        float,
        Meta(ge=0, le=1, description="Its share in the driver's score, times its own score and `side`."),
    ]


class NewsEvidence(msgspec.Struct, frozen=True):
    considered: Annotated[int, Meta(ge=1, description="Items of the last 72 hours.")]
    items: Annotated[list[WeighedItem], Meta(description="The items with the most weight, eight at most.")]


class TimeframeTrend(msgspec.Struct, frozen=True):
    timeframe: str
    weight: Share
    score: Score
    spread: Annotated[float, Meta(description="EMA 20 − EMA 50, in average true ranges.")]
    slope: Annotated[float, Meta(description="EMA 20 over five candles, in average true ranges.")]
    position: Annotated[float, Meta(description="Price − EMA 20, in average true ranges.")]


class TrendEvidence(msgspec.Struct, frozen=True):
    timeframes: list[TimeframeTrend]


class VolatilityEvidence(msgspec.Struct, frozen=True):
    timeframe: str
    atr_percent: Volume
    percentile: Annotated[float, Meta(ge=0, le=1, description="Among the last 240 hours.")]
    confidence_factor: Share


class WindowDelta(msgspec.Struct, frozen=True):
    minutes: Annotated[int, Meta(ge=1)]
    bid_volume: Volume
    ask_volume: Volume
    delta: Annotated[float, Meta(description="ask_volume − bid_volume")]
    count: Annotated[int, Meta(ge=0, description="Ticks or trades in it.")]


class OrderFlowEvidence(msgspec.Struct, frozen=True):
    source: Literal["trades", "tick_rule"]
    cumulative_delta: Annotated[float | None, Meta(description="Since 00:00 UTC.")]
    since: Annotated[
        Moment, Meta(description="Nothing was received before this time, so a longer window is incomplete.")
    ]
    windows: list[WindowDelta]


class SignalsEvidence(msgspec.Struct, frozen=True):
    buys: Annotated[int, Meta(ge=0)]
    sells: Annotated[int, Meta(ge=0)]
    r_at_risk: Annotated[
        float,
        Meta(
            ge=0,
            description="What all of them would lose from the current price to their stops, in "
            "units of their risk.",
        ),
    ]


Evidence = NewsEvidence | TrendEvidence | VolatilityEvidence | OrderFlowEvidence | SignalsEvidence


class Finding(msgspec.Struct, frozen=True):
    """What a driver found: a sentence, a score from -1 to 1 and evidence. Without data there is no score."""

    text: str
    score: float | None = None
    evidence: Evidence | None = None


class AnyDriver(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    available: Annotated[bool, Meta(description="False if there are no data; the driver then has no weight.")]
    weight: Share
    direction: Label
    score: Score
    contribution: Annotated[float, Meta(ge=-1, le=1, description="Weight times score.")]
    text: Annotated[str, Meta(description="The finding, in a sentence.")]
    evidence: Evidence | None


class TrendDriver(AnyDriver, frozen=True, kw_only=True):
    name: Literal["trend"] = "trend"
    evidence: TrendEvidence | None


class NewsDriver(AnyDriver, frozen=True, kw_only=True):
    name: Literal["news"] = "news"
    evidence: NewsEvidence | None


class SignalsDriver(AnyDriver, frozen=True, kw_only=True):
    name: Literal["signals"] = "signals"
    evidence: SignalsEvidence | None


class OrderFlowDriver(AnyDriver, frozen=True, kw_only=True):
    name: Literal["order_flow"] = "order_flow"
    evidence: OrderFlowEvidence | None


class VolatilityDriver(AnyDriver, frozen=True, kw_only=True):
    name: Literal["volatility"] = "volatility"
    evidence: VolatilityEvidence | None


Driver = Annotated[
    TrendDriver | NewsDriver | SignalsDriver | OrderFlowDriver | VolatilityDriver, one_of("Driver", "name")
]


class PriceLevel(msgspec.Struct, frozen=True):
    component: ClassVar[str] = "Level"

    price: float
    touches: Annotated[int, Meta(ge=1, description="How often the price has turned there.")]


class Bands(msgspec.Struct, frozen=True):
    upper_2: float
    upper_1: Annotated[float, Meta(description="The price and one average hourly range.")]
    lower_1: float
    lower_2: float


class DayRange(msgspec.Struct, frozen=True):
    date: Annotated[Date, Meta(description="The UTC day.")]
    high: float
    low: float


class PriceLevels(msgspec.Struct, frozen=True):
    component: ClassVar[str] = "Levels"

    supports: Annotated[list[PriceLevel], Meta(description="Below the price, nearest first; three at most.")]
    resistances: Annotated[
        list[PriceLevel], Meta(description="Above the price, nearest first; three at most.")
    ]
    atr_bands: Bands | None
    day: DayRange | None


class AsOf(msgspec.Struct, frozen=True):
    quote: Moment | None
    candles: Annotated[Moment | None, Meta(description="The end of the last closed candle.")]
    order_flow: Moment | None
    news: Moment | None
    signals: Moment | None


class Analysis(msgspec.Struct, frozen=True):
    symbol: str
    model: Annotated[str, Meta(description="Who answered.")]
    generated_at: Annotated[Moment, Meta(description="When the inputs were read.")]
    market_state: Annotated[str, openapi(enum=("open", "closed", "stale"))]
    price: Annotated[float | None, Meta(description="The mid price at that time.")]
    direction: Annotated[Label, Meta(description="Bullish from 0.15 upwards, bearish from −0.15 downwards.")]
    score: Annotated[
        float,
        Meta(ge=-1, le=1, description="For our own model, the sum of the drivers' contributions."),
    ]
    confidence: Share
    summary: str
    weights_sum: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The sum of the weights of the drivers that had data; the others count as neutral.",
        ),
    ]
    drivers: list[Driver]
    levels: PriceLevels
    as_of: Annotated[AsOf, Meta(description="How recent each input was; null where there was none.")]


class AnsweredAnalysis(Analysis, frozen=True):
    """The fields of `Analysis` are cached in encoded form; `cached` is added to each answer."""

    component: ClassVar[str] = "Analysis"

    cached: Annotated[
        bool,
        Meta(
            description="The answer was made by an earlier request or by somebody else's, so it "
            "cost no AI call."
        ),
    ]
