from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self) -> None:
        from market.runtime import market

        from .reading import flows

        market.listen(flows.hear, flows.begin, flows.keep)
