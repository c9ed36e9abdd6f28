from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "demo"

    def ready(self) -> None:
        from signals_feed.public_pages import demo_statements

        from .publisher_rules import STATEMENTS

        demo_statements.update(STATEMENTS)
