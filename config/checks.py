"""System checks: combinations of settings that would fail later, told at start."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from .unsafe import unsafe_settings


@register(Tags.security)
def check_production(**kwargs: Any) -> list[CheckMessage]:
    return unsafe_settings()


@register(Tags.database)
def check_database(**kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if settings.PRODUCTION and database["ENGINE"].endswith("sqlite3"):
        return [
            Error("Production needs PostgreSQL.", hint="Set DATABASE_URL=postgresql://…", id="tickwire.E001")
        ]
    pool = database.get("OPTIONS", {}).get("pool", {}).get("max_size")
    if pool is not None and pool < settings.API_THREADS + settings.PAGE_THREADS:
        hint = "Set DATABASE_POOL to API_THREADS and PAGE_THREADS together, or more."
        return [Warning("Threads would wait for connections.", hint=hint, id="tickwire.W001")]
    return []
