"""GET /api/analysis/{symbol}: the operation that costs an AI call."""

from math import exp, sin

import msgspec
from django.http import HttpResponseBase
from rest_framework.request import Request

from accounts.authentication import caller_of
from core.contract.answers import Answer
from core.contract.errors import AiQuotaExceeded, ApiError, ModelUnavailable, SymbolNotFound
from core.contract.parameters import ChoiceParameter, QuerySerializer, describes
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue
from market.prices import TIMEFRAMES

from .analyses import AiCallCharge, analyses
from .analysts import built_in_analyst, identifiers
from .answer import AnsweredAnalysis
from .built_in import analyse
from .drivers import TREND_WEIGHTS
from .facts import AnalysedBar, Facts, FlowFact, FlowWindow, NewsFact, QuoteFact, SignalFact

# The example in the API reference: an analysis that the model makes of an invented afternoon.
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


def sample_facts() -> Facts:
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


SAMPLE = AnsweredAnalysis(**msgspec.structs.asdict(analyse(sample_facts())), cached=False)


class AnalysisQuerySerializer(QuerySerializer):
    model = ChoiceParameter(
        identifiers, help_text="The model that should answer; by default, the best one available."
    )


class AnalysisViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "symbol", "[^/]+"
    charge: AiCallCharge | None = None

    @describes(
        "getAnalysis",
        AnsweredAnalysis,
        "What the data say about one instrument",
        tag="Analysis",
        examples={"EURUSD on an afternoon": SAMPLE},
        details="Drivers with their weights and evidence, levels, a direction and a confidence. An answer "
        "that is generated for you costs an AI call in addition to the request; one that is less than five "
        "minutes old, or that another request is already generating, costs only the request, and so does "
        "a failure. `X-AI-*` say how many calls are left in the UTC day. Without `model`, a language "
        f"model answers if one is configured and available, otherwise `{built_in_analyst.identifier}`, "
        "which always does.",
        query=[AnalysisQuerySerializer],
        refusals=(
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            AiQuotaExceeded(
                "The Pro tier allows 20 AI calls a day, and today's are used up. New ones begin at 00:00 "
                "UTC, in 9 h 57 min; cached answers remain free.",
                retry_after=35_793,
            ),
            ModelUnavailable(
                "gpt-5-mini is not responding at the moment, and nothing was counted. "
                f"Try again in 30 s, or ask {built_in_analyst.identifier}, which always answers.",
                retry_after=30,
            ),
        ),
        headers=["X-AI-Limit", "X-AI-Remaining", "X-AI-Reset"],
    )
    async def retrieve(self, request: Request, symbol: str) -> Answer:
        self.charge = charge = await AiCallCharge.of(caller_of(request))
        try:
            instrument = catalogue.get(symbol)
            model = self.parameters(AnalysisQuerySerializer)["model"]
        except ApiError:
            # As everywhere, a used-up limit is reported before a mistake in the request.
            if charge.has_none_left:
                raise charge.refusal() from None
            raise
        answered = await analyses.answer(instrument, model, charge)
        return Answer(
            b'{%s,"cached":%s}' % (answered.fields, b"true" if answered.was_made_before else b"false")
        )

    def finalize_response(self, request: Request, answer: Answer) -> HttpResponseBase:  # type: ignore[override]
        """An answer and a refusal say how many calls are left."""
        if self.charge is not None:
            self.headers |= self.charge.standing.headers()
        return super().finalize_response(request, answer)
