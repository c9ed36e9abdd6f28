from django.apps import AppConfig
from prometheus_client import REGISTRY


class ArchiveConfig(AppConfig):
    name = "archive"
    verbose_name = "Archive"

    def ready(self) -> None:
        from market.metrics import engine_registry
        from market.runtime import market
        from signals_feed.archive_access import archived

        from .keeper import archive_metrics, keeper
        from .manifest_digests import present_digests
        from .older_ticks import read_archived
        from .proving.verify import ArchivedWindows

        market.engine_listeners.append(keeper)
        market.read_archived = read_archived
        archived.register(ArchivedWindows, present_digests)
        REGISTRY.register(archive_metrics)
        engine_registry.register(archive_metrics)
