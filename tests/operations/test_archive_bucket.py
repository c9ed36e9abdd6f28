from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from archive.stores import S3Bucket
from operations.archive_bucket import check_bucket
from tests.archive.stores.buckets import client_of, store_on_loopback

from .doctor.diagnoses import faults, only_fault


@pytest.fixture
def bucket(settings: Settings) -> Iterator[S3Bucket]:
    with store_on_loopback() as found:
        settings.ARCHIVE_S3_URL = (found.name, found.prefix)
        settings.ARCHIVE_S3_ENDPOINT, settings.ARCHIVE_S3_REGION = found.endpoint, found.region
        settings.ARCHIVE_S3_KEY_ID, settings.ARCHIVE_S3_SECRET = found.key_id, found.secret
        yield found


def test_bucket_in_order_is_tried_out_and_left_as_it_was(bucket: S3Bucket, settings: Settings) -> None:
    assert faults(check_bucket()) == []
    assert "Contents" not in client_of(bucket).list_objects_v2(Bucket=bucket.name)
    # On a disk there is nothing to look at.
    settings.ARCHIVE_S3_URL = None
    assert list(check_bucket()) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ARCHIVE_S3_URL", ("nowhere", ""), "bucket: s3://nowhere refuses (NoSuchBucket)"),
        ("ARCHIVE_S3_ENDPOINT", "http://127.0.0.1:9", "Could not connect"),
    ],
)
def test_bucket_that_is_missing_or_silent_is_a_fault(
    bucket: S3Bucket, settings: Settings, name: str, value: object, words: str
) -> None:
    setattr(settings, name, value)
    level, says = only_fault(check_bucket())
    assert (level, words in says, bucket.secret in says) == ("fail", True, False)
