"""The frames of the contract, byte for byte."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from core.plain_json import encode
from market.streams.protocol import subscriptions
from market.streams.protocol.messages import (
    CLOSES,
    REFUSALS,
    TOO_MANY_INVALID,
    Code,
    Control,
    StreamRefused,
    invalid,
)
from market.streams.protocol.subscriptions import Rejected

NOW_MS = 1_795_000_000_000

# Status that REST would give, close, retry: the contract's table.
REFUSED: dict[str, tuple[int, int | None, bool]] = {
    "invalid_message": (400, None, False),
    "invalid_api_key": (401, 4401, False),
    "https_required": (403, 4403, False),
    "subscribe_timeout": (408, 4408, True),
    "taken_over": (409, 4409, False),
    "stream_closed": (410, 4410, False),
    "stream_limit_exceeded": (429, 4429, True),
    "too_many_messages": (429, 4413, True),
    "slow_consumer": (408, 4430, True),
    "internal_error": (500, 4500, True),
}


def told(frame: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode(frame))
    return decoded


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (
            subscriptions.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7),
            '{"type":"subscribed","stream":"market","symbols":["EURUSD"],'
            '"rejected":[{"symbol":"NOPE","code":"symbol_not_found"}],"id":7',
        ),
        (
            subscriptions.subscribed("orderflow", ["*"], [], NOW_MS),
            '{"type":"subscribed","stream":"orderflow","symbols":["*"],"rejected":[]',
        ),
        (
            subscriptions.Unsubscribed(symbols=["EURUSD"], id="a", time=NOW_MS),
            '{"type":"unsubscribed","symbols":["EURUSD"],"id":"a"',
        ),
        (subscriptions.Unsubscribed(symbols=[], time=NOW_MS), '{"type":"unsubscribed","symbols":[]'),
        (
            subscriptions.Listed(symbols=["*"], id=0, time=NOW_MS),
            '{"type":"subscriptions","symbols":["*"],"id":0',
        ),
        (subscriptions.Listed(symbols=[], time=NOW_MS), '{"type":"subscriptions","symbols":[]'),
        (subscriptions.Pong(id=7, time=NOW_MS), '{"type":"pong","id":7'),
        (subscriptions.Pong(time=NOW_MS), '{"type":"pong"'),
        (subscriptions.Heartbeat(time=NOW_MS), '{"type":"heartbeat"'),
        (subscriptions.Notice(code="restarting", time=NOW_MS), '{"type":"notice","code":"restarting"'),
        (
            subscriptions.Gap(symbols=["A", "B"], epoch="e2", positions={"A": 7, "B": 0}, time=NOW_MS),
            '{"type":"gap","symbols":["A","B"],"epoch":"e2","positions":{"A":7,"B":0}',
        ),
    ],
)
def test_control_frame_is_as_the_contract_writes_it(frame: Control, text: str) -> None:
    assert encode(frame).decode() == f'{text},"time":{NOW_MS}}}'


def test_subscribed_says_where_the_numbers_go_on_and_what_was_recovered() -> None:
    numbers: dict[str, Any] = {"epoch": "e1", "positions": {"EURUSD": 9}}
    for unrecovered, recovered in (
        ({}, {}),
        ({"unrecovered": []}, {"recovered": True}),
        ({"unrecovered": ["EURUSD"]}, {"recovered": False, "unrecovered": ["EURUSD"]}),
    ):
        reply = told(subscriptions.subscribed("market", ["EURUSD"], [], NOW_MS, **numbers, **unrecovered))
        known = ("type", "stream", "symbols", "rejected", "time")
        assert {name: value for name, value in reply.items() if name not in known} == numbers | recovered


@pytest.mark.parametrize("code", get_args(Code))
def test_refusal_is_as_the_contract_has_it(code: Code) -> None:
    status, close, can_retry = REFUSED[code]
    refused = StreamRefused(code)
    refused.id = 7

    assert refused.close == close
    assert list(told(refused.frame(NOW_MS)).items()) == [
        ("type", "error"),
        ("error", {"code": code, "message": refused.details.message, "status": status}),
        ("fatal", close is not None),
        ("retry", can_retry),
        ("id", 7),
        ("time", NOW_MS),
    ]


def test_every_refusal_and_close_code_of_the_contract_is_there() -> None:
    others = {4400: False, 1007: False, 1009: False, 1012: True}
    closes = {close: can_retry for _, close, can_retry in REFUSED.values() if close is not None}

    assert set(REFUSALS) == set(get_args(Code)) == set(REFUSED)
    assert {code: close.can_retry for code, close in CLOSES.items()} == closes | others


def test_refusal_names_field_limits_and_what_is_allowed_as_rest_does() -> None:
    error = told(invalid("Wrong.", "features", allowed=["seq"], max=5).frame(NOW_MS))["error"]
    facts = {"code": "invalid_message", "message": "Wrong.", "status": 400}
    assert error == facts | {"field": "features", "allowed": ["seq"], "max": 5}

    refused = StreamRefused("stream_limit_exceeded", limit=2, open=2, retry_after=5)
    error = told(refused.frame(NOW_MS))["error"]
    assert (error["limit"], error["open"], error["retry_after"]) == (2, 2, 5)


def test_one_invalid_message_too_many_is_fatal() -> None:
    refused = invalid("Wrong.")
    refused.close = TOO_MANY_INVALID
    frame = told(refused.frame(NOW_MS))

    assert (frame["error"]["code"], frame["fatal"], frame["retry"]) == ("invalid_message", True, False)
    assert "id" not in frame
