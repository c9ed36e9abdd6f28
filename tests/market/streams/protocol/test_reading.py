from __future__ import annotations

import contextlib
import json
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
    List,
    Ping,
    Resume,
    StreamKind,
    Subscribe,
    Unsubscribe,
)
from market.streams.protocol.reading import read
from market.streams.protocol.refusals import StreamRefused

from .hostile import NO_OBJECT, NOT_JSON, WRONG_FIELDS, WRONG_ON, subscribe

BY_NAME: dict[str, StreamKind] = {kind.name: kind for kind in KINDS}


def sent(kind: StreamKind = MARKET, **fields: Any) -> AnyMessage:
    return read(json.dumps(fields).encode(), kind)


def refused(text: str | bytes, kind: StreamKind = MARKET) -> StreamRefused:
    with pytest.raises(StreamRefused) as caught:
        read(text if isinstance(text, bytes) else text.encode(), kind)
    assert (caught.value.code, caught.value.close) == ("invalid_message", None)
    return caught.value


def test_subscribe_of_the_specification_is_understood() -> None:
    message = sent(action="subscribe", symbols=["EURUSD", "XAUUSD"], api_key="k")

    assert message == Subscribe(symbols=["EURUSD", "XAUUSD"], api_key="k")


@pytest.mark.parametrize("kind", KINDS)
def test_envelope_of_the_contract_is_understood_on_all_streams(kind: StreamKind) -> None:
    text = (
        '{"action": "subscribe", "symbols": ["EURUSD", "XAUUSD"], "api_key": "…", "id": 7,'
        ' "features": ["seq", "snapshot"]}'
    )

    assert read(text.encode(), kind) == Subscribe(
        symbols=["EURUSD", "XAUUSD"], api_key="…", id=7, features=frozenset({"seq", "snapshot"})
    )


def test_every_feature_is_understood_on_every_stream() -> None:
    words = ["seq", "snapshot", "lag", "heartbeat", "latest"]
    for kind in KINDS:
        message = sent(kind, action="subscribe", symbols=["EURUSD"], features=[*words, "seq"])
        assert isinstance(message, Subscribe)
        assert message.features == set(words)


def test_what_is_not_sent_is_not_wished_for() -> None:
    message = sent(action="subscribe", symbols=["EURUSD"])

    assert isinstance(message, Subscribe)
    assert (message.features, message.events, message.takeover) == (frozenset(), frozenset(), False)
    assert {message.id, message.api_key, message.resume, message.since} == {UNSET}


def test_other_actions_are_understood() -> None:
    assert sent(action="unsubscribe") == Unsubscribe()
    assert sent(action="unsubscribe", symbols=["EURUSD"], id=0) == Unsubscribe(symbols=["EURUSD"], id=0)
    assert sent(action="list", id="a") == List(id="a")
    assert sent(action="ping", api_key="k") == Ping(api_key="k")


@pytest.mark.parametrize("kind", [ORDERFLOW, SIGNALS])
def test_all_symbols_may_be_meant_by_naming_none(kind: StreamKind) -> None:
    assert sent(kind, action="subscribe", api_key="k") == Subscribe(api_key="k")
    assert sent(kind, action="subscribe", symbols=["*"]) == Subscribe(symbols=["*"])


@pytest.mark.parametrize("id_", [0, -1, 7, 2**63 - 1, -(2**63), "", "a", "x" * 64, "é" * 64, "\x00"])
def test_id_is_kept_as_it_was_sent(id_: int | str) -> None:
    assert sent(action="ping", id=id_).id == id_


def test_resume_and_since_are_understood_where_they_help() -> None:
    resume = {"epoch": "e1", "positions": {"EURUSD": 7, "XAUUSD": 0}}
    for kind in (MARKET, ORDERFLOW):
        message = sent(kind, action="subscribe", symbols=["EURUSD"], resume=resume)
        assert isinstance(message, Subscribe)
        assert message.resume == Resume("e1", {"EURUSD": 7, "XAUUSD": 0})
    message = sent(SIGNALS, action="subscribe", since="6f1c", events=["signal.closed"], takeover=True)
    assert message == Subscribe(since="6f1c", events=frozenset({"signal.closed"}), takeover=True)


def test_fields_that_nobody_knows_are_ignored() -> None:
    more: dict[str, Any] = {"version": 2, "nested": {"a": [1.5, None]}, "Symbols": 5}

    assert sent(action="subscribe", symbols=["EURUSD"], **more) == Subscribe(symbols=["EURUSD"])
    assert sent(action="ping", symbols=5, takeover="no") == Ping()
    assert read(b'{"action":"ping","more":1%b}' % (b"0" * 5000), MARKET) == Ping()


