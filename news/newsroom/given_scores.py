"""The scores that somebody gave to news or asked a model for, for themselves."""

from collections.abc import Iterable, Mapping

from accounts.models import User
from news.models import ItemScore

GIVEN = ("item_id", "title", "score", "model", "version", "is_taken", "scored_at")


def has_given_scores(user: User) -> bool:
    return ItemScore.objects.filter(by=user.username).exists()


def given_scores(user: User) -> Iterable[Mapping[str, object]]:
    given = ItemScore.objects.filter(by=user.username).order_by("pk")
    rows: Iterable[Mapping[str, object]] = given.values(*GIVEN)
    return rows
