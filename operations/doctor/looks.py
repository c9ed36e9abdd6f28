"""All looks, in the order in which one fault explains the next."""

from collections.abc import Iterator

from django.conf import settings

from core.process import pending_migrations

from .clocks import look_at_clock
from .data_folder import look_at_folder
from .database import look_at_database
from .diagnosis import FAIL, Diagnosis
from .mail_server import look_at_mail
from .prices import look_at_prices
from .program import look_at_static_files
from .redis_server import look_at_redis
from .system_checks import look_at_settings


def look_here(mail_to: str) -> Iterator[Diagnosis]:
    """At everything on this side of the proxy."""
    yield from look_at_folder(settings.VAR_DIR)
    in_database = list(look_at_database())
    has_database = not any(found.level == FAIL for found in in_database)
    yield from look_at_settings(has_database=has_database)
    yield from in_database
    yield from look_at_redis()
    if has_database and not pending_migrations():
        yield from look_at_prices()
    yield from look_at_mail(mail_to)
    yield from look_at_static_files()
    yield from look_at_clock()
