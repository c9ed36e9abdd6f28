"""Whether the ledger's checkpoints are signed, and by whom else."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from core.program.commands import command
from transparency.models import Cosignature, SignedCheckpoint
from transparency.remembered import Forked
from transparency.signing import signer

from .doctor.diagnosis import Diagnosis, fail, ok, warn

ABOUT = "checkpoints"
# They are signed, and cosigned, at least every hour.
LATE = timedelta(minutes=70)


def check_checkpoints() -> Iterator[Diagnosis]:
    try:
        signer.check(signer.entries.count())
    except Forked as forked:
        fix = "Until then nothing is written: see docs/operate/backup.md for what to do after a restore."
        yield fail(ABOUT, forked.message, fix)
    newest, now = SignedCheckpoint.objects.newest(), timezone.now()
    if newest is None:
        yield ok(ABOUT, "No checkpoint of the ledger was signed yet; the service does it when it starts.")
        return
    says = f"The last checkpoint has {newest.size} entries and was signed at {told(newest.signed_at)}"
    if now - newest.signed_at > LATE:
        fix = f"If the service is running, its log says why. `{command('verify_ledger')}` checks the ledger."
        yield warn(ABOUT, f"{says}, more than an hour ago.", fix)
    else:
        yield ok(ABOUT, f"{says}.")
    if not settings.WITNESSES:
        yield ok(
            ABOUT,
            "It is not yet witnessed by anybody else: docs/operate/witnesses.md says how to change that.",
        )
    for witness in settings.WITNESSES:
        last = Cosignature.objects.last_of(str(witness.key))
        if last is not None and now - last.asked_at <= LATE:
            yield ok(ABOUT, f"{witness.key.name} cosigned {last.checkpoint.size} entries.")
            continue
        since = f"since {told(last.asked_at)}" if last else "yet"
        fix = "The log of the service says why. Does the witness know the keys that `ledger-key` lists?"
        yield warn(ABOUT, f"{witness.key.name} has not cosigned {since}.", fix)


def told(at: datetime) -> str:
    return f"{at:%-d %b %Y, %H:%M} UTC"
