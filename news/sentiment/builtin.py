"""The linear model as one of the models that can be asked."""

from __future__ import annotations

import asyncio
from functools import cache

from .linear import FILE, LinearModel, linear_model
from .model import Score, SentimentFailed
from .weights import BadModel


class Builtin:
    identifier = FILE.stem

    def __init__(self) -> None:
        self._is_well = False

    def is_healthy(self) -> bool:
        return self._is_well

    async def check(self) -> None:
        """Reads the file too, so that no request waits for that."""
        try:
            model = await asyncio.to_thread(linear_model)
            self._is_well = model.identifier == self.identifier and model.score("Gold rises") > 0
        except (OSError, BadModel) as error:
            self._is_well = False
            raise SentimentFailed(str(error)) from None

    def score(self, title: str, category: str = "") -> Score:
        model: LinearModel = linear_model()
        return Score(model.score(title, category), model.identifier, model.version)


@cache
def builtin() -> Builtin:
    return Builtin()
