"""Where the finished files are kept: a disk, or whatever else a setting names."""

from pathlib import Path

from django.conf import settings

from .disk import DiskStore, sync_folder
from .store import ArchiveStore, NotStored

__all__ = ["ArchiveStore", "DiskStore", "NotStored", "archive_store", "sync_folder"]


def archive_store() -> ArchiveStore:
    """The one that the settings name."""
    return DiskStore(Path(settings.ARCHIVE_DIR))
