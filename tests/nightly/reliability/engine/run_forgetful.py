"""`manage.py run_engine` that remembers only the last REMEMBERED entries that Redis took."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.core.management import execute_from_command_line  # noqa: E402

from market.engine.bus import redis_bus  # noqa: E402

if __name__ == "__main__":
    redis_bus.MAX_REMEMBERED = int(os.environ["REMEMBERED"])
    execute_from_command_line(["manage.py", "run_engine"])
