"""How long the service waits for what is slow before it gives up. DEADLINES_TIMES makes all these waits
longer at once; intervals of work are none of them."""

from django.conf import settings


def patient(seconds: float) -> float:
    return settings.DEADLINES_TIMES * seconds
