"""Keys are hashed anew while they are used, because nobody else knows them.

A process that still has the pepper of before as its current one may hash a key back, so all that are in use
are looked at again and again, for as long as there are fallbacks."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.peppers import current_name
from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread

from .cache import MarkedKeyCache

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 15
AT_ONCE = 500


class Rehasher(BackgroundLoop):
    def __init__(self, *caches: MarkedKeyCache[Any]) -> None:
        self._caches = caches
        self._named: set[tuple[type, int]] = set()
        super().__init__(
            "hashes of keys",
            self.rehash,
            fault=LastingFault(logger, "Keys are hashed again when the database answers"),
            broke="Keys could not be hashed again",
            passing=UNANSWERED,
            before=LOOK_EVERY_S,
        )

    async def stop(self) -> None:
        await super().stop()
        with contextlib.suppress(*UNANSWERED):
            await self.rehash()

    async def rehash(self) -> None:
        for cache in self._caches:
            for digests in slices(self._to_be_looked_at(cache)):
                await in_thread(write, cache.model, digests)
                self._named |= {(cache.model, key) for key in digests}

    def _to_be_looked_at(self, cache: MarkedKeyCache[Any]) -> dict[int, str]:
        in_use = cache.digests_in_use()
        if settings.KEY_PEPPER_FALLBACKS:
            return in_use
        # Once is enough: a row of the version that named no pepper gets the name of the one it has.
        return {key: digest for key, digest in in_use.items() if (cache.model, key) not in self._named}


def write(model: Any, digests: dict[int, str]) -> None:
    for key, found in to_be_replaced(model, digests):
        try:
            replace(model, key, found, digests[key])
        except IntegrityError:
            logger.error("%s %d is not hashed again: another row has the same secret", model.__name__, key)


def to_be_replaced(model: Any, digests: dict[int, str]) -> list[tuple[int, str]]:
    """Those that were not made with the current pepper, and what they are."""
    rows = model.objects.filter(pk__in=digests.keys()).exclude(pepper_name=current_name())
    return list(rows.order_by("pk").values_list("pk", "digest"))


@transaction.atomic
def replace(model: Any, key: int, found: str, digest: str) -> None:
    """Unless the row has changed since: then what is there now is somebody else's to judge."""
    model.objects.filter(pk=key, digest=found).update(digest=digest, pepper_name=current_name())


def slices(whole: dict[int, str]) -> Iterator[dict[int, str]]:
    items = list(whole.items())
    for start in range(0, len(items), AT_ONCE):
        yield dict(items[start : start + AT_ONCE])
