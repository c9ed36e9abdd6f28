"""`python -m tools.lint.production`: no migration is missing, and production passes Django's checks."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile

PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": secrets.token_urlsafe(48),
    "KEY_PEPPER": secrets.token_urlsafe(48),
    "DATABASE_URL": "postgresql://127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "ALLOWED_HOSTS": "tickwire.example",
    "EMAIL_URL": "smtp+tls://user:a-long-password@127.0.0.1:1",
    "DEFAULT_FROM_EMAIL": "no-reply@tickwire.example",
}
# Checking asks no database, and comparing migrations with models asks only the files.
CHECKS: tuple[tuple[dict[str, str], tuple[str, ...]], ...] = (
    ({}, ("makemigrations", "--check", "--dry-run")),
    (PRODUCTION, ("check", "--deploy", "--fail-level", "WARNING")),
)


def main() -> int:
    with tempfile.TemporaryDirectory() as var_dir:
        for settings, command in CHECKS:
            print("manage.py", *command, flush=True)
            environment = os.environ | {"VAR_DIR": var_dir} | settings
            ended = subprocess.run([sys.executable, "manage.py", *command], env=environment, check=False)
            if ended.returncode:
                return ended.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
