"""The TypeScript client over history: page by page to the end, through whatever happens on the way."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from typing import Any, cast

import pytest
from django.core.management import call_command
from tickwire import Candle

from tests.client import Server
from tests.contract.market.stored_minutes import minutes, store
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S

from .history.keeping import (
    BUSY,
    CUT_SHORT,
    HUNG_UP,
    IN_FRONT,
    START_MS,
    Answer,
    Keeper,
    Mishap,
    in_json,
    iso,
    keeping,
    make_candles,
)
from .test_typescript import DRIVER

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("built")]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with keeping(Keeper(make_candles(500))) as kept:
        yield kept


def said(url: str, what: str, *words: object, key: str = "tw_live_any") -> list[dict[str, Any]]:
    command = ["node", DRIVER, url, key, what, *map(json.dumps, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def walked(keeper: Keeper, **options: Any) -> list[Candle]:
    return cast(list[Candle], said(keeper.url, "history", {"limit": 100} | options))


def test_walk_has_every_candle_once_and_in_order(keeper: Keeper) -> None:
    assert walked(keeper) == keeper.candles
    assert [request.query["limit"] for request in keeper.asked] == ["100"] * 5


def test_nothing_stored_is_an_empty_walk(keeper: Keeper) -> None:
    keeper.candles.clear()
    assert walked(keeper) == []


@pytest.mark.parametrize("mishap", [CUT_SHORT, HUNG_UP, IN_FRONT], ids=["in a page", "before it", "in front"])
def test_lost_connection_loses_and_repeats_nothing(keeper: Keeper, mishap: Mishap) -> None:
    keeper.mishaps = {2: mishap, 4: mishap}
    assert walked(keeper) == keeper.candles
    cursors = [request.query.get("cursor") for request in keeper.asked]
    assert (cursors[2], cursors[4]) == (cursors[3], cursors[5])


def test_walk_waits_as_it_is_told(keeper: Keeper) -> None:
    keeper.mishaps = {1: BUSY}
    assert walked(keeper) == keeper.candles
    assert len(keeper.asked) == 6


def test_pages_that_fail_again_and_again_end_the_walk_with_a_place_to_go_on(keeper: Keeper) -> None:
    keeper.mishaps = dict.fromkeys(range(1, 4), HUNG_UP)
    *came, error = said(keeper.url, "history", {"limit": 100}, {"walkRetries": 2})
    assert error["name"] == "WalkInterrupted"
    assert "in 3 attempts" in error["message"]
    assert came + walked(keeper, cursor=error["cursor"]) == keeper.candles


def test_altered_cursor_is_refused_and_not_asked_for_again(keeper: Keeper) -> None:
    (error,) = said(keeper.url, "history", {"cursor": "5.altered"})
    assert (error["code"], len(keeper.asked)) == ("invalid_cursor", 1)


def test_whole_pages_are_had_with_their_cursors(keeper: Keeper) -> None:
    pages = said(keeper.url, "pages", {"limit": 200})
    assert [len(page["candles"]) for page in pages] == [200, 200, 100]
    assert [page["next"] is None for page in pages] == [False, False, True]


def test_span_is_dates_texts_or_milliseconds(keeper: Keeper) -> None:
    walked(keeper, start=START_MS, end={"date": START_MS + 1})
    assert keeper.asked[0].query["start"] == str(START_MS)
    assert keeper.asked[0].query["end"] == iso(START_MS + 1).replace("001000Z", "001Z")


def test_time_without_a_zone_is_utc(keeper: Keeper) -> None:
    walked(keeper, start="2026-11-20", end="2026-11-20T12:00")
    assert keeper.asked[0].query["start"] == "2026-11-20T00:00Z"
    assert keeper.asked[0].query["end"] == "2026-11-20T12:00Z"
    walked(keeper, start="2026-11-20T12:00+01:00")
    assert keeper.asked[1].query["start"] == "2026-11-20T12:00+01:00"


def test_batches_are_asked_for_by_their_paths(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(_: object) -> Answer:
        return in_json({"items": [], "count": 0, "rejected": []})

    monkeypatch.setattr(keeper, "answer", empty)
    said(keeper.url, "batches", ["EURUSD", "BTCUSD"], START_MS)
    asked = [(request.path, request.query) for request in keeper.asked]
    assert asked == [
        ("/api/quotes", {"symbols": "EURUSD,BTCUSD"}),
        ("/api/orderflow/EURUSD", {"start": str(START_MS), "limit": "5"}),
    ]


def test_empty_list_of_quotes_is_not_all_of_them(keeper: Keeper) -> None:
    (error,) = said(keeper.url, "quotes", [])
    assert error["message"].startswith("The list of symbols is empty")
    assert keeper.asked == []


def test_walk_over_the_real_service_equals_the_export(server: Server) -> None:
    make_instrument("EURUSD")
    store("EURUSD", minutes(1_234))
    key = make_key(make_account(tier=make_tier("roomy", requests_per_minute=1_000)))
    written = io.StringIO()
    call_command("export_candles", "EURUSD", "1m", format="jsonl", stdout=written)
    expected = [json.loads(line) for line in written.getvalue().splitlines()]
    assert len(expected) == 1_234
    assert said(server.url, "history", {"limit": 500}, key=key) == expected
