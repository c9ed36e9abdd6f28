"""What a client sends: how often, what it means, and what is refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from market.streams.protocol.messages import (
    CANDLES,
    KINDS,
    MARKET,
    ORDERFLOW,
    SIGNALS,
    AnyMessage,
    Feature,
    List,
    Ping,
    Resume,
    StreamKind,
    StreamRefused,
    Subscribe,
    Unsubscribe,
)
from market.streams.protocol.reading import MAX_BYTES, Inbound, read

from .hostile import NO_OBJECT, NOT_JSON, WRONG_FIELDS, WRONG_ON, subscribe

BY_NAME: dict[str, StreamKind] = {kind.name: kind for kind in KINDS}
NOW_MS = 1_795_000_000_000
FEATURES: list[Feature] = ["seq", "snapshot", "lag", "heartbeat", "latest"]
OPTIONAL = ("id", "api_key", "features", "events", "resume", "since", "takeover")
EURUSD = Subscribe(symbols=["EURUSD"])


def refused(text: str | bytes, kind: StreamKind = MARKET) -> StreamRefused:
    with pytest.raises(StreamRefused) as caught:
        read(text if isinstance(text, bytes) else text.encode(), kind)
    assert (caught.value.code, caught.value.close) == ("invalid_message", None)
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            subscribe(api_key="…", id=7, features=[*FEATURES, "seq"]),
            Subscribe(symbols=["EURUSD"], api_key="…", id=7, features=frozenset(FEATURES)),
        ),
        (subscribe(), EURUSD),
        # Null is as if it were absent, and what is unknown is ignored.
        (subscribe(**dict.fromkeys(OPTIONAL)), EURUSD),
        (subscribe(version=2, nested={"a": [1.5, None]}, Symbols=5), EURUSD),
        ('{"action":"unsubscribe"}', Unsubscribe()),
        ('{"action":"unsubscribe","symbols":["EURUSD"],"id":0}', Unsubscribe(symbols=["EURUSD"], id=0)),
        ('{"action":"unsubscribe","symbols":null,"id":7}', Unsubscribe(id=7)),
        ('{"action":"list","id":"a","api_key":null,"more":{"a":null},"null":"null"}', List(id="a")),
        ('{"action":"ping","api_key":"k","symbols":5,"takeover":"no"}', Ping(api_key="k")),
        ('{"action":"ping","more":1%s}' % ("0" * 5000), Ping()),
        # A number of a billion digits is not written out.
        ('{"action":"ping","id":null,"more":1e999999999}', Ping()),
    ],
)
def test_message_is_understood_on_all_streams(kind: StreamKind, sent: str, message: AnyMessage) -> None:
    assert read(sent.encode(), kind) == message


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        *((kind, {"symbols": ["*"]}, Subscribe(symbols=["*"])) for kind in (ORDERFLOW, SIGNALS)),
        *((kind, {"api_key": "k"}, Subscribe(api_key="k")) for kind in (ORDERFLOW, SIGNALS)),
        (ORDERFLOW, {"symbols": None}, Subscribe()),
        *(
            (
                kind,
                {"symbols": ["A"], "resume": {"epoch": "e1", "positions": {"A": 7, "B": 0}}},
                Subscribe(symbols=["A"], resume=Resume("e1", {"A": 7, "B": 0})),
            )
            for kind in (MARKET, ORDERFLOW)
        ),
        (
            SIGNALS,
            {"since": "6f1c", "events": ["signal.closed"], "takeover": True},
            Subscribe(since="6f1c", events=frozenset({"signal.closed"}), takeover=True),
        ),
    ],
)
def test_what_one_stream_takes_is_understood_there(
    kind: StreamKind, fields: dict[str, Any], message: AnyMessage
) -> None:
    assert read(json.dumps({"action": "subscribe", **fields}).encode(), kind) == message


@pytest.mark.parametrize("id_", [0, -1, 7, 2**63 - 1, -(2**63), "", "a", "x" * 64, "é" * 64, "\x00"])
def test_id_is_kept_as_it_was_sent(id_: int | str) -> None:
    assert read(json.dumps({"action": "ping", "id": id_}).encode(), MARKET).id == id_


def test_200_symbols_and_16_kib_are_not_too_many() -> None:
    symbols = [f"{number:070d}" for number in range(200)]
    assert read(subscribe(symbols=symbols).encode(), MARKET) == Subscribe(symbols=symbols)
    assert MAX_BYTES == 16_384


@pytest.mark.parametrize("text", [*NOT_JSON.values(), *(text.encode() for text in NO_OBJECT)])
def test_what_is_no_message_is_refused(text: bytes) -> None:
    details = refused(text).details
    assert (details.field or "action") == "action"


@pytest.mark.parametrize(
    ("stream", "field", "text"), [*(("market", *wrong) for wrong in WRONG_FIELDS), *WRONG_ON]
)
def test_field_that_is_wrong_or_not_taken_by_a_stream_is_named(stream: str, field: str, text: str) -> None:
    assert refused(text, BY_NAME[stream]).details.field == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"action":"subscribe","symbols":null}', "symbols"),
        ('{"action":null,"id":7}', "action"),
        ('{"action":"ping","id":null,"id":null}', "id"),
        # At any depth.
        ('{"action":"ping","resume":{"epoch":"e","positions":{"A":1,"A":2}}}', UNSET),
        ('{"action":"ping","more":[{"é":1,"é":2}]}', UNSET),
    ],
)
def test_what_is_missing_or_occurs_twice_is_refused(text: str, field: Any) -> None:
    assert refused(text).details.field == field


@pytest.mark.parametrize(
    ("kind", "text", "allowed"),
    [
        (MARKET, '{"action":"auth"}', ["subscribe", "unsubscribe", "list", "ping"]),
        (MARKET, subscribe(features=["more"]), FEATURES),
        (SIGNALS, subscribe(events=["more"]), ["signal.closed"]),
        *((CANDLES, subscribe(events=[wrong]), ["forming"]) for wrong in ("more", "signal.closed")),
        (CANDLES, subscribe(timeframes=["2m"]), ["1m", "5m", "15m", "1h", "4h", "1d"]),
    ],
)
def test_refusal_says_what_is_allowed(kind: StreamKind, text: str, allowed: Sequence[str]) -> None:
    assert refused(text, kind).details.allowed == allowed


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        *(
            (text, 7)
            for text in ('{"action":"nope","id":7}', '{"id":7}', subscribe(symbols=["A"] * 201, id=7))
        ),
        *((text, UNSET) for text in ("[7]", '{"id":[7]}', '{"id":7', '{"action":"nope"}')),
    ],
)
def test_refusal_carries_the_id_of_its_message_if_it_could_be_read(text: str, id_: Any) -> None:
    assert refused(text).id == id_


pieces = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
values = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("action", "symbols", "timeframes", *OPTIONAL), pieces)
)
actions = st.sampled_from(["subscribe", "unsubscribe", "list", "ping"])
nearly = st.builds(lambda action, more: {**more, "action": action}, actions, values)


@settings(max_examples=150)
@given(st.binary(max_size=60) | (values | nearly).map(lambda sent: json.dumps(sent).encode()))
def test_whatever_comes_is_a_message_or_a_refusal(text: bytes) -> None:
    for kind in KINDS:
        with contextlib.suppress(StreamRefused):
            read(text, kind)


def admitted(inbound: Inbound, times_ms: list[int]) -> list[int]:
    """Those that were taken."""
    taken = []
    for now_ms in times_ms:
        with contextlib.suppress(StreamRefused):
            inbound.take(now_ms)
            taken.append(now_ms)
    return taken


def test_ten_a_second_go_on_for_ever_and_20_may_come_at_once() -> None:
    inbound, steady = Inbound(), [NOW_MS + 100 * number for number in range(1000)]
    assert admitted(inbound, steady) == steady
    # Silence gives no more than a burst.
    later_ms = NOW_MS + 3_600_000
    assert len(admitted(inbound, [later_ms] * 30)) == 20
    assert admitted(inbound, [later_ms + 99, *[later_ms + 100] * 2]) == [later_ms + 100]
    with pytest.raises(StreamRefused) as caught:
        inbound.take(later_ms + 100)
    assert (caught.value.code, caught.value.close) == ("too_many_messages", 4413)


@given(st.lists(st.integers(0, 300), max_size=120))
def test_no_stretch_of_time_holds_more_than_the_burst_and_its_rate(steps_ms: list[int]) -> None:
    times_ms = [NOW_MS + sum(steps_ms[:number]) for number in range(len(steps_ms))]
    taken = admitted(Inbound(), times_ms)

    for first, start_ms in enumerate(taken):
        for last, end_ms in enumerate(taken[first:], first):
            assert last - first + 1 <= 20 + (end_ms - start_ms) / 100


@pytest.mark.parametrize(
    ("step_ms", "after_ms", "is_last"), [(6_000, 54_000, True), (0, 59_999, True), (0, 60_000, False)]
)
def test_tenth_invalid_message_within_60_seconds_is_the_last(
    step_ms: int, after_ms: int, is_last: bool
) -> None:
    inbound = Inbound()
    assert not any(inbound.is_one_too_many(NOW_MS + step_ms * number) for number in range(9))
    assert inbound.is_one_too_many(NOW_MS + after_ms) is is_last
