"""Who may have the archive: the keys of tiers that staff opened it to, and never a page."""

from django.db import Error

from accounts.keys import Caller
from accounts.models import Tier
from core.contract.errors import NotAllowed, Overloaded
from core.threads import in_thread_promptly

FOR_PAGES = (
    "Pages have no archive. Ask for it with an API key of your account: the settings panel issues them."
)


async def refuse_without_archive(caller: Caller) -> None:
    if caller.is_page:
        raise NotAllowed(FOR_PAGES)
    if not caller.allowances.archive:
        raise NotAllowed(sentence(caller.allowances.tier, await tiers_with_archive()))


async def tiers_with_archive() -> list[str]:
    try:
        return await in_thread_promptly(lambda: [str(tier) for tier in Tier.objects.filter(archive=True)])
    except (Error, Overloaded):
        # The refusal does not depend on it.
        return []


def sentence(tier: str, others: list[str]) -> str:
    """`tier` is the caller's, as staff named it."""
    has_none = f"The {tier.title()} tier has no archive"
    if not others:
        return f"{has_none}. Ask for another tier in the settings panel."
    have = "has" if len(others) == 1 else "have"
    return f"{has_none}; {' and '.join(others)} {have} it. Ask for another tier in the settings panel."
