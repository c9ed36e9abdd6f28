"""The analysts: the built-in model, which always answers, and any language models."""

from collections.abc import Iterable
from typing import Protocol

from django.conf import settings

from core.threads import in_thread
from news.language_models import LanguageModel, language_models
from news.scoring import sentiment_models
from news.sentiment import CheckedModel

from . import built_in
from .answer import Analysis
from .facts import Facts
from .opinion import INSTRUCTIONS, Opinion, material_of, with_opinion


class Analyst(CheckedModel, Protocol):
    @property
    def patience_s(self) -> float:
        """After this many seconds it has either answered or failed."""

    async def analyse(self, facts: Facts) -> Analysis:
        """Or LanguageFailed."""


class BuiltInAnalyst:
    identifier = built_in.IDENTIFIER
    patience_s = 5.0

    def is_healthy(self) -> bool:
        return True

    async def analyse(self, facts: Facts) -> Analysis:
        return await in_thread(built_in.analyse, facts)


class LanguageAnalyst:
    """Judges the findings of the built-in model; drivers and levels stay as computed."""

    def __init__(self, model: LanguageModel) -> None:
        self.identifier = model.identifier
        self._model = model
        longest_s = max(float(endpoint["timeout_s"]) for endpoint in settings.LANGUAGE_ENDPOINTS)
        self.patience_s = built_in_analyst.patience_s + longest_s

    def is_healthy(self) -> bool:
        return self._model.is_healthy()

    async def analyse(self, facts: Facts) -> Analysis:
        draft = await built_in_analyst.analyse(facts)
        material = material_of(draft)
        opinion = await self._model.answer(INSTRUCTIONS, material, Opinion)
        return with_opinion(draft, self.identifier, opinion, material)


built_in_analyst = BuiltInAnalyst()


def identifiers() -> list[str]:
    return [built_in_analyst.identifier, *(model.identifier for model in language_models())]


def named(identifier: str) -> Analyst:
    for model in language_models():
        if model.identifier == identifier:
            return LanguageAnalyst(model)
    return built_in_analyst


def preferred() -> Analyst:
    """The analyst to ask if none was named."""
    return next(
        (LanguageAnalyst(model) for model in language_models() if model.is_healthy()), built_in_analyst
    )


def available_models() -> list[str]:
    """Models for analyses and for sentiment; a language model may do both."""
    return identifiers_of_healthy((built_in_analyst, *sentiment_models()))


def identifiers_of_healthy(models: Iterable[CheckedModel]) -> list[str]:
    return list(dict.fromkeys(model.identifier for model in models if model.is_healthy()))
