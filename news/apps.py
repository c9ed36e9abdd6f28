from django.apps import AppConfig


class NewsConfig(AppConfig):
    name = "news"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from .language import checks  # noqa: F401 - registers the system checks
        from .sentiment import checks as _  # noqa: F401 - likewise
