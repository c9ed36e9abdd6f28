from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate, pre_migrate, pre_save
from prometheus_client import REGISTRY


class SignalsFeedConfig(AppConfig):
    name = "signals_feed"
    verbose_name = "Signals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        self.guard_ledger()
        self.connect_accounts()
        self.connect_market()

    def guard_ledger(self) -> None:
        from transparency.signing import LogMetrics

        from .ledger.guards import check_guards, make_way, put_up_triggers
        from .ledger.ledger import following

        register(check_guards, Tags.database)
        pre_migrate.connect(make_way, sender=self)
        post_migrate.connect(put_up_triggers, sender=self)
        REGISTRY.register(LogMetrics(following))

    def connect_accounts(self) -> None:
        from accounts.deletion import STAYING
        from accounts.models import User
        from accounts.own_data import account_data
        from accounts.signals import name_chosen
        from core.events.kinds import FACT_WORDS

        from .ledger.names import fault_of_taken, follow_rename, is_named_in_ledger
        from .models import Signal
        from .publishers.lookup import has_published, own_signals
        from .publishers.requests import own_decisions, own_requests

        pre_save.connect(follow_rename, sender=User)
        name_chosen.connect(fault_of_taken)
        FACT_WORDS["reason"] = dict(Signal.CloseReason.choices)
        STAYING.update(signals=has_published, name_in_ledger=is_named_in_ledger)
        account_data.sections.update(
            signals=own_signals, publisher_requests=own_requests, publisher_decisions=own_decisions
        )

    def connect_market(self) -> None:
        from core.version import known_rules
        from market.own_prices import price_right_granted
        from market.runtime import market
        from market.streams.consumer import all_streams

        from .judging.watcher import watcher
        from .publishers.lookup import refuse_open_signals
        from .record import RULES
        from .stream import signals

        known_rules.newest = RULES
        price_right_granted.connect(refuse_open_signals)
        market.engine_listeners.append(watcher)
        all_streams.append(signals)
