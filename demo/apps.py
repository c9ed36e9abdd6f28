from django.apps import AppConfig


class DemoConfig(AppConfig):
    """No models: an app so that its commands are found."""

    name = "demo"
