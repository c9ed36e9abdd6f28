"""What runs beside the requests: sources are polled, outcomes settled, models checked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from django.conf import settings

from core.background import cancel_and_wait
from news.calibration.figures import report
from news.calibration.settling import keep_settling
from news.ingest.polling import keep_polling

from .sentiment import SentimentFailed, SentimentModel, sentiment_models

logger = logging.getLogger(__name__)
CHECK_EVERY_S = 60.0


class NewsTasks:
    """Of this process, for as long as it serves."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._begin("news outcomes", keep_settling())
        if settings.NEWS_POLLING:
            self._begin("news sources", keep_polling())
        for model in sentiment_models():
            self._begin(f"health of {model.identifier}", keep_checking(model))

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks)
        self._tasks.clear()
        report.forget()


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


news_tasks = NewsTasks()
