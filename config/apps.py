from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigApp(AppConfig):
    """The last app: when it is ready, all of them are, and they are connected."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        # Its modules need the models of all apps.
        from . import wiring

        wiring.connect()


class BackOfficeConfig(AdminConfig):
    """Django's admin, with a site of our own."""

    default_site = "accounts.back_office.site.BackOffice"
