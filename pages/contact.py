"""Where users reach the operator, for templates."""

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def contact_email() -> str:
    """Empty where there is no such address."""
    address: str = settings.CONTACT_EMAIL
    return address
