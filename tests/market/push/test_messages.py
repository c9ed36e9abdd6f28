from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.prices.records import Tick
from market.push import intake
from market.push.intake import RejectedTick, read_batch, read_items
from market.push.keys import REASONS, InvalidMessage

ROOT = Path(__file__).resolve().parents[3]
NOW_MS = 1_795_000_000_000
TICK = {"symbol": "EURUSD", "bid": 1.0841, "ask": 1.0843, "time": NOW_MS}


def read(message: Any, allowed: Collection[str] = ()) -> tuple[dict[int, Tick], list[RejectedTick]]:
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return read_batch(read_items(intake.read(text)), NOW_MS, allowed)


def test_one_tick_a_list_and_an_object_are_the_same() -> None:
    assert read(TICK) == read([TICK]) == read({"ticks": [TICK]})
    assert read(TICK) == ({0: Tick("EURUSD", 1.0841, 1.0843, NOW_MS)}, [])
    assert read([]) == read({"ticks": []}) == ({}, [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"volume": 2.5, "side": "sell", "price": 1.0841, "seq": 7}, (NOW_MS, 2.5, -1, 1.0841, 7)),
        ({"side": "buy"}, (NOW_MS, 0.0, 1)),
        (dict.fromkeys(("volume", "side", "price", "seq", "time")), (NOW_MS,)),
        *(
            ({"time": time}, (NOW_MS,))
            for time in ("2026-11-18T11:06:40Z", "2026-11-18T11:06:40.000+00:00", "2026-11-18T20:06:40+09:00")
        ),
        ({"time": "2026-11-18T11:06:40.257Z"}, (NOW_MS + 257,)),
        ({"symbol": "eurUsd"}, (NOW_MS,)),
    ],
)
def test_every_field_arrives(fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert read({**TICK, **fields}) == ({0: Tick("EURUSD", 1.0841, 1.0843, *expected)}, [])


def test_symbols_are_upper_case_in_ascii_alone() -> None:
    assert read({**TICK, "symbol": "eurusſ"})[0][0].symbol == "eurusſ"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("bid", "1.0841"), ("bid", None), ("bid", True), ("ask", [1]), ("symbol", ""), ("symbol", 5)),
        *(("time", 1_795_000_000), ("time", 1e12), ("time", "2026-11-18T11:06:40"), ("time", "now")),
        ("time", "0001-01-01T00:00:00+14:00"),
        *(("seq", -1), ("seq", 1.5), ("seq", 2**63), ("side", "long"), ("side", 1), ("volume", "1")),
        *(("price", {}), ("vol", 1)),
    ],
)
def test_wrong_field_is_named(field: str, value: Any) -> None:
    _, (found,) = read({**TICK, field: value})
    assert (found.code, field in found.message) == ("malformed", True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (json.dumps(TICK).replace("1.0843", "1e999"), "ask"),
        ('{"symbol":"EURUSD","bid":1}', "ask"),
        # A number without a time of its own.
        ('{"symbol":"EURUSD","bid":1,"ask":2,"seq":7}', "seq"),
    ],
)
def test_what_no_float_holds_or_what_is_missing_is_named(text: str, named: str) -> None:
    _, (found,) = read(text.encode())
    assert named in found.message


def test_broken_ticks_and_symbols_of_others_are_refused_alone_in_their_places() -> None:
    ticks, rejected = read(
        [TICK, 5, {**TICK, "bid": "x"}, {**TICK, "symbol": "XAUUSD"}, TICK, None], allowed={"EURUSD"}
    )
    assert list(ticks) == [0, 4]
    assert {found.index: found.code for found in rejected} == {
        3: "symbol_not_allowed",
        **dict.fromkeys((1, 2, 5), "malformed"),
    }


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"5", b'"x"', b"[1", b"{}}", b"\xff", b"[" * 100_000, b"[NaN]", b'{"ticks":5}'),
        *(b'{"ticks":[],"more":1}', b'[{"symbol":"\\ud800"}]'),
    ],
)
def test_message_that_is_none_is_unreadable(text: bytes) -> None:
    with pytest.raises(InvalidMessage):
        read(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*TICK, "x"]), inner),
    max_leaves=8,
)


@given(st.lists(json_values | st.fixed_dictionaries(dict.fromkeys(TICK, json_values)), max_size=5))
def test_every_item_of_a_message_becomes_a_tick_or_a_refusal(items: list[Any]) -> None:
    try:
        ticks, rejected = read(items)
    except InvalidMessage:
        # Python writes NaN and infinity, which are no JSON, and lone surrogates.
        assert any(word in json.dumps(items) for word in ("NaN", "Infinity", "\\ud"))
        return
    assert sorted([*ticks, *(found.index for found in rejected)]) == list(range(len(items)))
    assert all(0 < tick.time_ms < 2**63 for tick in ticks.values())
    msgspec.msgpack.encode(list(ticks.values()))


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(text: bytes) -> None:
    with contextlib.suppress(InvalidMessage):
        read(text)


def returned_texts(path: str) -> set[str]:
    """The texts that a module's functions return or assign: its codes."""
    nodes = [
        node.value
        for function in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign) and node.value is not None
    ]
    parts = [part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return {part.value for part in parts if isinstance(part.value, str) and "_" in part.value}


def test_every_reason_of_the_checks_has_its_sentence() -> None:
    codes = returned_texts("market/engine/admission.py")
    assert {"not_finite", "market_closed"} <= codes
    assert codes <= set(REASONS)
