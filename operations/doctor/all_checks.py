"""All checks, in the order in which one fault explains the next."""

from collections.abc import Iterator

from django.conf import settings

from core.process import pending_migrations
from operations.archive_bucket import check_bucket
from operations.archived_ticks import check_archive
from operations.last_backup import check_last_backup
from operations.ledger_log import check_checkpoints
from operations.void_keys import check_void_keys

from .clocks import check_clock, check_engine_clock
from .data_folder import check_folder
from .database import check_database, is_made
from .diagnosis import FAIL, Diagnosis
from .mail_server import check_mail
from .prices import check_prices
from .program import check_static_files
from .redis_server import check_redis
from .system_checks import check_settings


def check_here(mail_to: str) -> Iterator[Diagnosis]:
    """Everything on this side of the proxy."""
    yield from check_folder(settings.VAR_DIR)
    in_database = list(check_database())
    has_database = is_made() and not any(found.level == FAIL for found in in_database)
    yield from check_settings(has_database=has_database)
    yield from in_database
    yield from check_redis()
    if has_database and not pending_migrations():
        yield from check_prices()
        yield from check_engine_clock()
        yield from check_archive()
        yield from check_last_backup()
        yield from check_void_keys()
        yield from check_checkpoints()
    yield from check_bucket()
    yield from check_mail(mail_to)
    yield from check_static_files()
    yield from check_clock()
