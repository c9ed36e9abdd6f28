from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import read_s3_url


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://ticks", ("ticks", "")),
        ("s3://ticks/", ("ticks", "")),
        ("s3://my.ticks-2/wire/main/", ("my.ticks-2", "wire/main/")),
    ],
)
def test_bucket_and_prefix_are_read(url: str, found: tuple[str, str]) -> None:
    assert read_s3_url(url) == found


@pytest.mark.parametrize(
    "url",
    [
        "ticks",
        "https://s3.example/ticks",
        "s3://",
        "s3://T/x",
        "s3://ticks//x",
        "s3://id:key@ticks",
        "s3://a b",
    ],
)
def test_what_names_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="ARCHIVE_S3_URL should be s3://bucket or s3://bucket/pre"):
        read_s3_url(url)
