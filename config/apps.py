from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigApp(AppConfig):
    """The wiring as an app, so that its commands and checks are found."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        # Now that all apps have their models.
        from . import wiring

        wiring.connect()


class BackOfficeConfig(AdminConfig):
    """Django's admin, on our site."""

    default_site = "accounts.back_office.site.BackOffice"
