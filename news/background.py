"""What runs beside the requests: sources are polled, outcomes settled, models checked."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from django.conf import settings

from core.background import cancel_and_wait
from news.calibration.figures import report
from news.calibration.settling import keep_settling
from news.ingest.polling import keep_polling

from .sentiment import SentimentFailed, SentimentModel, sentiment_models


class Newsroom:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks.append(asyncio.create_task(keep_settling(), name="news outcomes"))
        if settings.NEWS_POLLING:
            self._tasks.append(asyncio.create_task(keep_polling(), name="news sources"))

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks)
        self._tasks.clear()
        report.forget()


newsroom = Newsroom()
"""One per process."""

logger = logging.getLogger(__name__)
CHECK_EVERY_S = 60.0


class CheckedModel(Protocol):
    @property
    def identifier(self) -> str: ...

    def is_healthy(self) -> bool: ...


REGISTERED: list[CheckedModel] = []


def available() -> list[str]:
    return list(dict.fromkeys(model.identifier for model in REGISTERED if model.is_healthy()))


class ModelHealthChecks:
    """Looks after the models for as long as the process serves."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for model in sentiment_models():
            if model not in REGISTERED:
                REGISTERED.append(model)
            name = f"health of {model.identifier}"
            self._tasks.append(asyncio.create_task(keep_checking(model), name=name))

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks)
        self._tasks.clear()


async def keep_checking(model: SentimentModel) -> None:
    said = ""
    while True:
        problem = await checked(model)
        if problem != said:
            logger.warning(
                "The model %s %s", model.identifier, f"is not well: {problem}" if problem else "is well"
            )
        said = problem
        await asyncio.sleep(CHECK_EVERY_S)


async def checked(model: SentimentModel) -> str:
    """What is wrong with it; empty if nothing is."""
    try:
        await model.check()
    except SentimentFailed as failure:
        return str(failure)
    except Exception as error:  # noqa: BLE001 - the top of a task that has to outlive any model
        logger.exception("Checking the model %s broke", model.identifier)
        return f"a fault of our own ({type(error).__name__})"
    return ""


rounds = ModelHealthChecks()
