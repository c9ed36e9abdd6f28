from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import m2m_changed, pre_delete, pre_save
from prometheus_client import REGISTRY


class MarketConfig(AppConfig):
    name = "market"

    def ready(self) -> None:
        from .checks import check_candle_days, check_demo_rate

        register(check_demo_rate)
        register(check_candle_days)
        self.connect_accounts()
        self.connect_instruments()
        self.connect_streams()
        self.register_metrics()

    def connect_accounts(self) -> None:
        from django.contrib.auth.models import Group

        from accounts.models import User
        from accounts.own_data import account_data
        from accounts.signals import account_deleted, powers_given, role_changed, sample_wanted
        from core.version import known_rules

        from . import own_prices
        from .push.keys import revoke_all_of
        from .runtime import open_symbol
        from .store import rules_of_writer

        pre_save.connect(own_prices.note_before_save, sender=User)
        pre_delete.connect(own_prices.note_before_change, sender=Group)
        for changed in (User.user_permissions, User.groups, Group.permissions):
            m2m_changed.connect(own_prices.note_before_change, sender=changed.through)
        powers_given.connect(own_prices.refuse_powers)
        role_changed.connect(own_prices.refuse_role)
        account_deleted.connect(revoke_all_of)
        sample_wanted.connect(open_symbol)
        account_data.sections.update(
            ingest_keys=own_prices.own_ingest_keys, price_rights=own_prices.own_price_rights
        )
        known_rules.asked.append(rules_of_writer)

    def connect_instruments(self) -> None:
        from instruments.catalogue import catalogue, offer_changed, stored_sources_asked

        from .store import stored_sources
        from .streams.consumer import tell_offer

        offer_changed.connect(tell_offer, sender=catalogue)
        stored_sources_asked.connect(stored_sources)

    def connect_streams(self) -> None:
        from .engine.recent_ticks import recorder
        from .runtime import market
        from .streams.consumer import all_streams
        from .streams.market_streams import STREAMS, begin_numbering, followed, keep, publish

        # Each listener gets a record only after it has been applied.
        market.listen(publish, begin_numbering, keep, followed)
        market.engine_listeners.append(recorder)
        market.liveness.watchers += [stream.notify_liveness for stream in STREAMS]
        all_streams.extend(STREAMS)

    def register_metrics(self) -> None:
        from serving.metrics.worker_link import process_metrics

        from .metrics import MarketMetrics, ProcessMarketMetrics, StreamMetrics
        from .runtime import status

        REGISTRY.register(ProcessMarketMetrics())
        REGISTRY.register(StreamMetrics())
        process_metrics.share(MarketMetrics(), told_at=lambda: status().at_ms)
