"""`python -m tools.sentiment_training train|evaluate`, with Django set up as in `manage.py`."""

from __future__ import annotations

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from .command import main

    sys.exit(main())
