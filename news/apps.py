from django.apps import AppConfig


class NewsConfig(AppConfig):
    name = "news"
    default_auto_field = "django.db.models.BigAutoField"
