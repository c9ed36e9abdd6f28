from django.apps import AppConfig
from prometheus_client import REGISTRY


class ServingConfig(AppConfig):
    name = "serving"

    def ready(self) -> None:
        from core.events.event_feed import EVENT_METRICS
        from serving.http.refusals import refused_total
        from serving.metrics.http_requests import http_requests
        from serving.readiness import ReadinessMetrics

        for collector in (http_requests, ReadinessMetrics(), *EVENT_METRICS, refused_total):
            REGISTRY.register(collector)
