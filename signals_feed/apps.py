from typing import Any

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate


class SignalsFeedConfig(AppConfig):
    name = "signals_feed"
    verbose_name = "Signals"
    default_auto_field = "django.db.models.BigAutoField"
    # Named here for the engine, which imports nothing of this app.
    market_witness = "signals_feed.judging.watcher.watcher"

    def ready(self) -> None:
        from .ledger.guards import check_guards

        register(check_guards, Tags.database)
        post_migrate.connect(put_up_guards, sender=self)


def put_up_guards(using: str, **_: Any) -> None:
    from .ledger.guards import put_up_triggers

    put_up_triggers(using)
