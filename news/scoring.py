"""The one place where the newsroom asks a sentiment model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger(__name__)


class Scored(NamedTuple):
    score: float
    model: str
    version: str


Scorer = Callable[[str, str], Scored | None]
"""Title and category to a score; None where there is no model that can tell."""


def score_title(title: str, category: str) -> Scored | None:
    try:
        from news.sentiment import current_model

        found = current_model().score(title, category)
    except Exception:  # noqa: BLE001 - a model of anybody's: without a score the item waits for staff
        logger.exception("The sentiment model failed on a title; staff score it")
        return None
    return Scored(max(-1.0, min(1.0, float(found.score))), found.model, found.version)
