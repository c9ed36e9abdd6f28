"""Our own code, in a program of a benchmark that has a folder and a database of its own."""

import django

from config.installation import prepare


def set_up() -> None:
    """As `manage.py` does: a fresh folder is made, with the secret from which keys are derived."""
    prepare()
    django.setup()
