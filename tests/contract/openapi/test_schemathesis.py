"""Whatever the OpenAPI document allows or forbids, the server does what it says. No check is off."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder

from tests.client import Api, Server
from tests.contract.published import make_shown
from tests.factories import make_instrument, make_news, make_signal, put_candles, put_quote
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.served

HOUR_MS = 3_600_000
# What a cursor may be, and which moments make a span, a schema cannot say: what fits to it may be a 400.
WITH_SPANS = ["listArchive", "getHistory", "getTicks", "getOrderFlow", "listNews", "listSignals"]
MAY_BE_REFUSED = {
    "positive_data_acceptance": {
        "expected-statuses": ["2xx", "3xx", "400", "401", "403", "404", "409", "429", "5xx"]
    }
}


@pytest.fixture(scope="module")
def market(shared_server: Server) -> None:
    """Something of everything, under the symbols that the document gives as examples."""
    for symbol in ("EURUSD", "XAUUSD"):
        instrument = make_instrument(symbol)
        put_quote(symbol)
        put_candles(symbol, "1h", [HOUR_MS * number for number in range(3)])
        make_signal(instrument)
        make_signal(instrument, status="closed")
    make_shown(instrument)
    make_news()


@pytest.fixture(scope="module")
def examples() -> int:
    """Of each operation; tests/nightly asks for more, and for sequences of requests."""
    return 5


@pytest.fixture(scope="module")
def scenarios(market: None, shared: Api, examples: int) -> list[ScenarioRecorder]:
    """What the engine asked and found: examples, boundaries, random values, then sequences of requests."""
    config = schemathesis.Config.from_dict(
        {
            "seed": 7,
            "base-url": str(shared.base_url),
            "auth": {"openapi": {"ApiKey": {"api_key": shared.key}}},
            # Generated keys would use up what one address may fail, and then everything keyless is a 429;
            # the check `ignored_auth` asks every operation without a key and with a bad one all the same.
            "generation": {
                "deterministic": True,
                "max-examples": examples,
                "with-security-parameters": False,
            },
            "phases": {"stateful": {"enabled": examples > 5}},
            "operations": [{"include-operation-id": WITH_SPANS, "checks": MAY_BE_REFUSED}],
        }
    )
    served = httpx.get(f"{shared.base_url}/openapi.json", timeout=PATIENCE_S).json()
    for methods in served["paths"].values():
        # With it, every status would be as described.
        del methods["get"]["responses"]["default"]
    return list(run(schemathesis.openapi.from_dict(served, config=config)))


def run(schema: schemathesis.BaseSchema) -> Iterator[ScenarioRecorder]:
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            yield event.recorder
        elif isinstance(event, events.NonFatalError):
            raise AssertionError(str(event.value))
        elif isinstance(event, events.FatalError):
            raise event.exception


def test_server_keeps_to_its_document(scenarios: list[ScenarioRecorder]) -> None:
    checks = [check for scenario in scenarios for checks in scenario.checks.values() for check in checks]
    failed = [check.failure_info for check in checks if check.failure_info is not None]
    assert [f"{each.failure.message}\n{each.code_sample}" for each in failed] == []


def test_every_kind_of_answer_was_met(scenarios: list[ScenarioRecorder]) -> None:
    statuses = {
        interaction.response.status_code
        for scenario in scenarios
        for interaction in scenario.interactions.values()
        if interaction.response is not None
    }
    assert statuses >= {200, 400, 401, 404, 405}
