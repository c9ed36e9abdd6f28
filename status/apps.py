from django.apps import AppConfig


class StatusConfig(AppConfig):
    name = "status"

    def ready(self) -> None:
        from core.version import known_rules

        from .models import ProcessReport

        known_rules.asked.append(ProcessReport.objects.oldest_rules)
