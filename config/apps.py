import gc

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class ConfigApp(AppConfig):
    """The last app: when it is ready, all of them are, and they are connected."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        # Its modules need the models of all apps.
        from . import wiring

        wiring.connect()
        # What manage.py turned off: to look once among all that was imported would take a tenth of a second.
        gc.freeze()
        gc.enable()


class BackOfficeConfig(SimpleAdminConfig):
    """Django's admin, with a site of our own. Its pages are imported by config/urls.py alone."""

    default_site = "accounts.back_office.site.BackOffice"
