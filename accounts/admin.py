"""Where Django looks for the pages of this app: importing them registers them."""

from django.contrib import admin

from .back_office import customers, people, records, tiers
from .back_office.key_pages import ApiKeyAdmin
from .models import ApiKey

__all__ = ["customers", "people", "records", "tiers"]

# Not where it is defined: the site itself comes with that module.
admin.site.register(ApiKey, ApiKeyAdmin)
