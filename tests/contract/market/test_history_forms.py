"""A page of history as JSON, CSV and Arrow, plain and compressed."""

from __future__ import annotations

import gzip
import sys
from datetime import datetime

import pyarrow.ipc
import pytest

from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import make_instrument

from .stored_minutes import ARROW, CSV, PATH, STORED, ask, minutes, page, store


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    make_instrument("EURUSD")
    make_instrument("EMPTY")
    store("EURUSD", minutes(STORED))


def test_csv_is_what_the_export_writes(shared: Api) -> None:
    answer = ask(shared, "limit=2", CSV)

    assert answer.headers["Content-Type"].partition(";")[0] == CSV
    assert answer.text == (
        "time,open,high,low,close,volume\n"
        "2020-03-04T12:00:00Z,1.08012,1.08034,1.08,1.08021,0.0\n"
        "2020-03-04T12:01:00Z,1.08022,1.08044,1.0801,1.08031,0.25\n"
    )


@pytest.mark.parametrize("accept", [CSV, ARROW])
def test_cursor_is_a_header_where_the_body_has_no_room(shared: Api, accept: str) -> None:
    cursor = page(shared, "limit=1000&end=2020-03-30T00:00:00Z")["next"]
    first = ask(shared, "limit=1000&end=2020-03-30T00:00:00Z", accept)
    last = ask(shared, f"limit=1000&end=2020-03-30T00:00:00Z&cursor={cursor}", accept)

    assert first.headers["X-Next-Cursor"] == cursor
    assert "X-Next-Cursor" not in last.headers
    assert "X-Next-Cursor" in first.headers["Access-Control-Expose-Headers"]


def test_arrow_has_times_of_utc_floats_and_what_it_is_of(shared: Api) -> None:
    answer = ask(shared, "limit=1100", ARROW)
    table = pyarrow.ipc.open_stream(answer.content).read_all()

    assert answer.headers["Content-Type"] == ARROW
    types = {field.name: str(field.type) for field in table.schema}
    floats = dict.fromkeys(("open", "high", "low", "close", "volume"), "double")
    assert types == {"time": "timestamp[ms, tz=UTC]", **floats}
    assert table.schema.metadata == {b"symbol": b"EURUSD", b"timeframe": b"1m"}
    rows = table.to_pylist()
    candles = page(shared, "limit=1100")["ohlcv"]
    assert rows == [candle | {"time": datetime.fromisoformat(candle["time"])} for candle in candles]


def test_empty_page_has_a_head_in_every_form(shared: Api) -> None:
    answers = {
        accept: shared.ask("/api/market/EMPTY/history", headers={"Accept": accept}) for accept in (CSV, ARROW)
    }

    assert answers[CSV].text == "time,open,high,low,close,volume\n"
    assert pyarrow.ipc.open_stream(answers[ARROW].content).read_all().num_rows == 0


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/*", CSV),
        (f"{CSV};q=0.5, application/json;q=0.4", CSV),
        (f"{CSV};q=0.5, application/json", "application/json"),
        (f"{CSV}, {ARROW}", CSV),
        (f"{ARROW};q=0.9,{CSV};q=0.8,*/*;q=0.1", ARROW),
        ("*/*, application/json;q=0", CSV),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
        ("TEXT/CSV", CSV),
        (f"{CSV}; header=present", CSV),
    ],
)
def test_form_is_the_one_that_is_liked_best(shared: Api, accept: str, expected: str) -> None:
    answer = ask(shared, "limit=1", accept)

    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].partition(";")[0] == expected
    assert "Accept" in answer.headers["Vary"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml, image/*", "*/*;q=0", f"{CSV};q=0"])
def test_other_forms_are_not_acceptable(shared: Api, accept: str) -> None:
    allowed = ["application/json", CSV, ARROW]
    refused = ask(shared, "limit=1", accept)
    message = refusal(refused, 406, "not_acceptable", field="Accept", allowed=allowed)
    assert all(name in message for name in allowed)


def test_service_without_pyarrow_says_what_to_ask_for(shared: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    refused = ask(shared, "limit=1", ARROW)
    message = refusal(refused, 406, "not_acceptable", field="Accept", allowed=["application/json", CSV])
    assert "the extra `archive`" in message
    other = ask(shared, "limit=1", f"{ARROW}, {CSV};q=0.5")
    assert other.headers["Content-Type"].startswith(CSV)


# Compression


@pytest.mark.parametrize("accept", ["application/json", CSV, ARROW])
def test_gzip_holds_the_same_page(shared: Api, accept: str) -> None:
    query = "limit=1100&end=2020-03-30T00:00:00Z"
    plain = ask(shared, query, accept, **{"Accept-Encoding": "identity"})
    with shared.stream(
        "GET",
        f"{PATH}?{query}",
        headers={"X-API-Key": shared.key, "Accept": accept, "Accept-Encoding": "gzip"},
    ) as packed:
        body = b"".join(packed.iter_raw())

    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert gzip.decompress(body) == plain.content
    assert len(body) < len(plain.content) / 3


@pytest.mark.parametrize("coding", ["gzip;q=0", "br", "gzip;q=0.2, identity;q=0.9", "deflate, *;q=0"])
def test_gzip_is_only_for_those_who_want_it(shared: Api, coding: str) -> None:
    assert "Content-Encoding" not in ask(shared, "limit=1", **{"Accept-Encoding": coding}).headers
