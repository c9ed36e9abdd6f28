"""The background work of news: sources are polled, outcomes are settled, and models are checked."""

import asyncio
import logging

from django.conf import settings

from core.background import BackgroundLoop
from news.calibration import report, settling_loop
from news.ingest.polling import polling_loop
from news.scoring import sentiment_models
from news.sentiment import SentimentFailed, SentimentModel

logger = logging.getLogger(__name__)
CHECK_EVERY_S = 60.0


class NewsTasks:
    def __init__(self) -> None:
        self._loops: list[BackgroundLoop] = []

    async def start(self) -> None:
        self._loops = [settling_loop(), *map(checking_loop, sentiment_models())]
        if settings.NEWS_POLLING:
            self._loops.append(polling_loop())
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        await asyncio.gather(*(loop.stop() for loop in self._loops))
        report.forget()


def checking_loop(model: SentimentModel) -> BackgroundLoop:
    return BackgroundLoop(
        f"health of {model.identifier}",
        model.check,
        fault=HealthLog(model),
        broke=f"Checking the model {model.identifier} broke",
        passing=(SentimentFailed,),
        after=CHECK_EVERY_S,
    )


class HealthLog:
    """Logs a model's health only when it changes."""

    def __init__(self, model: SentimentModel) -> None:
        self.logger = logger
        self._identifier = model.identifier
        self._problem = ""

    def tell(self, error: object) -> None:
        if str(error) != self._problem:
            logger.warning("The model %s is not well: %s", self._identifier, error)
        self._problem = str(error)

    def over(self) -> None:
        if self._problem:
            logger.warning("The model %s is well", self._identifier)
        self._problem = ""


news_tasks = NewsTasks()
