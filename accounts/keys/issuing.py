"""Issues, rolls and revokes keys: the row and the event for the other processes are one transaction. Keys
hashed with an older pepper are hashed again when they are used."""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.key_text import generate_key, prefix_of
from accounts.models import Account, ApiKey
from accounts.secrets import current_name, hashed
from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.fault_log import LastingFault
from core.threads import in_thread

from .cache import MarkedKeyCache

DAY = timedelta(days=1)
MAX_OVERLAP_HOURS = 72
MAX_USABLE_KEYS = 25

# A key's row is kept for ever, and its events for 400 days, so a limit must keep both from growing endlessly.
MOST_KEYS_A_DAY = 100


class TooManyKeys(Exception):
    """The account has its maximum of usable keys, or got its maximum for one day."""

    def __init__(self, text: str, account: Account) -> None:
        super().__init__(text)
        self.account = account


class KeyNotActive(ValueError):
    """The key has ended, or was rolled before."""


def issue_key(
    account: Account, name: str, *, by: str, secret: str = "", most_a_day: int | None = MOST_KEYS_A_DAY
) -> tuple[ApiKey, str]:
    """Make a key and return it with its secret, which is stored nowhere. Staff pass no `most_a_day`, because
    they help those who have had too many."""
    secret = secret or generate_key()
    (key,) = issue_keys([(account, secret)], name, by=by, most_a_day=most_a_day)
    return key, secret


@transaction.atomic
def issue_keys(
    wanted: Sequence[tuple[Account, str]], name: str, *, by: str, most_a_day: int | None = MOST_KEYS_A_DAY
) -> list[ApiKey]:
    """Make a key of each secret, or none; an account may be there several times."""
    # Locking the accounts makes simultaneous requests count one after the other.
    accounts = {account.pk: account for account, _ in wanted}
    list(Account.objects.select_for_update().filter(pk__in=accounts).order_by("pk").values_list("pk"))
    now, own = timezone.now(), ApiKey.objects.filter(account__in=accounts).order_by()
    limits = [
        (
            own.usable(now),
            MAX_USABLE_KEYS,
            f"An account can have {MAX_USABLE_KEYS} usable keys at most. Revoke one first.",
        )
    ]
    if most_a_day is not None:
        text = (
            f"No more than {most_a_day} keys are issued or rolled for an account in a day. Try again "
            "tomorrow, or ask the staff. A key that leaked can be revoked at any time."
        )
        limits.append((own.filter(created_at__gt=now - DAY), most_a_day, text))
    for counted, most, text in limits:
        many = Counter(counted.values_list("account", flat=True))
        many.update(account.pk for account, _ in wanted)
        if full := [accounts[pk] for pk in accounts if many[pk] > most]:
            raise TooManyKeys(text, full[0])
    keys = ApiKey.objects.bulk_create(
        ApiKey(account=account, name=name, prefix=prefix_of(secret), **hashed(secret))
        for account, secret in wanted
    )
    ControlEvent.objects.publish_each(EventKind.KEY_ISSUED, map(_facts, keys), by=by)
    return keys


@transaction.atomic
def roll_key(
    key: ApiKey, *, overlap_hours: int, by: str, most_a_day: int | None = MOST_KEYS_A_DAY
) -> tuple[ApiKey, str]:
    """Issue a successor; the old key works for the overlap and then no more."""
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise ValueError(f"The overlap is 0 to {MAX_OVERLAP_HOURS} hours.")
    now = timezone.now()
    until = now + timedelta(hours=overlap_hours)
    rolled = ApiKey.objects.usable(now).filter(pk=key.pk, expires_at=None).update(expires_at=until)
    if not rolled:
        raise KeyNotActive("Only an active key can be rolled.")
    # Events come last: issuing locks the account, and one must not wait for a row after publishing.
    issued = issue_key(key.account, key.name, by=by, most_a_day=most_a_day)
    _publish(EventKind.KEY_ROLLED, key, by, ends_at=until.timestamp())
    return issued


@transaction.atomic
def revoke_key(key: ApiKey, *, by: str) -> bool:
    """End a key everywhere. False if it was revoked before."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    _publish(EventKind.KEY_REVOKED, key, by)
    return True


def _publish(kind: EventKind, key: ApiKey, by: str, **more: Any) -> None:
    ControlEvent.objects.publish(kind, by=by, **_facts(key), **more)


def _facts(key: ApiKey) -> dict[str, Any]:
    return {"account": key.account_id, "key": key.pk, "prefix": key.prefix, "mark": key.mark}


# Keys are hashed again when they are used, because only then is their text known. A process that still has
# the previous pepper as its current one may hash a key back, so all keys in use are checked repeatedly, for
# as long as there are fallbacks.
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
        # For rows of the version that named no pepper.
        return {key: digest for key, digest in in_use.items() if (cache.model, key) not in self._named}


def write(model: Any, digests: dict[int, str]) -> None:
    for key, found in to_be_replaced(model, digests):
        try:
            replace(model, key, found, digests[key])
        except IntegrityError:
            logger.error("%s %d is not hashed again: another row has the same secret", model.__name__, key)


def to_be_replaced(model: Any, digests: dict[int, str]) -> list[tuple[int, str]]:
    """Keys that were not hashed with the current pepper, and their current digests."""
    rows = model.objects.filter(pk__in=digests.keys()).exclude(pepper_name=current_name())
    return list(rows.order_by("pk").values_list("pk", "digest"))


@transaction.atomic
def replace(model: Any, key: int, found: str, digest: str) -> None:
    """Unless another process has changed the row since."""
    model.objects.filter(pk=key, digest=found).update(digest=digest, pepper_name=current_name())


def slices(whole: dict[int, str]) -> Iterator[dict[int, str]]:
    items = list(whole.items())
    for start in range(0, len(items), AT_ONCE):
        yield dict(items[start : start + AT_ONCE])
