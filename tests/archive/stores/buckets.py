"""A store of S3's kind on loopback."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import boto3
import httpx
from moto.server import ThreadedMotoServer

from archive.stores import S3Bucket
from tests.patience import PATIENCE_S

REGION = "eu-central-1"


@contextmanager
def store_on_loopback() -> Iterator[S3Bucket]:
    """Empty, and with a bucket in it."""
    bucket = S3Bucket("ticks", "wire/main/", endpoint(), REGION, "AKIATEST", "a-secret-of-tests")
    httpx.post(f"{bucket.endpoint}/moto-api/reset", timeout=PATIENCE_S).raise_for_status()
    client = client_of(bucket)
    client.create_bucket(Bucket=bucket.name, CreateBucketConfiguration={"LocationConstraint": REGION})
    client.close()
    yield bucket


@cache
def endpoint() -> str:
    """Of the one server of this process."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


def client_of(bucket: S3Bucket) -> boto3.client:
    return boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.key_id,
        aws_secret_access_key=bucket.secret,
    )
