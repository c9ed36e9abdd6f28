"""The processes that make the rest of the demo: started, started again where one was killed, and given up."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest
from django.core.management.base import OutputWrapper

from demo import past
from demo.past import LATER, DemoMakers
from tests.patience import PATIENCE_S


class Maker:
    """One that has ended."""

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode

    def poll(self) -> int:
        return self.returncode

    def communicate(self) -> tuple[None, str]:
        return None, "no room" if self.returncode > 0 else ""


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([0], ""),
        ([1], "no room\n"),
        ([-9, -9, -9, 0], ""),
        ([-9, 1], "no room\n"),
        ([-9] * 4, f"The demo's past is not complete. {LATER}\n"),
    ],
)
def test_maker_that_was_killed_is_started_again_and_what_went_wrong_is_told_once(
    monkeypatch: pytest.MonkeyPatch, ends: list[int], said: str
) -> None:
    makers: Iterator[Maker] = map(Maker, ends)
    monkeypatch.setattr(past, "_start_one", lambda: next(makers))
    out = io.StringIO()
    DemoMakers(OutputWrapper(out), 1).start()
    for thread in threading.enumerate():
        if thread.name == "makers of the demo":
            thread.join(PATIENCE_S)
    assert out.getvalue() == said
    assert list(makers) == []
