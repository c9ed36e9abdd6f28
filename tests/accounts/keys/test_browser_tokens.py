"""A page token as text."""

from __future__ import annotations

from datetime import datetime

import pytest
import time_machine
from django.core.signing import Signer

from accounts.key_text import derive_key, is_well_formed
from accounts.keys.browser_tokens import issue_browser_token, read_browser_token
from tests.factories import NOON

AT = NOON.timestamp()


def issued() -> str:
    with time_machine.travel(NOON, tick=False):
        return issue_browser_token(12)[0]


def is_over(text: str, at: float) -> bool:
    token = read_browser_token(text)
    assert token is not None
    with time_machine.travel(datetime.fromtimestamp(at).astimezone(), tick=False):
        return token.has_ended


def test_token_tells_whose_session_and_until_when() -> None:
    assert read_browser_token(issued()) == (12, AT + 300)


def test_token_lives_for_five_minutes() -> None:
    assert [is_over(issued(), AT + later) for later in (0, 299, 300)] == [False, False, True]


def test_token_is_printable_ascii_of_one_word_and_no_api_key() -> None:
    text = issued()
    assert text.startswith("pt_")
    assert text.isascii()
    assert text.isprintable()
    assert not {*" ,;\"'"} & {*text}
    assert not is_well_formed(text)


def test_changed_token_is_none() -> None:
    text = issued()
    changed = {text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :] for place in range(len(text) - 1)}
    assert len(changed) == len(text) - 1
    assert [each for each in changed if read_browser_token(each)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "pt_", "pt_.", "pt_1-2", "pt_1-2.", "pt_1-2.x", "pt_١-٢.x", "pt_\ud800", "pt_\0", "pt_é.x"),
        *("pt_" + "x" * 10_000, "PT_1-2.x", "letmein", derive_key("a secret", "of a key")),
    ],
)
def test_what_we_did_not_sign_is_none(text: str) -> None:
    assert read_browser_token(text) is None


def test_what_we_signed_for_something_else_is_none() -> None:
    assert read_browser_token("pt_" + Signer(salt="another", sep=".").sign("12-9999999999")) is None
