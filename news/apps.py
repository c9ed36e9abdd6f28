from django.apps import AppConfig
from django.core.checks import register


class NewsConfig(AppConfig):
    name = "news"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from .language.model import check_endpoints
        from .sentiment.scoring import check_sentiment_model

        register(check_endpoints)
        register(check_sentiment_model)
