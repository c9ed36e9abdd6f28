from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class SignalsFeedConfig(AppConfig):
    name = "signals_feed"
    verbose_name = "Signals"
    default_auto_field = "django.db.models.BigAutoField"
    # Named here for the engine, which imports nothing of this app.
    market_witness = "signals_feed.watcher.watcher"

    def ready(self) -> None:
        from . import checks  # noqa: F401

        post_migrate.connect(put_up_guards, sender=self)


def put_up_guards(using: str, **_: Any) -> None:
    from . import guards

    guards.put_up(using)
