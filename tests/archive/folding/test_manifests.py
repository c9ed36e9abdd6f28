from __future__ import annotations

import pytest

from archive.manifests import MOST_HOLES, NumberGap, joined

SMALL = [NumberGap(at, at + 1, 2) for at in range(MOST_HOLES)]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        (SMALL, SMALL),
        ([*SMALL, NumberGap(90, 99, 5)], [NumberGap(0, 99, 2 * MOST_HOLES + 5)]),
        ([*SMALL, NumberGap(90, 99, None)], [NumberGap(0, 99, None)]),
        (
            [NumberGap(0, 99, 7, is_lost=True), *SMALL],
            [NumberGap(0, 99, 7, is_lost=True), NumberGap(0, MOST_HOLES, 2 * MOST_HOLES)],
        ),
    ],
    ids=["few", "many", "of which one is unknown", "and one that is lost"],
)
def test_many_holes_are_told_as_one(gaps: list[NumberGap], expected: list[NumberGap]) -> None:
    assert joined(gaps) == expected
