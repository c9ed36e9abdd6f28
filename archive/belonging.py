"""Whose archive it is. The installation that makes an archive leaves its name there and in its own database.
Where the two differ, a disk is not mounted, or a setting names the archive of another installation: then
nothing is written, removed or served."""

import msgspec

from core.program import command
from core.times import epoch_ms, iso_s

from .manifests import OWNER
from .models import Installation
from .stores import ArchiveStore, NotStored, StoreFault

VERSION = 1


class ArchiveOwner(msgspec.Struct):
    """The file `archive.json`."""

    version: int
    installation: str
    began_at: str


class NotOurs(StoreFault):
    """The archive is not this installation's; the sentence says what to look at."""


class UnreadableOwner(NotOurs):
    """The file that names the owner is damaged."""


def check(store: ArchiveStore) -> None:
    """Raises NotOurs if the archive is not this installation's. If neither names the other, there is nothing
    to compare."""
    compare(store, Installation.objects.known())


def compare(store: ArchiveStore, known: Installation | None) -> None:
    there = _owner(store)
    if there is None and known is not None and known.is_in_archive:
        raise NotOurs(
            f"{store} is not the archive of this installation: {OWNER} is not there. Is its disk mounted, "
            "and do the ARCHIVE_ settings name the right place? "
            f"`{command('fold_archive --adopt')}` starts again there, or continues with files that were "
            f"moved there without {OWNER}"
        )
    if there is not None and (known is None or there != known.name):
        raise NotOurs(
            f"{store} is the archive of another installation, as {OWNER} says there. Name another place "
            "for this one in the ARCHIVE_ settings; if the other is no more, "
            f"`{command('fold_archive --adopt')}` takes its archive over"
        )


def claim(store: ArchiveStore) -> None:
    """Before anything is written: what has no owner yet, from now on, belongs to this installation. Raises
    NotOurs."""
    check(store)
    known = Installation.objects.begun()
    if not known.is_in_archive:
        _tell(store, known)


def adopt(store: ArchiveStore) -> bool:
    """Make the archive this installation's, whatever its owner was. Returns whether that changed anything."""
    known = Installation.objects.begun()
    # Asked in any case: the owner that another version wrote is not overwritten.
    is_ours = _is_of(store, known)
    if known.is_in_archive and is_ours:
        return False
    _tell(store, known)
    return True


def _tell(store: ArchiveStore, known: Installation) -> None:
    """The archive first: one that has the name of this installation is its own even if that is all that was
    done."""
    owner = ArchiveOwner(VERSION, known.name, iso_s(epoch_ms(known.began_at)))
    store.put_owner(msgspec.json.format(msgspec.json.encode(owner), indent=2) + b"\n")
    known.is_in_archive = True
    known.save(update_fields=["is_in_archive"])


def _is_of(store: ArchiveStore, known: Installation) -> bool:
    try:
        return _owner(store) == known.name
    except UnreadableOwner:
        return False


def _owner(store: ArchiveStore) -> str | None:
    try:
        owner = msgspec.json.decode(store.read_owner(), type=ArchiveOwner)
    except NotStored:
        return None
    except msgspec.MsgspecError as error:
        raise UnreadableOwner(
            f"{OWNER} in {store} cannot be read ({error}), so the owner of this archive is unknown. "
            f"If it is this installation's, `{command('fold_archive --adopt')}` writes it again"
        ) from None
    if owner.version != VERSION:
        raise NotOurs(
            f"{OWNER} in {store} is of version {owner.version}, and this program reads {VERSION}. Start the "
            "version that wrote it"
        )
    return owner.installation
