"""What the environment says: `variables/` is the table of all of it, and `env` has the values."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from .kinds import (
    leave_standby,
    on_postgresql,
    on_sqlite,
    read_database_url,
    read_host,
    read_proxies,
    read_redis_prefix,
    read_redis_url,
    read_s3_url,
)
from .values import Environment, default_folder

__all__ = [
    "BASE_DIR",
    "env",
    "leave_standby",
    "on_postgresql",
    "on_sqlite",
    "read_database_url",
    "read_host",
    "read_proxies",
    "read_redis_prefix",
    "read_redis_url",
    "read_s3_url",
    "var_dir",
]

env = Environment(os.environ)
BASE_DIR = Path(__file__).resolve().parents[2]


def var_dir() -> Path:
    named = env.text("VAR_DIR")
    folder = (Path(named) if named else default_folder(env.text("XDG_DATA_HOME"))).resolve()
    for path in (folder, *folder.parents):
        if os.path.exists(path) and not os.path.isdir(path):
            raise ImproperlyConfigured(f"{path} is not a folder. Name one with --data or VAR_DIR.")
    return folder
