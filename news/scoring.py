"""The available sentiment models, the one place that asks them for a score, and how an item takes one."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import msgspec
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from accounts.models import User
from core.deadlines import patient
from news.language import LanguageFailed
from news.language_models import LanguageModel, language_models
from news.models import ItemScore, NewsItem
from news.sentiment import Score, SentimentFailed, SentimentModel
from news.sentiment.linear import FILE, BadModel, linear_model
from news.sentiment.onnx import OnnxModel

# A language model at an endpoint as a sentiment model.
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


logger = logging.getLogger(__name__)

# Separate from the threads of the API: a model at an endpoint takes seconds for each title.
scoring_threads = ThreadPoolExecutor(2, thread_name_prefix="news-scoring")

# The model of a score that staff gave.
STAFF = "staff"
# Titles that are not scored by then stay drafts and wait for staff: other sources need the thread.
PATIENCE_S = patient(25.0)
Scorer = Callable[[str, str], Score | None]
"""From title and category to a score, or None if no model has one."""


def score_title(title: str, category: str) -> Score | None:
    return score_by(current_model(), title, category)


def score_by(model: SentimentModel, title: str, category: str) -> Score | None:
    """Asks the built-in model where this one has no score; each score names its model."""
    try:
        try:
            found = model.score(title, category)
        except SentimentFailed as failure:
            logger.info("%s scores in place of %s: %s", built_in_model.identifier, model.identifier, failure)
            found = built_in_model.score(title, category)
    except Exception:  # noqa: BLE001 - a third-party model: without a score the item waits for staff
        logger.exception("The sentiment model broke on a title; staff score it")
        return None
    return found._replace(score=max(-1.0, min(1.0, float(found.score))))


def score_in_time(
    titles: Iterable[tuple[str, str]], scorer: Scorer, patience_s: float = PATIENCE_S
) -> list[Score | None]:
    """Scores pairs of title and category. Those whose turn comes when the time is up get none."""
    until = time.monotonic() + patience_s
    return [scorer(*each) if time.monotonic() < until else None for each in titles]


def give_score(item: NewsItem, scored: Score, *, by: str, is_taken: bool = True) -> None:
    ItemScore.objects.create(
        item=item,
        title=item.title,
        score=scored.score,
        model=scored.model,
        version=scored.version,
        by=by,
        is_taken=is_taken,
    )
    if is_taken:
        item.sentiment_score, item.model = scored.score, scored.model
        item.save(update_fields=("sentiment_score", "model"))


class BuiltInModel:
    identifier = FILE.stem

    def __init__(self) -> None:
        self._is_well = False

    def is_healthy(self) -> bool:
        return self._is_well

    async def check(self) -> None:
        """Reads the file as well, so that no request has to wait for it."""
        try:
            model = await asyncio.to_thread(linear_model)
            self._is_well = model.identifier == self.identifier and model.score("Gold rises") > 0
        except (OSError, BadModel) as error:
            self._is_well = False
            raise SentimentFailed(str(error)) from None

    def score(self, title: str, category: str = "") -> Score:
        model = linear_model()
        return Score(model.score(title, category), model.identifier, model.version)


built_in_model = BuiltInModel()


def current_model() -> SentimentModel:
    """The model that SENTIMENT_MODEL names. A system check reports an unknown name, and until it is corrected
    the built-in model scores, as it does by default."""
    named = settings.SENTIMENT_MODEL
    return next((model for model in sentiment_models() if model.identifier == named), built_in_model)


@cache
def sentiment_models() -> Sequence[SentimentModel]:
    models: list[SentimentModel] = [built_in_model]
    if settings.ONNX_MODEL_DIR:
        models.append(OnnxModel(Path(settings.ONNX_MODEL_DIR)))
    return [*models, *(LanguageSentiment(model) for model in language_models())]


def check_sentiment_model(**kwargs: Any) -> list[CheckMessage]:
    named = settings.SENTIMENT_MODEL
    there = [model.identifier for model in sentiment_models()]
    if not named or named in there:
        return []
    hint = f"Set SENTIMENT_MODEL to one of {', '.join(there)}, or configure the model."
    return [Warning(f"There is no sentiment model {named!r}.", hint=hint, id="tickwire.W101")]


# For a person's own data: the scores that they gave to news, or asked a model for.
GIVEN = ("item_id", "title", "score", "model", "version", "is_taken", "scored_at")


def has_given_scores(user: User) -> bool:
    return ItemScore.objects.filter(by=user.username).exists()


def given_scores(user: User) -> Iterable[Mapping[str, object]]:
    given = ItemScore.objects.filter(by=user.username).order_by("pk")
    rows: Iterable[Mapping[str, object]] = given.values(*GIVEN)
    return rows
