"""Two pages for operators name what an operation costs; whoever measures one again must change both."""

from __future__ import annotations

import re

import pytest

from .commands import ROOT

SIZING = (ROOT / "docs/operate/sizing.md").read_text()
SCALE = (ROOT / "docs/operate/scale.md").read_text()


@pytest.mark.parametrize(
    ("sized", "scaled"),
    [
        ("an open stream, with a ping every 10 seconds", "an open stream"),
        ("a stream that begins", "a stream that begins · ends"),
        ("a tick, in each web process whose clients want it", "a tick that clients of the process want"),
        ("a message of a stream, sent alone", "a message of a stream"),
        ("a tick that no client of the process wants", "a tick that no client of the process wants"),
    ],
)
def test_both_pages_name_the_same_cost(sized: str, scaled: str) -> None:
    assert first_number(SIZING, sized) == first_number(SCALE, scaled)


def first_number(page: str, operation: str) -> str:
    found = re.search(rf"^\| {re.escape(operation)} \| ([\d.]+)", page, re.M)
    assert found, operation
    return found[1]
