"""A machine that stands still for minutes, as far as a loop can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from tests.patience import PATIENCE_S

T = TypeVar("T")


class ShiftedLoop(asyncio.SelectorEventLoop):
    shift_s = 0.0

    def time(self) -> float:
        return super().time() + self.shift_s

    def stand_still(self) -> None:
        self.shift_s += 2 * PATIENCE_S


def shifted(act: Callable[[ShiftedLoop], Coroutine[object, object, T]]) -> T:
    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, ShiftedLoop)
        return runner.run(act(loop))
