"""The side navigation of the settings panel: its pages in groups, with the one that is open marked."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import template
from django.urls import reverse

from accounts.login.adapters import browser_name

register = template.Library()
register.filter(browser_name)


@register.filter
def in_fours(secret: str) -> list[str]:
    """As people type it, without a space that would be copied."""
    return [secret[start : start + 4] for start in range(0, len(secret), 4)]


class Section(NamedTuple):
    title: str
    url_name: str
    also: tuple[str, ...] = ()
    """Beginnings of the names of pages that belong to it."""

    def holds(self, page: str) -> bool:
        return page == self.url_name or any(page.startswith(start) for start in self.also)

    @property
    def address(self) -> str:
        return reverse(self.url_name)


GROUPS: dict[str, tuple[Section, ...]] = {
    "Developer": (
        Section("API keys", "keys", ("roll_key", "revoke_key")),
        Section("Open streams", "open_streams"),
        Section("Usage", "usage"),
        Section("Tier", "tier"),
    ),
    "Publishing": (Section("Signals", "publish_signals"),),
    "Security": (
        Section("Password", "account_change_password", ("account_set_password",)),
        Section("Two-factor login", "mfa_index", ("mfa_",)),
        Section("Sessions", "usersessions_list"),
        Section("Events", "events"),
    ),
    "Account": (
        Section("Email", "account_email"),
        Section("Your data", "account"),
    ),
}


@register.inclusion_tag("settings/_sections.html", takes_context=True)
def settings_sections(context: template.Context) -> dict[str, Any]:
    match = context["request"].resolver_match
    page = (match and match.url_name) or ""
    pages = [section for sections in GROUPS.values() for section in sections]
    return {"groups": GROUPS, "current": next((each for each in pages if each.holds(page)), None)}
