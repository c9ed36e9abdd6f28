"""What a language model is asked about an analysis, and which part of its answer is used."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from news.labels import sentiment_label
from news.language import LanguageFailed

from .answer import Analysis

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
