"""The analysts: the built-in model, which always answers, and any language models."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Protocol

import msgspec
from django.conf import settings
from msgspec import Meta
from msgspec.structs import replace

from core.threads import in_thread
from news.labels import sentiment_label
from news.language import LanguageFailed
from news.language_models import LanguageModel, language_models
from news.scoring import sentiment_models
from news.sentiment import CheckedModel

from . import built_in
from .answer import Analysis
from .facts import Facts


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


# What a language model is asked about an analysis, and which part of its answer is used.
INSTRUCTIONS = (
    "You are a sober market analyst. You get the analysis of one instrument: drivers with their weights "
    "and evidence, levels, and how recent each input is. An item of news with side -1 is about the currency "
    "that the price is counted in: what is good for that lowers the price. Weigh all yourself. Give a score "
    "from -1 (bearish) to 1 (bullish); above -0.15 and below 0.15 it says that no direction is clear. Write "
    "a summary of three to six plain English sentences for a trader: the direction, what speaks for and "
    "against it, the nearest levels, and which data are missing or old. Use no number that "
    "is not in the material, promise nothing, and give no advice."
)

# It read the same data, so if it disagrees, one of the two is wrong.
CONFIDENCE_WHERE_THEY_DIFFER = 0.5
VERDICT = {"model", "direction", "score", "confidence", "summary"}
LINK = re.compile(r"://|\bwww\.", re.IGNORECASE)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


class Opinion(msgspec.Struct, forbid_unknown_fields=True):
    score: Annotated[float, Meta(ge=-1, le=1)]
    summary: Annotated[str, Meta(min_length=40, max_length=2000)]


def material_of(draft: Analysis) -> dict[str, Any]:
    """The analysis without the built-in model's own verdict."""
    material: dict[str, Any] = msgspec.to_builtins(draft)
    return {name: value for name, value in material.items() if name not in VERDICT}


def with_opinion(draft: Analysis, model: str, opinion: Opinion, material: Mapping[str, Any]) -> Analysis:
    """Raises LanguageFailed if the summary says what the material does not support."""
    score = round(opinion.score, 3) + 0.0
    direction = sentiment_label(score)
    summary = " ".join(opinion.summary.split())
    if LINK.search(summary):
        # Titles come from anywhere, and one may have made the model write it.
        raise LanguageFailed("the summary has a link")
    if invented := list(invented_numbers(summary, {**material, "score": [draft.score, score]})):
        raise LanguageFailed(f"the summary has numbers that are not in the data: {', '.join(invented[:3])}")
    factor = 1.0 if direction == draft.direction else CONFIDENCE_WHERE_THEY_DIFFER
    confidence = round(draft.confidence * factor, 2)
    return replace(
        draft, model=model, score=score, direction=direction, confidence=confidence, summary=summary
    )


def invented_numbers(summary: str, material: Mapping[str, Any]) -> Iterator[str]:
    """Numbers that do not occur in the material, not even rounded or as a percentage."""
    known = [number_of(text) for text in NUMBER.findall(msgspec.json.encode(material).decode())]
    for text in NUMBER.findall(summary):
        decimals = len(text.partition(".")[2])
        value = number_of(text)
        if not any(value in (round(each, decimals), round(100 * each, decimals)) for each in known):
            yield text


def number_of(text: str) -> float:
    return float(text.replace(",", ""))
