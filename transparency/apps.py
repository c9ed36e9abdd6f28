from django.apps import AppConfig


class TransparencyConfig(AppConfig):
    name = "transparency"
    verbose_name = "Checkpoints of the ledger"
    default_auto_field = "django.db.models.BigAutoField"
