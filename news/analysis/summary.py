"""An analysis in plain sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from news.labels import sentiment_label

from .answer import Driver, Levels
from .facts import Facts

LEADS = {"bullish": "leans bullish", "bearish": "leans bearish", "neutral": "has no clear direction"}
WARNINGS = {
    "closed": "Its market is closed, so the last prices may be old.",
    "stale": "Its prices have stopped coming, so what they say may be out of date.",
}


def summarise(
    facts: Facts, drivers: Sequence[Driver], levels: Levels, score: float, confidence: float
) -> str:
    lead = LEADS[sentiment_label(score)]
    sentences = [f"{facts.symbol} {lead}, with a score of {score:+} and a confidence of {confidence}."]
    if facts.quote is None:
        sentences.append("It has no quote yet.")
    elif facts.state in WARNINGS:
        sentences.append(WARNINGS[facts.state])
    # The strongest first; those without data say so at the end.
    ordered = sorted(drivers, key=lambda driver: (not driver.available, -abs(driver.contribution)))
    sentences += [driver.text for driver in ordered]
    return " ".join([*sentences, *level_sentences(levels)])


def level_sentences(levels: Levels) -> list[str]:
    near = [f"support near {levels.supports[0].price}"] if levels.supports else []
    near += [f"resistance near {levels.resistances[0].price}"] if levels.resistances else []
    return [f"Where the price turned before: {', '.join(near)}."] if near else []
