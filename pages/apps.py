from django.apps import AppConfig
from django.db.models.signals import post_migrate


class PagesConfig(AppConfig):
    name = "pages"

    def ready(self) -> None:
        from .front import write_first_texts

        post_migrate.connect(write_first_texts, sender=self)
