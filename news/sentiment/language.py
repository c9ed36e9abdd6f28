"""A language model at an endpoint as a sentiment model."""

import asyncio
from concurrent.futures import TimeoutError as NotInTime
from threading import Lock
from typing import Annotated

import msgspec

from news.language import LanguageFailed
from news.language_models import LanguageModel

from .model import Score, SentimentFailed

LONGEST_TITLE = 400
INSTRUCTIONS = """Judge one news headline for traders. Give `score`, a number from -1 (very bearish) to
1 (very bullish); between -0.15 and 0.15 is neutral: previews, calendars, explanations, no direction.
The score is for the asset that the category is about: precious metals for `gold`, crypto-assets for `crypto`,
the currency named first (the base of a pair) for `forex`, risk assets such as stocks for `macro`,
and the company or asset that the headline is about where there is no category."""


class Judgement(msgspec.Struct, forbid_unknown_fields=True):
    score: Annotated[float, msgspec.Meta(ge=-1, le=1)]


class LanguageSentiment:
    def __init__(self, model: LanguageModel) -> None:
        self.identifier = model.identifier
        self._model = model
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = Lock()

    def is_healthy(self) -> bool:
        return self._loop is not None and self._model.is_healthy()

    async def check(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._model.check()
        except LanguageFailed as failure:
            raise SentimentFailed(str(failure)) from None

    def score(self, title: str, category: str = "") -> Score:
        """Scores one title at a time, because a caller that waits here holds a thread that the API needs."""
        if self._loop is None or not self.is_healthy():
            raise SentimentFailed("it did not answer its last check")
        if not self._turn.acquire(blocking=False):
            raise SentimentFailed("it is busy with another title")
        material = {"category": category, "headline": title[:LONGEST_TITLE]}
        answer = self._model.answer(INSTRUCTIONS, material, Judgement)
        try:
            asked = asyncio.run_coroutine_threadsafe(answer, self._loop)
            return Score(round(asked.result(self._model.patience_s).score, 3), self.identifier, "")
        except LanguageFailed as failure:
            raise SentimentFailed(str(failure)) from None
        except NotInTime:
            asked.cancel()
            raise SentimentFailed("there was no answer in time") from None
        finally:
            self._turn.release()
