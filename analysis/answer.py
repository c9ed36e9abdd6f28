"""The body of an analysis, as it is sent."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from core.struct_schemas import Date, Moment, Symbol, one_of, openapi
from news.labels import Label

Score = Annotated[float, Meta(ge=-1, le=1, description="−1 is bearish, 1 bullish.")]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[Share, Meta(description="Its share in the score.")]
Volume = Annotated[float, Meta(ge=0)]
Sentiment = Annotated[Label, Meta(description="Bullish from 0.15 upwards, bearish from −0.15 downwards.")]
CandleTimeframe = Annotated[str, Meta(description="The interval of the candles.")]
DriverName = Meta(description="Which driver it is.")
Grounds = Meta(description="What the finding is based on; null if there are no data.")


class WeighedItem(msgspec.Struct, frozen=True):
    id: Annotated[int, Meta(description="As in `/api/news?expand=id`.")]
    title: Annotated[str, Meta(description="The headline.")]
    sentiment: Sentiment
    sentiment_score: Score
    timestamp: Annotated[Moment, Meta(description="When it was published.")]
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
    timeframe: CandleTimeframe
    weight: Weight
    score: Score
    spread: Annotated[float, Meta(description="EMA 20 − EMA 50, in average true ranges.")]
    slope: Annotated[float, Meta(description="EMA 20 over five candles, in average true ranges.")]
    position: Annotated[float, Meta(description="Price − EMA 20, in average true ranges.")]


class TrendEvidence(msgspec.Struct, frozen=True):
    timeframes: Annotated[list[TimeframeTrend], Meta(description="The trend in each timeframe.")]


class VolatilityEvidence(msgspec.Struct, frozen=True):
    timeframe: CandleTimeframe
    atr_percent: Annotated[float, Meta(ge=0, description="Average true range, in percent of the price.")]
    percentile: Annotated[float, Meta(ge=0, le=1, description="Among the last 240 hours.")]
    confidence_factor: Annotated[Share, Meta(description="What the confidence is multiplied by.")]


class WindowDelta(msgspec.Struct, frozen=True):
    minutes: Annotated[int, Meta(ge=1, description="Length of the window.")]
    bid_volume: Annotated[Volume, Meta(description="The volume that takers sold.")]
    ask_volume: Annotated[Volume, Meta(description="The volume that takers bought.")]
    delta: Annotated[float, Meta(description="ask_volume − bid_volume")]
    count: Annotated[int, Meta(ge=0, description="Ticks or trades in it.")]


class OrderFlowEvidence(msgspec.Struct, frozen=True):
    source: Annotated[
        Literal["trades", "tick_rule"],
        Meta(description="Whether the sides are those of trades or estimated by the tick rule."),
    ]
    cumulative_delta: Annotated[float | None, Meta(description="Since 00:00 UTC.")]
    since: Annotated[
        Moment, Meta(description="Nothing was received before this time, so a longer window is incomplete.")
    ]
    windows: Annotated[list[WindowDelta], Meta(description="Shortest first.")]


class SignalsEvidence(msgspec.Struct, frozen=True):
    buys: Annotated[int, Meta(ge=0, description="Active signals that buy.")]
    sells: Annotated[int, Meta(ge=0, description="Active signals that sell.")]
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
    weight: Weight
    direction: Sentiment
    score: Score
    contribution: Annotated[float, Meta(ge=-1, le=1, description="Weight times score.")]
    text: Annotated[str, Meta(description="The finding, in a sentence.")]
    evidence: Evidence | None


class TrendDriver(AnyDriver, frozen=True, kw_only=True):
    name: Annotated[Literal["trend"], DriverName] = "trend"
    evidence: Annotated[TrendEvidence | None, Grounds]


class NewsDriver(AnyDriver, frozen=True, kw_only=True):
    name: Annotated[Literal["news"], DriverName] = "news"
    evidence: Annotated[NewsEvidence | None, Grounds]


class SignalsDriver(AnyDriver, frozen=True, kw_only=True):
    name: Annotated[Literal["signals"], DriverName] = "signals"
    evidence: Annotated[SignalsEvidence | None, Grounds]


class OrderFlowDriver(AnyDriver, frozen=True, kw_only=True):
    name: Annotated[Literal["order_flow"], DriverName] = "order_flow"
    evidence: Annotated[OrderFlowEvidence | None, Grounds]


class VolatilityDriver(AnyDriver, frozen=True, kw_only=True):
    name: Annotated[Literal["volatility"], DriverName] = "volatility"
    evidence: Annotated[VolatilityEvidence | None, Grounds]


Driver = Annotated[
    TrendDriver | NewsDriver | SignalsDriver | OrderFlowDriver | VolatilityDriver, one_of("Driver", "name")
]


class PriceLevel(msgspec.Struct, frozen=True):
    component: ClassVar[str] = "Level"

    price: Annotated[float, Meta(description="The price of the level.")]
    touches: Annotated[int, Meta(ge=1, description="How often the price has turned there.")]


class Bands(msgspec.Struct, frozen=True):
    upper_2: Annotated[float, Meta(description="The price plus two average hourly ranges.")]
    upper_1: Annotated[float, Meta(description="The price plus one average hourly range.")]
    lower_1: Annotated[float, Meta(description="The price minus one average hourly range.")]
    lower_2: Annotated[float, Meta(description="The price minus two average hourly ranges.")]


class DayRange(msgspec.Struct, frozen=True):
    date: Annotated[Date, Meta(description="The UTC day.")]
    high: Annotated[float, Meta(description="The highest price so far.")]
    low: Annotated[float, Meta(description="The lowest price so far.")]


class PriceLevels(msgspec.Struct, frozen=True):
    component: ClassVar[str] = "Levels"

    supports: Annotated[list[PriceLevel], Meta(description="Below the price, nearest first; three at most.")]
    resistances: Annotated[
        list[PriceLevel], Meta(description="Above the price, nearest first; three at most.")
    ]
    atr_bands: Annotated[
        Bands | None, Meta(description="How far the price usually moves in an hour; null if unknown.")
    ]
    day: Annotated[DayRange | None, Meta(description="The range of the current day; null without prices.")]


class AsOf(msgspec.Struct, frozen=True):
    quote: Annotated[Moment | None, Meta(description="The time of the quote.")]
    candles: Annotated[Moment | None, Meta(description="The end of the last closed candle.")]
    order_flow: Annotated[Moment | None, Meta(description="The last tick or trade.")]
    news: Annotated[Moment | None, Meta(description="The newest item.")]
    signals: Annotated[Moment | None, Meta(description="The newest signal.")]


class Analysis(msgspec.Struct, frozen=True):
    symbol: Symbol
    model: Annotated[str, Meta(description="Who answered.")]
    generated_at: Annotated[Moment, Meta(description="When the inputs were read.")]
    market_state: Annotated[
        str, openapi(enum=("open", "closed", "stale"), description="The state of the market at that time.")
    ]
    price: Annotated[float | None, Meta(description="The mid price at that time.")]
    direction: Sentiment
    score: Annotated[
        float,
        Meta(ge=-1, le=1, description="For our own model, the sum of the drivers' contributions."),
    ]
    confidence: Annotated[Share, Meta(description="How sure the direction is.")]
    summary: Annotated[str, Meta(description="The analysis in a few sentences.")]
    weights_sum: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The sum of the weights of the drivers that had data; the others count as neutral.",
        ),
    ]
    drivers: Annotated[list[Driver], Meta(description="The inputs, each with its finding.")]
    levels: Annotated[PriceLevels, Meta(description="Prices to watch.")]
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