OPTIONAL = ("id", "api_key", "features", "events", "resume", "since", "takeover")


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_as_if_it_were_absent(kind: StreamKind) -> None:
    nulls = dict.fromkeys(OPTIONAL)

    assert sent(kind, action="subscribe", symbols=["EURUSD"], **nulls) == Subscribe(symbols=["EURUSD"])
    assert sent(kind, action="unsubscribe", symbols=None, id=7) == Unsubscribe(id=7)
    assert sent(kind, action="ping", id=None) == Ping()
    assert sent(kind, action="list", api_key=None, more={"a": None}, null="null") == List()


def test_null_symbols_mean_all_where_none_do() -> None:
    assert sent(ORDERFLOW, action="subscribe", symbols=None) == Subscribe()
    assert refused('{"action":"subscribe","symbols":null}', MARKET).details.field == "symbols"


def test_null_for_what_must_be_there_is_refused_as_if_it_were_absent() -> None:
    assert refused('{"action":null,"id":7}').details.field == "action"
    assert refused('{"action":"ping","id":null,"id":null}').details.field == "id"


def test_a_number_of_a_billion_digits_beside_a_null_is_not_written_out() -> None:
    assert read(b'{"action":"ping","id":null,"more":1e999999999}', MARKET) == Ping()


def test_200_symbols_and_16_kib_are_not_too_many() -> None:
    message = sent(action="subscribe", symbols=[f"{number:070d}" for number in range(200)])

    assert isinstance(message, Subscribe)
    assert message.symbols is not UNSET
    assert len(message.symbols) == 200


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_no_json_is_refused(name: str) -> None:
    assert refused(NOT_JSON[name]).details.message


@pytest.mark.parametrize("text", NO_OBJECT)
def test_what_is_no_message_is_refused(text: str) -> None:
    assert "action" in refused(text).details.message


@pytest.mark.parametrize(("field", "text"), WRONG_FIELDS)
def test_wrong_field_is_named(field: str, text: str) -> None:
    details = refused(text).details

    assert details.field == field
    assert field in details.message


@pytest.mark.parametrize(("stream", "field", "text"), WRONG_ON)
def test_field_that_a_stream_does_not_take_is_named(stream: str, field: str, text: str) -> None:
    assert refused(text, BY_NAME[stream]).details.field == field


def test_refusal_says_what_is_allowed() -> None:
    assert refused('{"action":"auth"}').details.allowed == ["subscribe", "unsubscribe", "list", "ping"]
    words = ["seq", "snapshot", "lag", "heartbeat", "latest"]
    assert refused(subscribe(features=["more"])).details.allowed == words
    assert refused(subscribe(events=["more"]), SIGNALS).details.allowed == ["signal.closed"]
    for wrong in (["more"], ["signal.closed"]):
        assert refused(subscribe(events=wrong), CANDLES).details.allowed == ["forming"]
    intervals = ["1m", "5m", "15m", "1h", "4h", "1d"]
    assert refused(subscribe(timeframes=["2m"]), CANDLES).details.allowed == intervals
    assert refused(subscribe(symbols=["A"] * 201)).details.max == 200


def test_repeated_name_is_refused_at_any_depth() -> None:
    text = '{"action":"subscribe","symbols":["A"],"resume":{"epoch":"e","positions":{"A":1,"A":2}}}'
    assert "twice" in refused(text).details.message
    assert "twice" in refused('{"action":"ping","more":[{"é":1,"é":2}]}').details.message


@pytest.mark.parametrize("text", ['{"action":"nope","id":7}', '{"id":7}', subscribe(symbols=[], id=7)])
def test_refusal_carries_the_id_of_its_message(text: str) -> None:
    assert refused(text).id == 7


@pytest.mark.parametrize("text", ["[7]", '{"id":[7]}', '{"id":7', '{"action":"nope"}'])
def test_refusal_carries_no_id_where_none_could_be_read(text: str) -> None:
    assert refused(text).id is UNSET


pieces = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
names = (
    *("action", "symbols", "timeframes", "id", "api_key", "features", "events"),
    *("resume", "since", "takeover"),
)
values = st.fixed_dictionaries({}, optional=dict.fromkeys(names, pieces))
actions = st.sampled_from(["subscribe", "unsubscribe", "list", "ping"])
nearly = st.builds(lambda action, more: {**more, "action": action}, actions, values)


@settings(max_examples=150)
@given(st.binary(max_size=60) | (values | nearly).map(lambda sent: json.dumps(sent).encode()))
def test_whatever_comes_is_a_message_or_a_refusal(text: bytes) -> None:
    for kind in KINDS:
        with contextlib.suppress(StreamRefused):
            read(text, kind)
