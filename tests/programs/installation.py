"""Our own code in a program that has a folder and a database of its own."""

import django

from config.installation import prepare

SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "DEMO": "0",
    "ACCESS_LOG": "0",
    "LOG_LEVEL": "WARNING",
    "DATABASE_URL": "",
    "REDIS_URL": "",
}
"""Of a service in one process that logs nothing of what it answers."""


def set_up() -> None:
    """As `manage.py` does: a fresh folder is made, with the secret from which keys are derived."""
    prepare()
    django.setup()
