from __future__ import annotations

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from core.contract.cursors import LONGEST, Cursors
from core.contract.errors import InvalidCursor

cursors = Cursors("history")
ASKED = ["EURUSD", "1m", None, 1_795_000_000_000]
POSITION = [1_794_000_000_000, 7]


def test_position_comes_back() -> None:
    assert cursors.open(cursors.seal(ASKED, POSITION), ASKED) == POSITION


def test_cursor_fits_into_an_address_as_it_is() -> None:
    assert cursors.seal(ASKED, POSITION).replace("_", "").replace("-", "").replace(".", "").isalnum()


@pytest.mark.parametrize("asked", [["EURUSD", "5m", None, 1_795_000_000_000], ["EURUSD"], []])
def test_cursor_of_other_parameters_is_refused(asked: list[object]) -> None:
    with pytest.raises(InvalidCursor) as refused:
        cursors.open(cursors.seal(ASKED, POSITION), asked)

    assert (refused.value.code, refused.value.status_code, refused.value.field) == (
        "invalid_cursor",
        400,
        "cursor",
    )


def test_refusal_names_all_that_may_differ_on_some_path() -> None:
    assert all(name in InvalidCursor().message for name in ("limit", "expand", "Accept"))


def test_cursor_of_another_path_is_refused() -> None:
    with pytest.raises(InvalidCursor):
        Cursors("news").open(cursors.seal(ASKED, POSITION), ASKED)


@given(place=st.integers(0, 200), letter=st.characters(codec="utf-8"))
def test_altered_cursor_is_refused(place: int, letter: str) -> None:
    cursor = cursors.seal(ASKED, POSITION)
    place %= len(cursor)
    altered = cursor[:place] + letter + cursor[place + 1 :]
    if altered != cursor:
        with pytest.raises(InvalidCursor):
            cursors.open(altered, ASKED)


@given(text=st.text() | st.just("x" * (LONGEST + 1)) | st.just("." * 10))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        cursors.open(text, ASKED)


def test_cursor_outlasts_a_rotated_secret() -> None:
    with override_settings(SECRET_KEY="the one before"):
        cursor = cursors.seal(ASKED, POSITION)

    with override_settings(SECRET_KEY="the one after", SECRET_KEY_FALLBACKS=["the one before"]):
        assert cursors.open(cursor, ASKED) == POSITION
    with override_settings(SECRET_KEY="the one after"), pytest.raises(InvalidCursor):
        cursors.open(cursor, ASKED)
