from argparse import ArgumentParser
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management.base import BaseCommand

from accounts.models import ApiKey
from accounts.secrets import Seal, current_name, name_of, reseal_some
from market.models import IngestKey
from transparency.keyring import keyring

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Seal second factors with the current KEY_PEPPER, and say which keys still need one of"
        " KEY_PEPPER_FALLBACKS. Changes nothing besides, and may be run at any time."
    )
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--all", action="store_true", help=f"Name all keys, not only {SHOWN} of a kind.")

    def handle(self, *, all: bool, **options: Any) -> None:  # noqa: A002 - the name of the option
        shown = None if all else SHOWN
        unknown = self._reseal() + self._reseal_log_keys()
        usable = ApiKey.objects.usable(datetime.now(UTC))
        needed = self._say("API keys", usable.of_active_users(), shown)
        # They work again once the user is unlocked.
        deactivated = usable.filter(account__user__is_active=False)
        needed += self._say("API keys of deactivated users", deactivated, shown)
        needed += self._say("Ingest keys", IngestKey.objects.filter(revoked_at=None), shown)
        if not settings.KEY_PEPPER_FALLBACKS:
            self.stdout.write("There are no KEY_PEPPER_FALLBACKS.")
        elif needed:
            self.stdout.write(
                f"KEY_PEPPER_FALLBACKS are still needed by {needed} keys. A key is hashed again within a"
                " minute of its use; one that is not used before the fallbacks are removed stops working."
            )
        elif unknown:
            self.stdout.write(
                "Keep KEY_PEPPER_FALLBACKS until each second factor can be read or has been removed by staff:"
                " no key needs them any more, but some of these factors may."
            )
        else:
            self.stdout.write("No row needs KEY_PEPPER_FALLBACKS any more: they can be removed.")
        if settings.SECRET_KEY_FALLBACKS:
            days = settings.SESSION_COOKIE_AGE // 86_400
            self.stdout.write(
                f"SECRET_KEY_FALLBACKS are needed by sessions and links from before, for {days} days at most."
            )

    def _reseal(self) -> int:
        """How many second factors no pepper opens: a part of them may need a fallback."""
        after: int | None = 0
        found: Counter[Seal] = Counter()
        while after is not None:
            after, some = reseal_some(after)
            found += some
            if after is not None:
                self.stdout.write(f"  {found.total()} second factors looked at")
        self.stdout.write(
            f"Second factors: {found[Seal.FALLBACK]} encrypted again, {found[Seal.CURRENT]} were up to date."
        )
        if found[Seal.UNKNOWN]:
            self.stderr.write(
                f"{found[Seal.UNKNOWN]} second factors are opened by no pepper that is set: add the one they"
                " were made with to KEY_PEPPER_FALLBACKS, or let staff remove them."
            )
        return found[Seal.UNKNOWN]

    def _reseal_log_keys(self) -> int:
        unopened = keyring.reseal()
        if unopened:
            self.stderr.write(
                f"{unopened} keys of the ledger's log are opened by no pepper that is set: add the one they"
                " were made with to KEY_PEPPER_FALLBACKS, or make a new key with `ledger_key --rotate`."
            )
        return unopened

    def _say(self, title: str, keys: Any, shown: int | None) -> int:
        """How many of them need a fallback."""
        name = current_name()
        others = keys.exclude(pepper_name=name)
        known = {name_of(pepper) for pepper in settings.KEY_PEPPER_FALLBACKS}
        self.stdout.write(f"{title}: {keys.filter(pepper_name=name).count()} with the current pepper.")
        void = others.exclude(pepper_name__in={*known, ""}).count()
        if void:
            self.stderr.write(f"{title}: {void} have a pepper that is not set, so they do not work.")
        waiting = others.filter(pepper_name__in={*known, ""}) if known else others.none()
        for key in waiting.order_by("prefix")[:shown]:
            used = f"last used {key.last_used_at:%Y-%m-%d}" if key.last_used_at else "never used"
            self.stdout.write(f"  {key.prefix}…  {used}  {key.name}")
        count: int = waiting.count()
        if shown is not None and count > shown:
            self.stdout.write(f"  and {count - shown} more; --all names them.")
        return count
