"""The one place where the newsroom asks a sentiment model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from django.db import close_old_connections

from news.sentiment import Score, SentimentFailed, current_model, sentiment_models

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# Apart from the threads of the API: a model at an endpoint takes seconds for each title.
_pool = ThreadPoolExecutor(2, thread_name_prefix="news-scoring")
# What is not scored by then waits for staff, as a draft: others wait for the thread.
PATIENCE_S = 25.0


class Scored(NamedTuple):
    score: float
    model: str
    version: str


Scorer = Callable[[str, str], Scored | None]
"""Title and category to a score; None where there is no model that can tell."""


class Model(Protocol):
    def score(self, title: str, category: str = "") -> Score: ...


async def make_ready() -> str:
    """Before a model is asked that nobody looks after: one that is plugged in scores only after a check.
    What is wrong with it; empty if nothing is."""
    model = current_model()
    for each in sentiment_models():
        if each.identifier == model.identifier:
            try:
                await each.check()
            except SentimentFailed as failure:
                return f"{model.identifier}: {failure}"
    return ""


def score_title(title: str, category: str) -> Scored | None:
    return score_by(current_model(), title, category)


def score_by(model: Model, title: str, category: str) -> Scored | None:
    try:
        found = model.score(title, category)
    except SentimentFailed as failure:
        logger.warning("A title waits for staff, the sentiment model has no score: %s", failure)
        return None
    except Exception:  # noqa: BLE001 - a model of anybody's: without a score the item waits for staff
        logger.exception("The sentiment model broke on a title; staff score it")
        return None
    return Scored(max(-1.0, min(1.0, float(found.score))), found.model, found.version)


def patiently(scorer: Scorer, patience_s: float = PATIENCE_S) -> Scorer:
    """Asks the model for so long and no longer; after that there is none."""
    until = time.monotonic() + patience_s
    return lambda title, category: scorer(title, category) if time.monotonic() < until else None


async def in_scoring_thread(judge: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    def run() -> T:
        try:
            return judge(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_pool, copy_context().run, run)
