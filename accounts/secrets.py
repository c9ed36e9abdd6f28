"""The secrets of this installation: the pepper that keys are hashed with, the keys that seal second factors,
and the previous ones, which still open what was made with them.

A process that has the new pepper as a fallback recognises the keys that others already hash with it, so that
processes can change over one after the other."""

import contextlib
import hmac
import logging
from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken, MultiFernet
from django.conf import settings
from django.core.cache import cache
from django.db import transaction

from core.background import BackgroundLoop, scattered
from core.database import UNANSWERED
from core.encryption import all_peppers, ciphers
from core.fault_log import EachFault
from core.threads import in_thread

from .key_text import digest_of

NAME_LENGTH = 12


def name_of(pepper: str) -> str:
    """Stands beside each digest. It says which pepper that was made with, and nothing about the pepper."""
    return hmac.digest(pepper.encode(), b"the name of this pepper", "sha256").hex()[:NAME_LENGTH]


def current_name() -> str:
    return name_of(settings.KEY_PEPPER)


def possible_digests(key: str) -> list[str]:
    return [digest_of(key, pepper) for pepper in all_peppers()]


def hashed(key: str) -> dict[str, str]:
    """The columns of a new key."""
    return {"digest": digest_of(key, settings.KEY_PEPPER), "pepper_name": current_name()}


# Secrets of second factors sealed with a previous pepper are sealed again in the background.
logger = logging.getLogger(__name__)
SEALED = ("secret", "seed", "migrated_codes")
AT_ONCE = 100
LOOK_EVERY_S = 600


class Seal(IntEnum):
    CURRENT = 0
    FALLBACK = 1
    UNKNOWN = 2
    """No known pepper opens it."""


def reseal_some(after: int) -> tuple[int | None, Counter[Seal]]:
    """Where to go on, or None at the end, and how many factors had which seal."""
    factors = Authenticator.objects.filter(pk__gt=after).order_by("pk")
    keys = list(factors.values_list("pk", flat=True)[:AT_ONCE])
    found = Counter(had for key in keys if (had := reseal(key)) is not None)
    return (keys[-1] if len(keys) == AT_ONCE else None), found


@transaction.atomic
def reseal(key: int) -> Seal | None:
    """Which seal the factor had, if it has a secret at all. Its row is locked, so that a recovery code used
    at the same time does not become valid again."""
    factor = Authenticator.objects.select_for_update().filter(pk=key).first()
    if factor is None or not (seals := seals_of(factor.data)):
        return None
    if seals == {Seal.FALLBACK} or seals == {Seal.FALLBACK, Seal.CURRENT}:
        Authenticator.objects.filter(pk=key).update(data=factor.data | _rotated(factor.data))
    return max(seals)


def count_unopened() -> int:
    """Second factors of which no pepper opens all."""
    every = Authenticator.objects.values_list("data", flat=True)
    return sum(Seal.UNKNOWN in seals_of(data) for data in every.iterator())


def seals_of(data: Mapping[str, Any]) -> set[Seal]:
    return {seal_of(each) for texts in sealed_in(data).values() for each in as_list(texts)}


def sealed_in(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in SEALED if name in data}


def as_list(texts: Any) -> list[str]:
    return texts if isinstance(texts, list) else [texts]


def seal_of(sealed: str) -> Seal:
    for number, each in enumerate(ciphers()):
        with contextlib.suppress(InvalidToken):
            each.decrypt(sealed)
            return Seal.FALLBACK if number else Seal.CURRENT
    return Seal.UNKNOWN


def _rotated(data: Mapping[str, Any]) -> dict[str, Any]:
    every = MultiFernet(ciphers())
    return {
        name: [every.rotate(each).decode() for each in texts]
        if isinstance(texts, list)
        else every.rotate(texts).decode()
        for name, texts in sealed_in(data).items()
    }


async def reseal_all() -> None:
    """The first process that asks has the turn for a while."""
    if not settings.KEY_PEPPER_FALLBACKS:
        return
    if not await in_thread(lambda: cache.add(f"sealing-{current_name()}", 1, timeout=LOOK_EVERY_S)):
        return
    after: int | None = 0
    found: Counter[Seal] = Counter()
    while after is not None:
        after, some = await in_thread(reseal_some, after)
        found += some
    if count := found[Seal.FALLBACK]:
        logger.info("%d second factors are sealed with the current KEY_PEPPER now", count)


resealer = BackgroundLoop(
    "seals of second factors",
    reseal_all,
    fault=EachFault(logger, "Second factors keep their seal for now"),
    broke="Second factors could not be encrypted again",
    passing=UNANSWERED,
    before=scattered(LOOK_EVERY_S),
)
