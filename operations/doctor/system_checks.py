"""Settings, by the checks of the product and of Django; in production with those for it."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .diagnosis import Diagnosis, fail, ok, warn

ABOUT = "settings"


def check_settings(*, has_database: bool) -> Iterator[Diagnosis]:
    """Some checks ask the database, so they are left out where it does not answer."""
    databases = ["default"] if has_database else []
    found = checks.run_checks(include_deployment_checks=settings.PRODUCTION, databases=databases)
    grave = [each for each in found if each.level >= checks.WARNING and not each.is_silenced()]
    for each in grave:
        says = f"{each.msg} ({each.id})"
        level = fail if each.level >= checks.ERROR else warn
        yield level(ABOUT, says, each.hint or "Look at this setting in docs/operate/settings.md.")
    if not grave:
        kind = "production" if settings.PRODUCTION else "the demo" if settings.DEMO else "this machine"
        yield ok(ABOUT, f"All checks of the settings pass, for {kind}.")
