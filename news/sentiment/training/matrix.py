"""Titles as rows of numbers for scikit-learn, exactly as the scorer will add them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse

from ..features import Features, features, pieces
from ..weights import GROUPS, RARITY_STEPS, place

SIZES = {"terms": 1 << 16, "pieces": 1 << 17, "signs": 1 << 15}
# In titles on companies, of which there are thousands, words say more; elsewhere the signs carry further.
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
    """In sixteenths, as they are stored; 0 for what was seen too seldom to learn from."""
    found = {}
    for group, matrix in counts.groups.items():
        titles = matrix.shape[0]
        holders = np.asarray((matrix > 0).sum(0)).ravel()
        steps = np.rint((np.log((1 + titles) / (1 + holders)) + 1) * RARITY_STEPS)
        # A byte holds the rarest of two million titles.
        found[group] = np.where(holders >= SEEN_AT_LEAST, np.minimum(steps, 255), 0)
    return found


def rows(counts: Counts, rarity: dict[str, Any]) -> Matrix:
    """Each group has length 1, times its share in titles of this kind."""
    parts = []
    for group in GROUPS:
        matrix, steps = counts.groups[group], rarity[group]
        squares = np.asarray(matrix @ steps**2).ravel()
        shares = np.where(counts.has_category, SHARES[group][1], SHARES[group][0])
        factors = np.divide(shares, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
        parts.append(sparse.diags(factors) @ matrix @ sparse.diags(steps))
    return sparse.hstack(parts).tocsr()


def rows_of(headlines: Sequence[Headline], rarity: dict[str, Any]) -> Matrix:
    return rows(counted(headlines), rarity)
