"""The ready roles of staff, as groups that every installation has. `migrate` keeps them as they are here, so
an installation that wants others makes groups of its own.

None of them may make staff, lock people out, set a password or read a second factor: superusers do."""

from __future__ import annotations

from typing import Any

from accounts.rights import READY_ROLE

ROLES: dict[str, frozenset[str]] = {
    # Decides what stands in the feeds of news and signals.
    f"{READY_ROLE}curator": frozenset(
        (
            *("news.view_newsitem", "news.add_newsitem", "news.change_newsitem"),
            *("news.view_source", "news.add_source", "news.change_source"),
            *("signals_feed.view_signal", "signals_feed.change_signal", "signals_feed.view_ledgerentry"),
        )
    ),
    # Looks after customers: tiers, keys, who may publish.
    f"{READY_ROLE}support": frozenset(
        (
            *("accounts.view_account", "accounts.change_account", "accounts.view_user"),
            *("accounts.view_apikey", "accounts.add_apikey", "accounts.change_apikey"),
            *("accounts.view_tierrequest", "accounts.change_tierrequest"),
            *("signals_feed.view_publisherrequest", "signals_feed.change_publisherrequest"),
            *("accounts.view_tier", "accounts.view_aiusage", "account.view_emailaddress"),
        )
    ),
    # Keeps prices flowing, and says so in public when they do not.
    f"{READY_ROLE}operator": frozenset(
        (
            *("instruments.view_instrument", "instruments.add_instrument", "instruments.change_instrument"),
            *("instruments.view_tradingcalendar", "instruments.add_tradingcalendar"),
            *("instruments.change_tradingcalendar", "instruments.view_withheldsource"),
            *(
                "market.view_candle",
                "market.view_ingestkey",
                "market.add_ingestkey",
                "market.change_ingestkey",
            ),
            *("status.view_incident", "status.add_incident", "status.change_incident"),
            *("status.view_note", "status.add_note", "status.change_note"),
            *("accounts.view_controlevent", "admin.view_logentry"),
        )
    ),
}


def keep_roles(app_config: Any, using: str, apps: Any, **_: Any) -> None:
    """After an app's permissions are created: adds them to each role."""
    try:
        groups = apps.get_model("auth", "Group")._default_manager.using(using)
        permissions = apps.get_model("auth", "Permission")._default_manager.using(using)
    except LookupError:
        return
    of_app = permissions.filter(content_type__app_label=app_config.label)
    for name, powers in ROLES.items():
        names = {power.partition(".")[2] for power in powers if power.startswith(f"{app_config.label}.")}
        if not names and not groups.filter(name=name).exists():
            continue
        group, _made = groups.get_or_create(name=name)
        wanted = set(of_app.filter(codename__in=names))
        held = set(group.permissions.filter(content_type__app_label=app_config.label))
        group.permissions.add(*(wanted - held))
        group.permissions.remove(*(held - wanted))
