"""Fits the linear model: titles as rows of numbers, a margin for each label, odds that mean what they say."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from news.sentiment.linear import (
    GROUPS,
    RARITY_STEPS,
    Features,
    GroupFacts,
    ModelFacts,
    Tables,
    Weights,
    features,
    pieces,
    place,
)
from news.sentiment.signs import FILE as LEXICON

from .examples import OWN, LabelledHeadline, folds

SIZES = {"terms": 1 << 16, "pieces": 1 << 17, "signs": 1 << 15}

# For titles about companies, of which there are thousands, words say more; elsewhere signs carry further.
SHARES = {"terms": (1.0, 0.35), "pieces": (1.0, 0.35), "signs": (0.6, 1.0)}
SEEN_AT_LEAST = 2
Matrix = Any


class Headline(NamedTuple):
    title: str
    category: str


class Counts(NamedTuple):
    groups: dict[str, Matrix]
    has_category: Any


def counted(headlines: Sequence[Headline]) -> Counts:
    seen = [features(*headline) for headline in headlines]
    return Counts(
        {group: count(group, seen) for group in GROUPS}, np.array([bool(each.category) for each in seen])
    )


def count(group: str, seen: Sequence[Features]) -> Matrix:
    places: list[int] = []
    ends = [0]
    for each in seen:
        places += [place(feature, SIZES[group]) for feature in of_group(group, each)]
        ends.append(len(places))
    ones = np.ones(len(places))
    matrix = sparse.csr_matrix((ones, np.array(places, dtype=int), np.array(ends)), (len(seen), SIZES[group]))
    matrix.sum_duplicates()
    return matrix


def of_group(group: str, seen: Features) -> list[str]:
    if group == "pieces":
        return [piece for word in seen.words for piece in pieces(word)]
    return seen.terms if group == "terms" else seen.signs


def rarities(counts: Counts) -> dict[str, Any]:
    """In sixteenths, as stored; 0 for features that were seen too seldom to learn from."""
    found = {}
    for group, matrix in counts.groups.items():
        titles = matrix.shape[0]
        holders = np.asarray((matrix > 0).sum(0)).ravel()
        steps = np.rint((np.log((1 + titles) / (1 + holders)) + 1) * RARITY_STEPS)
        # A byte is enough for the rarest feature of two million titles.
        found[group] = np.where(holders >= SEEN_AT_LEAST, np.minimum(steps, 255), 0)
    return found


def rows(counts: Counts, rarity: dict[str, Any]) -> Matrix:
    """Scales each group to length 1, times its share in titles of this kind."""
    parts = []
    for group in GROUPS:
        matrix, steps = counts.groups[group], rarity[group]
        squares = np.asarray(matrix @ steps**2).ravel()
        shares = np.where(counts.has_category, SHARES[group][1], SHARES[group][0])
        factors = np.divide(shares, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
        parts.append(sparse.diags(factors) @ matrix @ sparse.diags(steps))
    return sparse.hstack(parts).tocsr()


NAME, VERSION = "tickwire-linear", 1
STRENGTH = 0.2

# Ours are fewer than SEntFiN's but closer to what the service reads; without category they count half.
WEIGHT_OF_OWN, WEIGHT_WITHOUT_CATEGORY = 2.0, 1.0


class Prepared:
    """Examples as rows, so that folds of them can be fitted without reading the titles again."""

    def __init__(self, others: Sequence[LabelledHeadline], own: Sequence[LabelledHeadline]) -> None:
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
        """The margins of every example by a model that saw neither it nor a near-duplicate."""
        margins = np.zeros((len(self.labels), 3))
        for fold in np.unique(self.folds):
            out = self.folds == fold
            margins[out] = self.fit(~out).decision_function(self.rows[out])
        return margins

    def calibration(self, margins: Any) -> LogisticRegression:
        return LogisticRegression(C=100.0, max_iter=500).fit(margins, self.labels, sample_weight=self.weights)


def train(others: Sequence[LabelledHeadline], own: Sequence[LabelledHeadline]) -> Weights:
    prepared = Prepared(others, own)
    calibration = prepared.calibration(prepared.held_out_margins())
    model = prepared.fit(np.ones(len(prepared.labels), dtype=bool))
    mixing = against_neutral(calibration.coef_)
    weights = mixing @ model.coef_
    bias = mixing @ model.intercept_ + against_neutral(calibration.intercept_)
    trained_on = {"sentfin": len(others), "own": len(own)}
    return exported(weights, bias, prepared.rarity, trained_on)


def against_neutral(values: Any) -> Any:
    """From values for bearish, neutral and bullish: those of bullish and of bearish, less that of neutral."""
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
