"""The keys that sign the log: made on first use, and kept in the database, sealed."""

from __future__ import annotations

from datetime import datetime, timedelta

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from core.encryption import seal, unseal

from .checkpoints import Checkpoint, Note
from .keys import KeyType, SigningKey
from .models import LogKey, SignedCheckpoint
from .remembered import in_file

BOTH_SIGN = timedelta(days=30)
"""An old key signs beside the new one for this long, so that readers can change to the new one in time."""

AFTER = "/after-"


class KeysUnopened(Exception):
    """No key that signs now can be opened with the secrets that are set."""


class Keyring:
    def signing_keys(self, now: datetime) -> list[SigningKey]:
        """The oldest first: readers who have known the log for longest know that key."""
        rows = list(LogKey.objects.signing(now)) or [self._make_first(now)]
        keys = [key for row in rows if (key := self._opened(row)) is not None]
        if not keys:
            raise KeysUnopened(
                "No key of the ledger's log can be opened: put the KEY_PEPPER that it was made with into"
                " KEY_PEPPER_FALLBACKS, or make a new key."
            )
        return keys

    @transaction.atomic
    def rotate(self, now: datetime, both_sign: timedelta = BOTH_SIGN) -> LogKey:
        """A new key for the same log. The current one signs for a while longer."""
        old = LogKey.objects.select_for_update().current()
        if old is None:
            return self._make_first(now)
        old.signs_until = now + both_sign
        old.save(update_fields=["signs_until"])
        return self._make(old.origin, now)

    @transaction.atomic
    def begin_log(self, last: Checkpoint, now: datetime) -> LogKey:
        """A new log in place of one whose entries are lost; its name contains where that one ended."""
        LogKey.objects.filter(Q(signs_until=None) | Q(signs_until__gt=now)).update(signs_until=now)
        return self._make(named_after(last), now)

    def opens(self, row: LogKey) -> bool:
        return self._opened(row) is not None

    def has_signed(self, note: str) -> bool:
        """Whether one of its keys did: other notes were written with the database's password alone."""
        keys = [row.key for row in LogKey.objects.all() if self.opens(row)]
        try:
            return bool(Note.read(note.encode()).signed_by(keys))
        except ValueError:
            return False

    def last_signed(self) -> Checkpoint | None:
        """Of any log."""
        rows = SignedCheckpoint.objects.order_by("-pk")
        return next((each.checkpoint for each in rows.iterator() if self.has_signed(each.note)), None)

    def reseal(self) -> int:
        """With the current secret. How many cannot be opened."""
        unopened = 0
        for row in LogKey.objects.all():
            key = self._opened(row)
            if key is None:
                unopened += 1
            else:
                LogKey.objects.filter(pk=row.pk).update(sealed=seal(key.secret_text()))
        return unopened

    def _make_first(self, now: datetime) -> LogKey:
        origin, (_, last) = settings.LEDGER_ORIGIN or default_origin(), in_file()
        if last is not None and last.size and last.origin.partition(AFTER)[0] == origin:
            # The database is an empty one, or was put back to before its log: there is one history to a name.
            origin = named_after(last)
        return self._make(origin, now)

    def _make(self, origin: str, now: datetime) -> LogKey:
        key = SigningKey.make(origin, KeyType.ED25519)
        sealed = seal(key.secret_text())
        return LogKey.objects.create(origin=origin, verifier=str(key.verifier), sealed=sealed, made_at=now)

    def _opened(self, row: LogKey) -> SigningKey | None:
        try:
            key = SigningKey.read(unseal(row.sealed))
        except InvalidToken:
            return None
        return key if str(key.verifier) == row.verifier else None


def named_after(last: Checkpoint) -> str:
    return f"{last.origin.partition(AFTER)[0]}{AFTER}{last.size}-{last.root.hex()[:16]}"


def default_origin() -> str:
    """The public host, as it is when the first key is made."""
    hosts = (host.lstrip(".") for host in settings.ALLOWED_HOSTS)
    return f"{next((host for host in hosts if host.strip('*')), 'localhost')}/ledger"


keyring = Keyring()
