"""A backup that was finished leaves a note, and Prometheus and the doctor hear when no more are made, or when
the bucket of the archive is not in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
import yaml
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from archive.stores import S3Bucket
from operations.doctor.checks import check_bucket
from operations.metrics import OLD, BackupWatch, check_last_backup
from operations.models import LastBackup
from serving.metrics.worker_link import families
from tests.archive.stores.buckets import client_of, store_on_loopback
from tests.databases import prepared
from tests.market.postgresql import in_place
from tests.operations.doctor.diagnoses import faults, only_fault

ALERTS = Path(__file__).parents[2] / "deploy" / "observability" / "alerts.yml"


@pytest.fixture
def database(db: None, tmp_path: Path) -> str:
    path = tmp_path / "tickwire.sqlite3"
    prepared.copy_sqlite(path)
    return f"sqlite:///{path}"


def back_up(path: Path) -> str:
    told = StringIO()
    call_command("backup", str(path), stdout=StringIO(), stderr=told)
    return told.getvalue()


def backed_up(ago: timedelta) -> datetime:
    at = timezone.now() - ago
    LastBackup.objects.create(pk=1, finished_at=at)
    return at


def test_each_finished_backup_is_noted_and_one_that_failed_or_was_only_read_is_not(
    database: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.zip"
    with in_place(database):
        backed_up(timedelta(days=3))
        before = timezone.now()
        assert back_up(path) == ""
        assert LastBackup.objects.get().finished_at >= before
        LastBackup.objects.all().delete()
        with pytest.raises(CommandError, match="is there already"):
            back_up(path)
        call_command("backup", str(path), verify=True, stdout=StringIO())
        assert LastBackup.objects.finished_at() is None


def test_database_of_an_earlier_version_is_backed_up_without_a_note(database: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with in_place(database):
        call_command("migrate", "operations", "zero", verbosity=0)
        told = back_up(path)
        assert "operations_lastbackup" not in connection.introspection.table_names()
    assert told.startswith("The backup was made, but the database could not note it: no such table")
    assert path.exists()


@pytest.mark.django_db(transaction=True)
async def test_its_age_is_published_once_there_was_one() -> None:
    watch = BackupWatch()
    await watch.look()
    (family,) = families(watch)
    assert family.samples == []

    at = await sync_to_async(backed_up)(timedelta(days=3))
    await watch.look()
    (family,) = families(watch)
    (sample,) = family.samples
    passed = (timezone.now() - at).total_seconds()
    assert 3 * 86_400 <= sample.value <= passed


@pytest.mark.django_db
def test_doctor_warns_only_when_one_is_missed() -> None:
    assert faults(check_last_backup()) == []
    at = backed_up(OLD - timedelta(minutes=1))
    assert faults(check_last_backup()) == []
    LastBackup.objects.update(finished_at=at - timedelta(minutes=2))
    level, says = only_fault(check_last_backup())
    assert level == "warn"
    assert says.endswith("UTC, more than two days ago.")


def test_alert_and_doctor_wait_equally_long() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    (expression,) = (
        rule["expr"] for group in groups for rule in group["rules"] if rule["alert"] == "TickwireBackupOld"
    )
    assert expression == f"min(tickwire_backup_age_seconds) > {OLD.total_seconds():.0f}"


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
