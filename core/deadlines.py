"""How long the service waits before it gives up. DEADLINES_TIMES lengthens all these waits at once, but not
intervals of work."""

from django.conf import settings


def patient(seconds: float) -> float:
    return settings.DEADLINES_TIMES * seconds
