"""Whether the ledger's checkpoints are signed, and who cosigns them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from core.program import command
from signals_feed.ledger_days import check_signed
from transparency.keyring import keyring
from transparency.models import Cosignature, LogKey, SignedCheckpoint
from transparency.remembered import Forked, in_file

from .doctor.diagnosis import Diagnosis, fail, ok, warn

ABOUT = "checkpoints"
# They are signed, and cosigned, at least every hour.
LATE = timedelta(minutes=70)


def unknown_log() -> str:
    """One sentence, or nothing. The service forgets it as soon as it signs."""
    try:
        log, last = in_file()
    except Forked:
        return ""
    if last is None or not LogKey.objects.exists() or LogKey.objects.filter(verifier=log).exists():
        return ""
    about = f"The log {last.origin}, which was signed here last,"
    return f"{about} is not in this database: it is older, or another."


def lacking() -> str:
    """Signed or cosigned entries that the ledger lacks, as a sentence; empty if there are none."""
    try:
        check_signed()
    except Forked as forked:
        return forked.message
    return ""


def planted() -> str:
    """Which row of the log was not written by the service; empty if there is none."""
    key, newest = LogKey.objects.current(), SignedCheckpoint.objects.newest()
    if key is not None and not keyring.opens(key):
        return "key"
    return "checkpoint" if newest is not None and not keyring.has_signed(newest.note) else ""


def check_checkpoints() -> Iterator[Diagnosis]:
    if row := planted():
        says = f"The newest {row} of the log was not made with the keys of this installation."
        fix = (
            "If KEY_PEPPER was changed, put the previous one into KEY_PEPPER_FALLBACKS. If not, something"
            " else wrote it with the database's password: change that, and begin a new log with"
            f" `{command('ledger_key --new-log')}`."
        )
        yield fail(ABOUT, says, fix)
        return
    if says := unknown_log():
        fix = (
            "If it is the right one, start the service. If it is a backup from before that log, bring back a"
            f" newer one, or begin a new log with `{command('ledger_key --new-log')}`."
        )
        yield warn(ABOUT, says, fix)
        # A further check would forget that log, as the service does when it signs.
        return
    if says := lacking():
        fix = "Until that is settled, nothing is written: docs/operate/backup.md says what to do (Restore)."
        yield fail(ABOUT, says, fix)
    newest, now = SignedCheckpoint.objects.newest(), timezone.now()
    if newest is None:
        yield ok(ABOUT, "No checkpoint of the ledger was signed yet; the service does it when it starts.")
        return
    says = f"The last checkpoint has {newest.size} entries and was signed at {shown(newest.signed_at)}"
    if now - newest.signed_at > LATE:
        fix = f"If the service is running, its log says why. `{command('verify_ledger')}` checks the ledger."
        yield warn(ABOUT, f"{says}, more than an hour ago.", fix)
    else:
        yield ok(ABOUT, f"{says}.")
    if not settings.WITNESSES:
        yield ok(
            ABOUT,
            "It has no independent witness yet: docs/operate/witnesses.md says how to change that.",
        )
    for witness in settings.WITNESSES:
        last = Cosignature.objects.last_of(str(witness.key))
        if last is not None and now - last.asked_at <= LATE:
            yield ok(ABOUT, f"{witness.key.name} cosigned {last.checkpoint.size} entries.")
            continue
        since = f"since {shown(last.asked_at)}" if last else "yet"
        fix = "The log of the service says why. Does the witness know the keys that `ledger-key` lists?"
        yield warn(ABOUT, f"{witness.key.name} has not cosigned {since}.", fix)


def shown(at: datetime) -> str:
    return f"{at:%-d %b %Y, %H:%M} UTC"
