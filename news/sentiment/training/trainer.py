"""Fits the linear model: a margin for each label, then odds that mean what they say."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ..lexicon import FILE as LEXICON
from ..weights import GROUPS, GroupFacts, ModelFacts, Tables, Weights
from .examples import OWN, Example
from .folds import folds
from .matrix import SHARES, SIZES, Headline, Matrix, counted, rarities, rows

NAME, VERSION = "tickwire-linear", 1
STRENGTH = 0.2
# Ours are few against SEntFiN's, and nearer to what the service reads; without category they count half.
WEIGHT_OF_OWN, WEIGHT_WITHOUT_CATEGORY = 2.0, 1.0


class Prepared:
    """Examples as rows, so that folds of them can be fitted without reading the titles again."""

    def __init__(self, others: Sequence[Example], own: Sequence[Example]) -> None:
        self.examples = [*others, *own, *own]
        self.copies = np.array([*range(len(others) + len(own)), *range(len(others), len(others) + len(own))])
        headlines = [Headline(each.title, each.category) for each in (*others, *own)]
        headlines += [Headline(each.title, "") for each in own]
        self.labels = np.array([each.label for each in self.examples])
        self.weights = np.array(
            [1.0] * len(others) + [WEIGHT_OF_OWN] * len(own) + [WEIGHT_WITHOUT_CATEGORY] * len(own)
        )
        counts = counted(headlines)
        self.rarity = rarities(counts)
        self.rows = rows(counts, self.rarity)
        found = folds([each.title for each in self.examples[: len(others) + len(own)]])
        self.folds = np.array(found)[self.copies]

    def fit(self, chosen: Any) -> LinearSVC:
        model = LinearSVC(C=STRENGTH, tol=1e-3, random_state=0)
        model.fit(self.rows[chosen], self.labels[chosen], sample_weight=self.weights[chosen])
        return model

    def held_out_margins(self) -> Any:
        """Of every example by a model that saw neither it nor a near-duplicate of it."""
        margins = np.zeros((len(self.labels), 3))
        for fold in np.unique(self.folds):
            out = self.folds == fold
            margins[out] = self.fit(~out).decision_function(self.rows[out])
        return margins

    def calibration(self, margins: Any) -> LogisticRegression:
        return LogisticRegression(C=100.0, max_iter=500).fit(margins, self.labels, sample_weight=self.weights)


def train(others: Sequence[Example], own: Sequence[Example]) -> Weights:
    prepared = Prepared(others, own)
    calibration = prepared.calibration(prepared.held_out_margins())
    model = prepared.fit(np.ones(len(prepared.labels), dtype=bool))
    mixing = against_neutral(calibration.coef_)
    weights = mixing @ model.coef_
    bias = mixing @ model.intercept_ + against_neutral(calibration.intercept_)
    trained_on = {"sentfin": len(others), "own": len(own)}
    return exported(weights, bias, prepared.rarity, trained_on)


def against_neutral(values: Any) -> Any:
    """Of bearish, neutral, bullish (in this order): bullish and bearish, less neutral."""
    return np.array([values[2] - values[1], values[0] - values[1]])


def exported(weights: Matrix, bias: Any, rarity: dict[str, Any], trained_on: dict[str, int]) -> Weights:
    groups, tables = {}, {}
    start = 0
    for group in GROUPS:
        part = weights[:, start : start + SIZES[group]] * rarity[group]
        start += SIZES[group]
        scale = float(f"{np.abs(part).max() / 127:.6g}")
        steps = np.rint(part / scale).astype(int)
        groups[group] = GroupFacts(SIZES[group], scale, SHARES[group])
        tables[group] = Tables(
            bytes(rarity[group].astype(int).tolist()),
            array("b", steps[0].tolist()),
            array("b", steps[1].tolist()),
        )
    rounded = (round(float(bias[0]), 5), round(float(bias[1]), 5))
    made_of = {path.name: checksum(path) for path in (LEXICON, OWN)}
    return Weights(ModelFacts(NAME, VERSION, rounded, groups, trained_on, made_of), tables)


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
