"""GET /api/analysis/{symbol}: the operation that costs an AI call."""

from django.http import HttpResponseBase
from rest_framework.request import Request

from accounts.authentication import caller_of
from core.contract.answers import Answer
from core.contract.errors import AiQuotaExceeded, ApiError, ModelUnavailable, SymbolNotFound
from core.contract.parameters import ChoiceParameter, QuerySerializer, describes
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue

from .analyses import AiCallCharge, analyses
from .analysts import built_in_analyst, identifiers
from .answer import AnsweredAnalysis
from .samples import SAMPLE


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
