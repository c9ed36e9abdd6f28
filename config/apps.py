from django.apps import AppConfig


class ConfigApp(AppConfig):
    """The wiring as an app, so that its commands and checks are found."""

    name = "config"
    label = "tickwire"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers the system checks
