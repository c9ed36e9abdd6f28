from django.apps import AppConfig


class SignalsFeedConfig(AppConfig):
    name = "signals_feed"
    verbose_name = "Signals"
    default_auto_field = "django.db.models.BigAutoField"
