"""The frames of the contract, byte for byte."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from core.plain_json import encode
from market.streams.protocol import replies
from market.streams.protocol.refusals import (
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

# Situation, close, retry: the contract's table, with the status that REST would give.
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


def compact(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode()


def test_subscribed_is_as_the_contract_writes_it() -> None:
    frame = encode(replies.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7))

    assert frame == compact(
        {
            "type": "subscribed",
            "stream": "market",
            "symbols": ["EURUSD"],
            "rejected": [{"symbol": "NOPE", "code": "symbol_not_found"}],
            "id": 7,
            "time": NOW_MS,
        }
    )


def test_subscribed_carries_no_more_than_was_asked_for() -> None:
    frame = encode(replies.subscribed("orderflow", ["*"], [], NOW_MS))

    assert list(json.loads(frame)) == ["type", "stream", "symbols", "rejected", "time"]


def test_subscribed_says_where_the_numbers_go_on() -> None:
    reply = replies.subscribed("market", ["EURUSD"], [], NOW_MS, epoch="e1", positions={"EURUSD": 9})
    told = json.loads(encode(reply))

    assert (told["epoch"], told["positions"]) == ("e1", {"EURUSD": 9})
    assert not {"recovered", "unrecovered"} & set(told)


def test_subscribed_says_what_was_recovered() -> None:
    def told(unrecovered: list[str]) -> dict[str, Any]:
        reply = replies.subscribed("market", [], [], NOW_MS, unrecovered=unrecovered)
        frame: dict[str, Any] = json.loads(encode(reply))
        return frame

    assert told([])["recovered"] is True
    assert "unrecovered" not in told([])
    assert told(["EURUSD"])["recovered"] is False
    assert told(["EURUSD"])["unrecovered"] == ["EURUSD"]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            replies.Unsubscribed(symbols=["EURUSD"], id="a", time=NOW_MS),
            {"type": "unsubscribed", "symbols": ["EURUSD"], "id": "a", "time": NOW_MS},
        ),
        (
            replies.Unsubscribed(symbols=[], time=NOW_MS),
            {"type": "unsubscribed", "symbols": [], "time": NOW_MS},
        ),
        (
            replies.Listed(symbols=["*"], id=0, time=NOW_MS),
            {"type": "subscriptions", "symbols": ["*"], "id": 0, "time": NOW_MS},
        ),
        (replies.Listed(symbols=[], time=NOW_MS), {"type": "subscriptions", "symbols": [], "time": NOW_MS}),
        (replies.Pong(id=7, time=NOW_MS), {"type": "pong", "id": 7, "time": NOW_MS}),
        (replies.Pong(time=NOW_MS), {"type": "pong", "time": NOW_MS}),
        (replies.Heartbeat(time=NOW_MS), {"type": "heartbeat", "time": NOW_MS}),
        (
            replies.Notice(code="restarting", time=NOW_MS),
            {"type": "notice", "code": "restarting", "time": NOW_MS},
        ),
        (
            replies.Gap(
                symbols=["EURUSD", "XAUUSD"], epoch="e2", positions={"EURUSD": 7, "XAUUSD": 0}, time=NOW_MS
            ),
            {
                "type": "gap",
                "symbols": ["EURUSD", "XAUUSD"],
                "epoch": "e2",
                "positions": {"EURUSD": 7, "XAUUSD": 0},
                "time": NOW_MS,
            },
        ),
        (
            replies.Conflated(symbol="EURUSD", dropped=3),
            {"type": "conflated", "symbol": "EURUSD", "dropped": 3},
        ),
    ],
)
def test_control_frame_is_as_the_contract_writes_it(frame: Control, expected: dict[str, Any]) -> None:
    assert encode(frame) == compact(expected)


@pytest.mark.parametrize("code", get_args(Code))
def test_refusal_is_as_the_contract_has_it(code: Code) -> None:
    status, close, can_retry = REFUSED[code]
    refused = StreamRefused(code)
    refused.id = 7
    message = refused.details.message

    assert refused.close == close
    assert encode(refused.frame(NOW_MS)) == compact(
        {
            "type": "error",
            "error": {"code": code, "message": message, "status": status},
            "fatal": close is not None,
            "retry": can_retry,
            "id": 7,
            "time": NOW_MS,
        }
    )


def test_every_refusal_of_the_contract_is_there_with_a_sentence() -> None:
    assert set(REFUSALS) == set(get_args(Code)) == set(REFUSED)
    assert all(refusal.message.endswith(".") for refusal in REFUSALS.values())


def test_every_close_code_of_the_contract_is_there() -> None:
    retry = {
        4400: False,
        4401: False,
        4403: False,
        4408: True,
        4409: False,
        4410: False,
        4413: True,
        4429: True,
        4430: True,
        4500: True,
    }

    assert {code: close.can_retry for code, close in CLOSES.items()} == {
        **retry,
        1012: True,
        1009: False,
        1007: False,
    }
    assert all(close.reason.endswith(".") for close in CLOSES.values())


def test_error_names_field_and_what_is_allowed_as_rest_does() -> None:
    frame = encode(invalid("Wrong.", "features", allowed=["seq"], max=5).frame(NOW_MS))

    assert json.loads(frame)["error"] == {
        "code": "invalid_message",
        "message": "Wrong.",
        "status": 400,
        "field": "features",
        "allowed": ["seq"],
        "max": 5,
    }


def test_stream_limit_says_how_many_and_when() -> None:
    refused = StreamRefused("stream_limit_exceeded", limit=2, open=2, retry_after=5)
    error = json.loads(encode(refused.frame(NOW_MS)))["error"]

    assert (error["limit"], error["open"], error["retry_after"]) == (2, 2, 5)


def test_one_invalid_message_too_many_is_fatal() -> None:
    refused = invalid("Wrong.")
    refused.close = TOO_MANY_INVALID
    told = json.loads(encode(refused.frame(NOW_MS)))

    assert (told["error"]["code"], told["fatal"], told["retry"]) == ("invalid_message", True, False)
    assert "id" not in told
