"""The ledger of signals keeps the SHA-256 of a day's manifest, once: from then on the day does not change."""

import logging
from collections.abc import Callable
from datetime import date, timedelta
from hashlib import sha256

from core.times import read_iso
from signals_feed.ledger_days import seal, sealed_days
from transparency.remembered import Forked

from .belonging import check
from .manifests import MANIFESTS, ArchiveManifest, decoded_of, manifest_path, parse
from .stores import ArchiveStore, NotStored, archive_store

logger = logging.getLogger(__name__)
# By then every machine has had a night in which to add its part.
UNCHANGED = timedelta(days=2)


def is_due(manifest: ArchiveManifest, over: date) -> bool:
    """`over` is the first day that is not over: between the two lies a day in which nothing was added."""
    return read_iso(manifest.made_at).date() + UNCHANGED <= over


def seal_days(store: ArchiveStore, over: date) -> None:
    known, digests = sealed_days(), dict[str, str]()
    for path in store.listing(MANIFESTS):
        day = parse(path).day
        if str(day) in known:
            continue
        try:
            content = store.read(path)
            if is_due(decoded_of(day, content), over):
                digests[str(day)] = sha256(content).hexdigest()
        except NotStored:
            continue
        except ValueError as error:
            logger.warning("%s cannot be sealed: its manifest cannot be used: %s", day, error)
    try:
        seal(digests)
    except Forked as error:
        logger.warning("No day is sealed: %s The next night tries again", error)


def digest_of(store: ArchiveStore, day: date) -> str:
    """The SHA-256 of the manifest that there is now; empty if there is none, as after retention."""
    try:
        return sha256(store.read(manifest_path(day))).hexdigest()
    except NotStored:
        return ""


def present_digests() -> Callable[[str], str]:
    """By day. Raises OSError if the archive is away, or is not this installation's."""
    store = archive_store()
    check(store)
    return lambda day: digest_of(store, date.fromisoformat(day))
