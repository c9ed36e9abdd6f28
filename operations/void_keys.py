"""Keys and second factors that were made with an unknown KEY_PEPPER, and so do not work."""

from collections.abc import Iterator
from datetime import UTC, datetime

from accounts.models import ApiKey
from accounts.secrets import count_unopened, name_of
from core.encryption import all_peppers
from market.models import IngestKey

from .doctor.diagnosis import Diagnosis, ok, warn

ABOUT = "keys"
WAY_OUT = (
    "Put back the secrets of the installation that they come from, or add its KEY_PEPPER to"
    " KEY_PEPPER_FALLBACKS: docs/operate/backup.md says how."
)


def void_keys(unnamed: str | None = None) -> str:
    """One sentence, or nothing. Rows of the first version do not name their pepper: `unnamed` is its name."""
    known = set(map(name_of, all_peppers()))
    if unnamed is None or unnamed in known:
        known.add("")
    counts = {
        "API keys": ApiKey.objects.usable(datetime.now(UTC)).exclude(pepper_name__in=known).count(),
        "ingest keys": IngestKey.objects.filter(revoked_at=None).exclude(pepper_name__in=known).count(),
        "second factors": count_unopened(),
    }
    if void := ", ".join(f"{count} {what}" for what, count in counts.items() if count):
        return f"{void} open nothing, because they were made with a KEY_PEPPER that is not set here."
    return ""


def check_void_keys() -> Iterator[Diagnosis]:
    if says := void_keys():
        yield warn(ABOUT, says, WAY_OUT)
    else:
        yield ok(ABOUT, "All keys and second factors were made with a KEY_PEPPER that is set.")
