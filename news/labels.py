"""The label of a score, in news and in analyses."""

from typing import Literal, get_args

Label = Literal["bullish", "neutral", "bearish"]
LABELS: tuple[Label, ...] = get_args(Label)
BULLISH_FROM, BEARISH_FROM = 0.15, -0.15


def sentiment_label(score: float) -> Label:
    if score >= BULLISH_FROM:
        return "bullish"
    return "bearish" if score <= BEARISH_FROM else "neutral"
