"""The bundles that were built, as files of this installation: one of a publisher and checkpoint is built
once, and no two at the same time."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from django.conf import settings

from core.contract.errors import Overloaded
from core.fault_log import LastingFault
from core.times import epoch_ms
from transparency.models import SignedCheckpoint

from .building import BundleBuilder

logger = logging.getLogger(__name__)
unwritten = LastingFault(logger, "No bundle can be written")
FOLDER, LOCK = "bundles", "building.lock"
MOST_KEPT = 50
BUSY = "Another bundle is being built. Try again shortly."
NOT_SIGNED = "The ledger is not signed yet. Try again shortly."
AWAY = "Bundles cannot be built at the moment."


def open_bundle(user_id: int) -> BufferedReader:
    """Built if it is not there yet. Raises Overloaded."""
    last = newest_seen()
    if last is None:
        raise Overloaded(NOT_SIGNED, retry_after=2)
    # Cosignatures come a moment after the checkpoint, and it is signed again where the ledger does not grow.
    about = user_id, last.pk, epoch_ms(last.signed_at), last.cosignatures.count()
    path = Path(settings.VAR_DIR) / FOLDER / f"{'-'.join(map(str, about))}.zip"
    try:
        if not path.exists():
            with turn(path.parent):
                build(path, BundleBuilder(user_id, last))
        file = path.open("rb")
    except OSError as error:
        unwritten.tell(error)
        raise Overloaded(AWAY, retry_after=60) from error
    unwritten.over()
    return file


def newest_seen() -> SignedCheckpoint | None:
    """By a witness, or else the newest: so nothing in a bundle is the operator's word alone where it need
    not be."""
    own = SignedCheckpoint.objects.of_current_log()
    keys = [str(each.key) for each in settings.WITNESSES]
    seen = own.filter(cosignatures__witness__in=keys).order_by("-size").first() if keys else None
    return seen or SignedCheckpoint.objects.newest()


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with folder.joinpath(LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Overloaded(BUSY, retry_after=2) from None
        yield


def build(path: Path, builder: BundleBuilder) -> None:
    draft = path.with_suffix(".draft")
    try:
        with draft.open("wb") as file:
            builder.write(file)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    # One that is being sent stays readable until it is sent.
    newest_first = sorted(path.parent.glob("*.zip"), key=lambda each: -each.stat().st_mtime_ns)
    of_before = [each for each in newest_first if each.name.startswith(f"{path.name.partition('-')[0]}-")][1:]
    for each in {*of_before, *newest_first[MOST_KEPT:]}:
        each.unlink()
