"""A store of S3's kind on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import httpx
from moto.server import ThreadedMotoServer

from archive.stores import S3Bucket
from tests.patience import PATIENCE_S

REGION = "eu-central-1"


@contextmanager
def store_on_loopback() -> Iterator[S3Bucket]:
    """Empty, and with a bucket in it."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        bucket = S3Bucket(
            "ticks", "wire/main/", f"http://{host}:{port}", REGION, "AKIATEST", "a-secret-of-tests"
        )
        # What another one left is still in the memory of this process.
        httpx.post(f"{bucket.endpoint}/moto-api/reset", timeout=PATIENCE_S).raise_for_status()
        client = client_of(bucket)
        client.create_bucket(Bucket=bucket.name, CreateBucketConfiguration={"LocationConstraint": REGION})
        client.close()
        yield bucket
    finally:
        server.stop()


def client_of(bucket: S3Bucket) -> boto3.client:
    return boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.key_id,
        aws_secret_access_key=bucket.secret,
    )
