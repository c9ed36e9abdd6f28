"""The bucket in which the archive is kept, for the doctor: by using it, because nothing else tells what a key
may do there."""

from collections.abc import Iterator

from django.conf import settings

from archive.stores import NotStored, S3Bucket, S3Store, StoreFault, archive_store

from .doctor.diagnosis import Diagnosis, fail, ok

ABOUT = "archive"
FIX = (
    "Look at the ARCHIVE_S3_ settings. The key needs s3:ListBucket, s3:GetObject, s3:PutObject and "
    "s3:DeleteObject there."
)


def check_bucket() -> Iterator[Diagnosis]:
    if settings.ARCHIVE_S3_URL is None:
        return
    try:
        bucket = try_out()
    except (StoreFault, NotStored) as error:
        yield fail(ABOUT, f"The archive cannot be kept in its bucket: {str(error).rstrip('.')}.", FIX)
    else:
        yield ok(ABOUT, f"{bucket} takes files, lists them, gives them back and removes them.")


def try_out() -> S3Bucket:
    store = archive_store()
    assert isinstance(store, S3Store)  # noqa: S101 - as the settings say
    store.try_out()
    return store.bucket
