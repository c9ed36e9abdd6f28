from django.apps import AppConfig
from django.core.checks import register


class NewsConfig(AppConfig):
    name = "news"

    def ready(self) -> None:
        from accounts.deletion import STAYING
        from accounts.own_data import account_data
        from market.streams.consumer import all_streams
        from serving.findings import component_shares

        from .language_models import check_endpoints
        from .models import Source
        from .scoring import check_sentiment_model, given_scores, has_given_scores
        from .stream import news

        register(check_endpoints)
        register(check_sentiment_model)
        STAYING.update(name_in_scores=has_given_scores)
        account_data.sections.update(news_scores=given_scores)
        all_streams.append(news)
        component_shares["sources"] = Source.objects.share_in_order
