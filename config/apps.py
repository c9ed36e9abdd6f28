import gc

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.core.checks import Tags, register
from django.core.signals import setting_changed
from django.db.models.signals import post_migrate


class ConfigApp(AppConfig):
    """The last app: when it is ready, all of them are."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        from core.events.event_feed import feed
        from core.logs import logged_successes
        from operations.copying.databases import addresses

        from .checks import check_database, check_deployment, check_environment, check_production
        from .environment import read_database_url
        from .roles import keep_roles
        from .wiring import HANDLERS

        for kind, handlers in HANDLERS.items():
            for handler in handlers:
                feed.on(kind, handler)
        post_migrate.connect(keep_roles)
        logged_successes.read_settings()
        setting_changed.connect(logged_successes.read_settings)
        register(check_environment)
        register(check_production, Tags.security)
        register(check_deployment, Tags.security, deploy=True)
        register(check_database, Tags.database)
        # The commands that copy databases read their addresses as the settings do.
        addresses.read = staticmethod(read_database_url)
        # manage.py turned it off, because one collection over all imported modules takes a tenth of a second.
        gc.freeze()
        gc.enable()


class BackOfficeConfig(SimpleAdminConfig):
    """Django's admin, with a site of our own. Its pages are imported by config/urls.py alone."""

    default_site = "accounts.back_office.site.BackOffice"
