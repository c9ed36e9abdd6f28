"""The accepted ticks of the last day: which, in which form, in which order, and to whom."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow.ipc
import pytest

from core.clock import now_ms
from core.times import iso_ms
from instruments.catalogue import catalogue
from market import runtime
from market.engine.recent_ticks import EPOCH_FILE, recent_ticks_folder
from market.models import LastQuote
from market.prices.records import Tick
from market.streams.market_streams import prices
from tests.accounts.browser import logged_in, token_of
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal
from tests.factories import make_account, make_calendar, make_instrument, make_user
from tests.market.kept_ticks import NOON_MS, batch, keep, tick
from tests.patience import wait_until

from .stored_minutes import ARROW, CSV, withheld

PATH = "/api/market/TICKS/ticks"
KEPT = 1_205


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    for symbol in ("TICKS", "SILENT", "OTHER"):
        make_instrument(symbol)
    put("TICKS", range(1, KEPT + 1))
    put("OTHER", [1, 2])


def put(symbol: str, seqs: Any, source: str = "push", epoch: str = "") -> None:
    keep(runtime.epoch(), batch(epoch or runtime.epoch(), symbol, seqs, source))


def ask(shared: Api, query: str = "", **headers: str) -> Any:
    return shared.ask(f"{PATH}?{query}", headers=headers)


def seqs_of(body: Any) -> list[int]:
    return [item["seq"] for item in body["items"]]


def test_body_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    for path in (PATH, "/api/market/ticks/ticks/"):
        body = shared.ask(path).json()
        assert set(body) == {"symbol", "epoch", "items", "count", "next"}
        assert (body["symbol"], body["epoch"], body["count"]) == ("TICKS", runtime.epoch(), 1_000)
        assert seqs_of(body) == [*range(1, 1_001)]
        assert all(MILLISECONDS.fullmatch(item["timestamp"]) for item in body["items"])
    kept = tick("TICKS", 7, NOON_MS + 7)
    assert body["items"][6] == {
        "timestamp": iso_ms(kept.time_ms),
        "bid": kept.bid,
        "ask": kept.ask,
        "spread": 0.0001,
        "volume": kept.volume,
        "seq": 7,
    }
    nothing = {"symbol": "SILENT", "epoch": runtime.epoch(), "items": [], "count": 0, "next": None}
    assert shared.ask("/api/market/SILENT/ticks").json() == nothing


def test_page_that_holds_the_last_has_no_next(shared: Api) -> None:
    bodies = [ask(shared, f"limit={limit}").json() for limit in (KEPT - 1, KEPT, 10_000)]
    assert [(body["next"] is None, body["count"]) for body in bodies] == [
        (False, KEPT - 1),
        (True, KEPT),
        (True, KEPT),
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"start={NOON_MS + 2}&end={NOON_MS + 4}", [2, 3]),
        (f"start={iso_ms(NOON_MS + 2)}&end={iso_ms(NOON_MS + 4)}", [2, 3]),
        ("start=2025-11-18T14:00:00.002%2B02:00&limit=2", [2, 3]),
        (f"start={NOON_MS + 2}&end={NOON_MS + 2}", []),
        ("start=9999-12-31T23:59:59Z", []),
        (f"end={NOON_MS}", []),
    ],
)
def test_start_is_included_and_end_is_not(shared: Api, query: str, found: list[int]) -> None:
    assert seqs_of(ask(shared, query).json()) == found


def test_walk_goes_over_epochs_in_pages_of_one_each_and_shared_milliseconds(shared: Api) -> None:
    make_instrument("WALKED")
    older, present = "0123456789ab", runtime.epoch()
    ticks = [tick("WALKED", seq, NOON_MS + seq // 3) for seq in range(1, 6)]
    keep(present, (older, [*ticks]), (present, [tick("WALKED", seq, NOON_MS + 1) for seq in (5, 6)]))
    walked, cursor = [], ""
    for _ in range(9):
        body = shared.ask(f"/api/market/WALKED/ticks?limit=2{cursor}").json()
        walked.append((body["epoch"], seqs_of(body)))
        if body["next"] is None:
            break
        cursor = f"&cursor={body['next']}"
    assert walked == [(older, [1, 2]), (older, [3, 4]), (older, [5]), (present, [5, 6])]


def test_cursor_that_was_altered_or_is_of_other_parameters_is_refused(shared: Api) -> None:
    cursor = ask(shared, "limit=2").json()["next"]
    of_history = "WyI0Y2Q3ZjQ1YzA4ZTI0YjFmIixbMTc5NTE4MzIwMDAwMCwxNzk1MTgzNDQwMDAwLGZhbHNlLDJdXQ.3kq0uXJ1mR5x"
    wrong = (
        f"{cursor[:-2]}AA",
        "",
        "x" * 600,
        of_history,
        *(f"{cursor}&{each}=0" for each in ("start", "end")),
    )
    for each in wrong:
        refusal(ask(shared, f"limit=2&cursor={each}"), 400, "invalid_cursor", field="cursor")
    of_other = shared.ask(f"/api/market/OTHER/ticks?cursor={cursor}")
    refusal(of_other, 400, "invalid_cursor", field="cursor")
    assert seqs_of(ask(shared, f"limit=3&cursor={cursor}").json()) == [3, 4, 5]


# Each request has all that is wrong in those below it as well.
def test_faults_are_named_in_the_order_of_the_contract(shared: Api) -> None:
    bad = "limit=0&cursor=x"
    unlike = {"Accept": "text/html"}
    refusal(shared.ask(f"/api/market/NOPE/ticks?{bad}", key="tw_no", headers=unlike), 401, "invalid_api_key")
    unknown = shared.ask(f"/api/market/NOPE/ticks?{bad}", headers=unlike)
    refusal(unknown, 404, "symbol_not_found", field="symbol")
    refusal(ask(shared, bad, **unlike), 400, "parameter_out_of_range", field="limit", max=10_000)
    refusal(ask(shared, "cursor=x", **unlike), 400, "invalid_cursor", field="cursor")
    refusal(ask(shared, "end=1&start=2", **unlike), 400, "invalid_parameter", field="end")
    allowed = ["application/json", CSV, ARROW]
    refusal(ask(shared, **unlike), 406, "not_acceptable", field="Accept", allowed=allowed)


def test_closed_market_is_answered_and_an_inactive_instrument_is_not(shared: Api) -> None:
    make_instrument("CLOSED", calendar=make_calendar("shut", sessions="Mon 00:00-00:01"))
    make_instrument("GONE", active=False)
    for symbol in ("CLOSED", "GONE"):
        put(symbol, [1])
    assert shared.ask("/api/market/CLOSED/ticks").json()["count"] == 1
    refusal(shared.ask("/api/market/GONE/ticks"), 404, "symbol_not_found", field="symbol")


def test_ticks_of_a_withheld_source_and_of_the_other_kind_are_left_out(shared: Api) -> None:
    make_instrument("MIXED")
    sources = enumerate(("kraken", "oanda", "demo", "binance", "kraken+oanda"), 1)
    records = [tick("MIXED", seq, NOON_MS + seq, source) for seq, source in sources]
    keep(runtime.epoch(), (runtime.epoch(), [*records]))
    path = "/api/market/MIXED/ticks"
    assert seqs_of(shared.ask(path).json()) == [1, 2, 4, 5]
    with withheld("oanda"):
        assert seqs_of(shared.ask(path).json()) == [1, 4]
        assert len(shared.ask(path, headers={"Accept": CSV}).text.splitlines()) == 3


def test_no_walk_goes_on_in_the_other_kind(shared: Api) -> None:
    make_instrument("KINDS")
    put("KINDS", [1, 2])
    put("KINDS", [3], source="demo")
    cursor = shared.ask("/api/market/KINDS/ticks?limit=1").json()["next"]
    runtime.prices.history(catalogue.get("KINDS")).simulated = True
    assert seqs_of(shared.ask("/api/market/KINDS/ticks").json()) == [3]
    refused = shared.ask(f"/api/market/KINDS/ticks?limit=1&cursor={cursor}")
    assert "simulated and real" in refusal(refused, 400, "invalid_cursor", field="cursor")


# Forms.
def test_csv_and_arrow_have_the_same_ticks_their_cursor_and_their_epoch(shared: Api) -> None:
    query = f"limit=1100&end={NOON_MS * 2}"
    body = ask(shared, query).json()
    csv, arrow = (ask(shared, query, Accept=accept) for accept in (CSV, ARROW))
    for answer in (csv, arrow):
        assert (answer.headers["X-Next-Cursor"], answer.headers["X-Epoch"]) == (body["next"], body["epoch"])
    header, *lines = csv.text.splitlines()
    assert header == "timestamp,bid,ask,spread,volume,seq"
    assert lines == [",".join(map(str, item.values())) for item in body["items"]]
    table = pyarrow.ipc.open_stream(arrow.content).read_all()
    types = dict.fromkeys(("bid", "ask", "spread", "volume"), "double")
    types = {"timestamp": "timestamp[ms, tz=UTC]", **types, "seq": "int64"}
    assert {field.name: str(field.type) for field in table.schema} == types
    assert table.schema.metadata == {b"symbol": b"TICKS", b"epoch": body["epoch"].encode()}
    items = [item | {"timestamp": datetime.fromisoformat(item["timestamp"])} for item in body["items"]]
    assert table.to_pylist() == items
    for accept in (CSV, ARROW):
        last = shared.ask("/api/market/SILENT/ticks", headers={"Accept": accept})
        assert "X-Next-Cursor" not in last.headers
        assert last.headers["X-Epoch"] == runtime.epoch()


def test_no_number_has_an_exponent(shared: Api) -> None:
    make_instrument("SMALL", digits=8)
    record = tick("SMALL", 1)
    record.bid, record.ask, record.volume = 1e-7, 3e-7, 1e-8
    keep(runtime.epoch(), (runtime.epoch(), [record]))
    for accept in ("*/*", CSV):
        text = shared.ask("/api/market/SMALL/ticks", headers={"Accept": accept}).text
        assert "0.0000001" in text
        assert "e-" not in text.partition('"items"')[2] + text.partition("seq\n")[2]


# What the engine accepts now.
def test_tick_that_a_frame_has_shown_is_in_the_answer_and_one_that_was_refused_is_not(shared: Api) -> None:
    make_instrument("LIVE")
    at_ms = now_ms()
    for price, time_ms in ((1.1, at_ms), (1.2, at_ms - 5_000), (1.3, at_ms + 1_000)):
        runtime.engine.accept(Tick("LIVE", price, price + 0.1, time_ms), at_ms)
        wait_until(lambda: prices.recent.head("LIVE", 0) == runtime.engine.instruments["LIVE"].seq)
        items = shared.ask("/api/market/LIVE/ticks").json()["items"]
        assert items[-1]["seq"] == runtime.engine.instruments["LIVE"].seq
    assert [(item["seq"], item["bid"]) for item in items] == [(1, 1.1), (2, 1.3)]


def test_files_of_an_engine_elsewhere_are_an_error_and_no_empty_page(
    shared: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.api.ticks.CATCH_UP_S", 0.0)
    file = recent_ticks_folder() / EPOCH_FILE
    wait_until(lambda: file.exists() and file.read_text() == runtime.epoch())
    file.write_text("0123456789ab")
    refused = ask(shared)
    file.write_text(runtime.epoch())
    refusal(refused, 503, "ticks_unavailable")
    assert refused.headers["Retry-After"] == "5"


def test_page_of_ours_reads_a_thousand_ticks_and_no_more_however_often_it_asks(shared: Api) -> None:
    token = token_of(logged_in(make_account(make_user(), tier="roomy").user))

    def asked(query: str) -> Any:
        return shared.ask(f"{PATH}?{query}", key=token)

    first = asked("limit=600").json()
    refusal(asked("limit=1001"), 403, "not_allowed", field="limit", max=1_000)
    refusal(asked(f"limit=600&cursor={first['next']}"), 403, "not_allowed", field="cursor")
    assert asked(f"limit=400&cursor={first['next']}").json()["count"] == 400


def test_kind_of_a_new_instrument_is_that_of_its_source(shared: Api) -> None:
    make_instrument("PLAYED", source="replay")
    assert not LastQuote.objects.filter(instrument__symbol="PLAYED").exists()
    put("PLAYED", [1, 2], source="replay")
    assert seqs_of(shared.ask("/api/market/PLAYED/ticks").json()) == [1, 2]
