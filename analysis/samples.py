"""The example in the API reference: an analysis that the model makes of an invented afternoon."""

from math import exp, sin

import msgspec

from analysis.drivers import TREND_WEIGHTS
from market.prices import TIMEFRAMES

from .answer import AnsweredAnalysis
from .built_in import analyse
from .facts import AnalysedBar, Facts, FlowFact, FlowWindow, NewsFact, QuoteFact, SignalFact

AT_MS = 1_795_183_407_250
HOUR_MS = TIMEFRAMES["1h"]


def bars_of(timeframe: str, count: int = 120) -> tuple[AnalysedBar, ...]:
    """Candles of a rising wave."""
    span_ms = TIMEFRAMES[timeframe]
    last_ms = AT_MS - AT_MS % span_ms - span_ms
    height = 0.0004 * (span_ms / HOUR_MS) ** 0.5
    closes = [
        1.0841 * exp(height * (sin(number / 4) + (number - count) / 12)) for number in range(1, count + 1)
    ]
    return tuple(
        AnalysedBar(
            last_ms - (count - number - 1) * span_ms, close * exp(height), close * exp(-height), close
        )
        for number, close in enumerate(closes)
    )


def facts() -> Facts:
    return Facts(
        symbol="EURUSD",
        digits=5,
        category="forex",
        at_ms=AT_MS,
        state="open",
        quote=QuoteFact(1.0841, 1.08424, AT_MS - 250),
        bars={timeframe: bars_of(timeframe) for timeframe in TREND_WEIGHTS},
        day=AnalysedBar(AT_MS - AT_MS % TIMEFRAMES["1d"], 1.08501, 1.08192, 1.08417),
        flow=FlowFact(
            (FlowWindow(5, 96, 131, 227), FlowWindow(15, 288, 341, 629), FlowWindow(60, 1204, 1266, 2470)),
            cumulative_delta=214,
            has_sides=False,
            since_ms=AT_MS - 30 * HOUR_MS,
            last_ms=AT_MS - 250,
        ),
        news=(
            NewsFact(412, "Euro climbs as German factory orders rebound", 0.62, AT_MS - 3 * HOUR_MS, True),
            NewsFact(398, "Dollar steady before the payrolls report", 0.05, AT_MS - 9 * HOUR_MS, False, -1),
        ),
        signals=(
            SignalFact(1, 1.0838, 1.081, AT_MS - 5 * HOUR_MS),
            SignalFact(1, 1.083, 1.0804, AT_MS - 30 * HOUR_MS),
            SignalFact(-1, 1.0852, 1.0879, AT_MS - 2 * HOUR_MS),
        ),
    )


SAMPLE = AnsweredAnalysis(**msgspec.structs.asdict(analyse(facts())), cached=False)
