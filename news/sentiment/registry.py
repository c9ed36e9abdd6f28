"""The sentiment models there are: the built-in one, and those that the settings name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from django.conf import settings

from news.language import language_models

from .builtin import Builtin, builtin
from .language import LanguageSentiment
from .model import Score, SentimentFailed, SentimentModel
from .onnx import OnnxModel

logger = logging.getLogger(__name__)


class WithFallback:
    """The model that was chosen; where it has no score now, the built-in one, which the score then says."""

    def __init__(self, chosen: SentimentModel, fallback: Builtin) -> None:
        self.chosen, self.fallback = chosen, fallback

    @property
    def identifier(self) -> str:
        return self.chosen.identifier

    def score(self, title: str, category: str = "") -> Score:
        try:
            return self.chosen.score(title, category)
        except SentimentFailed as failure:
            logger.info("%s scores in place of %s: %s", self.fallback.identifier, self.identifier, failure)
            return self.fallback.score(title, category)


@cache
def sentiment_models() -> Sequence[SentimentModel]:
    models: list[SentimentModel] = [builtin()]
    if settings.ONNX_MODEL_DIR:
        models.append(OnnxModel(Path(settings.ONNX_MODEL_DIR)))
    return [*models, *(LanguageSentiment(model) for model in language_models())]


def current_model() -> Builtin | WithFallback:
    """The one that SENTIMENT_MODEL names; the built-in one by default."""
    named = settings.SENTIMENT_MODEL
    if not named or named == builtin().identifier:
        return builtin()
    chosen = next((model for model in sentiment_models() if model.identifier == named), None)
    # A name that nobody has is told by a system check; until it is mended, scores go on.
    return builtin() if chosen is None else WithFallback(chosen, builtin())
