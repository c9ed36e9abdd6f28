from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "operations"

    def ready(self) -> None:
        from market.metrics import engine_registry
        from serving.metrics.worker_link import SHARED

        from .metrics import backup_watch, disk_metrics

        SHARED.register(backup_watch)
        SHARED.register(disk_metrics)
        engine_registry.register(disk_metrics)
