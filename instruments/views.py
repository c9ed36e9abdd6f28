"""GET /api/symbols, from memory."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.schema import describes
from core.plain_json import encode

from .catalogue import InstrumentFacts, catalogue
from .serializers import InstrumentListSerializer, InstrumentSerializer, SymbolsQuerySerializer

FIELDS = tuple(InstrumentSerializer().fields)


class SymbolViewSet(KeyedViewSet):
    @describes(
        "listSymbols",
        InstrumentListSerializer,
        "The instruments and their contract specifications",
        tag="Market",
        details="All instruments on offer, by symbol.",
        query=[SymbolsQuerySerializer],
        refused_queries=["expand=leverage"],
    )
    async def list(self, request: HttpRequest) -> Answer:
        expansions = self.parameters(request, SymbolsQuerySerializer)["expand"]
        items = [describe(facts, expansions) for facts in catalogue.active()]
        return Answer(encode({"items": items, "count": len(items)}))


def describe(facts: InstrumentFacts, expansions: tuple[str, ...]) -> dict[str, Any]:
    item = {field: getattr(facts, field) for field in FIELDS}
    return item | {name: expand(facts, name) for name in expansions}


def expand(facts: InstrumentFacts, name: str) -> Any:
    if name == "hours":
        return {"timezone": facts.timezone, "sessions": facts.sessions, "holidays": facts.holidays.split()}
    if name == "state":
        return catalogue.state_of(facts)
    return getattr(facts, name)
