from __future__ import annotations

import pytest

from analysis.opinion import invented_numbers


@pytest.mark.parametrize(
    ("summary", "invented"),
    [
        ("Support is near 1.0845, and the score is 0.31.", []),
        ("Support is near 1.08.", []),
        ("News weighs 30 % of it.", []),
        ("The volume was 12,500 lots.", []),
        ("Support is near 1.0846.", ["1.0846"]),
        ("It will reach 2 and then 1.5.", ["2", "1.5"]),
        ("Nothing in figures.", []),
    ],
)
def test_numbers_that_are_nowhere_in_the_data_are_invented(summary: str, invented: list[str]) -> None:
    material = {"levels": [1.0845], "score": 0.31, "weight": 0.3, "text": "12500 lots"}

    assert list(invented_numbers(summary, material)) == invented
