"""Analyses by a language model at an endpoint: same shape, our numbers, and free where it fails."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from httpx import Response

from news.language_models import language_models
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.factories import make_account, make_instrument, make_key, make_tier, put_candles, put_quote
from tests.news.language.language_server import KEY, Act, LanguageServer, answer, says
from tests.patience import PATIENCE_S

# A day that ended between two calls would give the allowance anew.
pytestmark = pytest.mark.usefixtures("clock")
OURS, THEIRS = "tickwire-analyst-1", "words-1"
SUMMARY = "The pair drifts lower while its buyers wait, and nothing in the data speaks against it."
HOUR_MS = 3_600_000
_numbers = itertools.count(1)


@pytest.fixture
def language(shared_server: Server) -> Iterator[LanguageServer]:
    """An endpoint that the settings name, new and with no fault on its record."""
    endpoint = LanguageServer()
    shared_server.run(endpoint.__aenter__())
    facts = {"protocol": "openai", "base_url": f"{endpoint.url}/v1", "model": THEIRS, "key": KEY}
    with override_settings(LANGUAGE_ENDPOINTS=[facts | {"timeout_s": PATIENCE_S, "daily_budget": 100}]):
        language_models.cache_clear()
        yield endpoint
    language_models.cache_clear()
    shared_server.run(endpoint.__aexit__(None, None, None))


@pytest.fixture
def key(shared: Api) -> str:
    return make_key(make_account(tier=make_tier("five", ai_calls_per_day=5)))


@pytest.fixture
def symbol(shared: Api) -> str:
    """An instrument of this test alone, in a market that rises."""
    name = f"PAIR{next(_numbers)}"
    make_instrument(name)
    put_quote(name)
    put_candles(name, "1h", [number * HOUR_MS for number in range(80)])
    return name


def opinion(score: float = -0.4, summary: str = SUMMARY, **more: Any) -> Act:
    return says("openai", json.dumps({"score": score, "summary": summary, **more}))


def ask(shared: Api, symbol: str, key: str, model: str | None = THEIRS) -> Response:
    return shared.ask(f"/api/analysis/{symbol}" + (f"?model={model}" if model else ""), key=key)


def left(shared: Api, key: str) -> int:
    remaining: int = shared.ask("/api/limits", key=key).json()["ai_calls"]["remaining"]
    return remaining


def test_model_judges_by_the_drivers_and_the_numbers_stay_ours(
    shared: Api, language: LanguageServer, symbol: str, key: str
) -> None:
    language.acts = [opinion(-0.9)]
    ours, theirs, *again = (ask(shared, symbol, key, model).json() for model in (OURS, THEIRS) * 2)
    assert (theirs["model"], theirs["cached"]) == (THEIRS, False)
    assert (theirs["score"], theirs["direction"], theirs["summary"]) == (-0.9, "bearish", SUMMARY)
    assert (theirs["drivers"], theirs["levels"]) == (ours["drivers"], ours["levels"])
    assert set(theirs) == set(ours)
    # An opposite verdict halves the confidence.
    assert ours["direction"] != theirs["direction"]
    assert theirs["confidence"] == pytest.approx(ours["confidence"] / 2, abs=0.01)
    assert again == [ours | {"cached": True}, theirs | {"cached": True}]
    assert left(shared, key) == 3
    (asked,) = language.asked
    material = json.loads(asked.body["messages"][-1]["content"])
    assert {"drivers", "levels", "as_of", "symbol"} <= set(material)
    assert not {"direction", "score", "confidence", "summary"} & set(material)


BAD = {
    "fault": answer(500, {"error": {"message": "down"}}),
    "no JSON": says("openai", "Well, bullish I guess."),
    "score out of range": opinion(1.5),
    "no summary": opinion(summary=""),
    "more than was asked": opinion(levels=[1.5]),
    "link": opinion(summary=f"{SUMMARY} More at https://airdrop.example, free of charge."),
    "bare link": opinion(summary=f"{SUMMARY} More at WWW.airdrop.example, free of charge."),
    "invented number": opinion(summary=f"{SUMMARY} Its target is 1.2345678."),
}


@pytest.mark.parametrize("act", BAD.values(), ids=BAD)
def test_bad_answer_is_refused_and_free(
    shared: Api, language: LanguageServer, symbol: str, key: str, act: Act
) -> None:
    language.acts = [act, opinion()]
    response = ask(shared, symbol, key)
    assert OURS in refusal(response, 503, "model_unavailable")
    assert int(response.headers["Retry-After"]) >= 1
    assert response.headers["X-AI-Remaining"] == "5"
    assert left(shared, key) == 5
    # It is not cached.
    assert ask(shared, symbol, key).status_code == 200
    unknown = ask(shared, symbol, key, "oracle")
    refusal(unknown, 400, "invalid_parameter", field="model", allowed=[OURS, THEIRS])


def test_healthy_model_answers_where_none_was_named(
    shared: Api, language: LanguageServer, symbol: str, key: str
) -> None:
    language.acts = [opinion()]
    before = ask(shared, symbol, key, None).json()["model"]
    ask(shared, symbol, key, THEIRS)
    assert before == OURS
    assert ask(shared, symbol, key, None).json()["model"] == THEIRS


def test_ours_answers_where_none_was_named_and_the_other_fails(
    shared: Api, language: LanguageServer, symbol: str, key: str
) -> None:
    make_instrument(f"{symbol}X")
    language.acts = [opinion(), answer(500, {})]
    ask(shared, f"{symbol}X", key, THEIRS)
    response = ask(shared, symbol, key, None)
    assert (response.status_code, response.json()["model"]) == (200, OURS)
    assert len(language.asked) == 2
    assert response.headers["X-AI-Remaining"] == "3"
