"""What the environment says: `variables/` is the table of all of it, and `env` has the values."""

import os
from pathlib import Path

from .addresses import read_proxies, read_redis_prefix, read_redis_url
from .database import leave_standby, on_postgresql, on_sqlite, read_database_url
from .folder import default_folder
from .values import Environment

__all__ = [
    "BASE_DIR",
    "env",
    "leave_standby",
    "on_postgresql",
    "on_sqlite",
    "read_database_url",
    "read_proxies",
    "read_redis_prefix",
    "read_redis_url",
    "var_dir",
]

env = Environment(os.environ)
BASE_DIR = Path(__file__).resolve().parents[2]


def var_dir() -> Path:
    named = env.text("VAR_DIR")
    return (Path(named) if named else default_folder(env.text("XDG_DATA_HOME"))).resolve()
