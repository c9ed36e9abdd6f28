"""Where the finished files are kept: a disk, or whatever else a setting names."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from .disk import DiskStore, sync_folder
from .s3 import S3Bucket, S3Store, StoreFault
from .store import ArchiveStore, NotStored

__all__ = [
    "ArchiveStore",
    "DiskStore",
    "NotStored",
    "S3Bucket",
    "S3Store",
    "StoreFault",
    "archive_store",
    "sync_folder",
]


def archive_store() -> ArchiveStore:
    """The one that the settings name. A StoreFault says why there is none."""
    if settings.ARCHIVE_S3_URL is None:
        return DiskStore(Path(settings.ARCHIVE_DIR))
    return connected(
        S3Bucket(
            *settings.ARCHIVE_S3_URL,
            endpoint=settings.ARCHIVE_S3_ENDPOINT,
            region=settings.ARCHIVE_S3_REGION,
            key_id=settings.ARCHIVE_S3_KEY_ID,
            secret=settings.ARCHIVE_S3_SECRET,
        )
    )


# Making a client takes half a second, and its connections are used again.
connected = lru_cache(maxsize=4)(S3Store)
