"""Measures how well the model does on headlines that it has not seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from news.labels import sentiment_label
from news.sentiment.linear import LinearModel, Odds, odds_of, score_of

from .examples import LABELS, NAMES, LabelledHeadline
from .trainer import Prepared, against_neutral

SENTFIN_FLOOR, OWN_FLOOR, UNSEEN_FLOOR = 0.82, 0.75, 0.70


class Judged(NamedTuple):
    example: LabelledHeadline
    odds: Odds

    @property
    def is_right(self) -> bool:
        return LABELS[sentiment_label(score_of(self.odds))] == self.example.label


class Share(NamedTuple):
    """The number of right answers, and of all."""

    right: int
    of: int

    @property
    def accuracy(self) -> float:
        return self.right / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.accuracy:.3f} of {self.of}"


def share_of(judged: Sequence[Judged]) -> Share:
    return Share(sum(each.is_right for each in judged), len(judged))


def by(attribute: str, judged: Sequence[Judged]) -> dict[str, Share]:
    parts: defaultdict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        value = getattr(each.example, attribute)
        parts[NAMES.get(value, str(value))].append(each)
    return {name or "(none)": share_of(part) for name, part in sorted(parts.items())}


def judged_by(
    model: LinearModel, examples: Sequence[LabelledHeadline], *, without_category: bool = False
) -> list[Judged]:
    return [
        Judged(each, model.odds(each.title, "" if without_category else each.category)) for each in examples
    ]


class HeldOut:
    """Judges every example by a model that was trained without it and its near-duplicates."""

    def __init__(self, others: Sequence[LabelledHeadline], own: Sequence[LabelledHeadline]) -> None:
        self.prepared = Prepared(others, own)
        self._others, self._own = len(others), len(own)
        self.margins = self.prepared.held_out_margins()
        self.calibration = self.prepared.calibration(self.margins)

    def sentfin(self) -> list[Judged]:
        return self._judged(range(self._others), self.margins)

    def own(self) -> list[Judged]:
        return self._judged(self._range_of_own(), self.margins)

    def own_without_category(self) -> list[Judged]:
        return self._judged(range(self._others + self._own, len(self.prepared.labels)), self.margins)

    def by_style_left_out(self) -> list[Judged]:
        """Judges each style of our headlines by a model that saw none of that style."""
        styles = np.array([each.style for each in self.prepared.examples])
        margins = np.zeros_like(self.margins)
        for style in sorted({style for style in styles if style}):
            out = styles == style
            margins[out] = self.prepared.fit(~out).decision_function(self.prepared.rows[out])
        return self._judged(self._range_of_own(), margins)

    def own_by_sentfin(self) -> list[Judged]:
        """Judges our headlines by a model that saw none of them."""
        return self._judged(self._range_of_own(), self._margins_by(self._is_others()))

    def sentfin_by_own(self) -> list[Judged]:
        return self._judged(range(self._others), self._margins_by(~self._is_others()))

    def _margins_by(self, trained_on: Any) -> Any:
        return self.prepared.fit(trained_on).decision_function(self.prepared.rows)

    def _is_others(self) -> Any:
        return np.arange(len(self.prepared.labels)) < self._others

    def _range_of_own(self) -> range:
        return range(self._others, self._others + self._own)

    def _judged(self, numbers: range, margins: Any) -> list[Judged]:
        return [
            Judged(self.prepared.examples[number], odds)
            for number, odds in zip(numbers, self._odds(margins[numbers]), strict=True)
        ]

    def _odds(self, margins: Any) -> Iterator[Odds]:
        mixing, bias = against_neutral(self.calibration.coef_), against_neutral(self.calibration.intercept_)
        for bullish, bearish in margins @ mixing.T + bias:
            yield odds_of(float(bullish), float(bearish))
