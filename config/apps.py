from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigApp(AppConfig):
    """The last app: when it is ready, all are, and they are joined."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        # Now that all apps have their models.
        from . import wiring

        wiring.connect()


class BackOfficeConfig(AdminConfig):
    """Django's admin, on our site."""

    default_site = "accounts.back_office.site.BackOffice"
