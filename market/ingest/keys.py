"""Ingest keys: issued, changed and revoked, each told to every process in the same transaction."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts import keys
from accounts.marks import mark_of
from accounts.models import ControlEvent
from instruments.models import Instrument
from market.models import IngestKey

LEAD = "tw_ingest_"


@transaction.atomic
def issue_ingest_key(name: str, symbols: str = "", *, by: str) -> tuple[IngestKey, str]:
    """Make a key and return it with its secret, which exists nowhere else from then on."""
    secret = keys.generate(LEAD)
    key = IngestKey.objects.create(
        name=name,
        symbols=symbols,
        prefix=keys.prefix(secret, LEAD),
        digest=keys.digest(secret, settings.KEY_PEPPER),
    )
    _publish("issued", key, by)
    return key, secret


@transaction.atomic
def allow_symbols(key: IngestKey, symbols: str, *, by: str) -> None:
    IngestKey.objects.filter(pk=key.pk).update(symbols=symbols)
    _publish("changed", key, by)


@transaction.atomic
def revoke_ingest_key(key: IngestKey, *, by: str) -> bool:
    """End a key everywhere. False if it was revoked before."""
    if not IngestKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    _publish("revoked", key, by)
    return True


def check_symbols(text: str) -> str:
    """Symbols as people type them, in the form that is stored."""
    wanted = sorted({symbol.upper() for symbol in text.replace(",", " ").split()})
    known = set(Instrument.objects.filter(symbol__in=wanted).values_list("symbol", flat=True))
    if unknown := [symbol for symbol in wanted if symbol not in known]:
        raise ValidationError(f"There is no instrument {', '.join(unknown)}.")
    return " ".join(wanted)


def _publish(act: str, key: IngestKey, by: str) -> None:
    ControlEvent.objects.publish(
        f"ingest_key.{act}", by=by, key=key.pk, prefix=key.prefix, mark=mark_of(key.digest)
    )
