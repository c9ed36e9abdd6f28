"""One cell of the matrix: a role does something to a target on one page of the back office."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from allauth.account.models import EmailAddress
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model
from django.forms.models import model_to_dict
from django.urls import reverse

from accounts.models import Account, ApiKey, Tier, TierRequest, User
from accounts.rights import publishing_right
from signals_feed.publishers.requests import PublisherRequest

from .people import PERSONAL, People

NEW_PASSWORD = {"usable_password": "true", "password1": "a long walk 7", "password2": "a long walk 7"}
POWERS = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}
# Which verbs open a page; one of the sets is enough. What is not here is a button, and needs `change`.
READ = ({"view"}, {"change"})
VERBS: dict[str, tuple[set[str], ...]] = {
    "changelist": READ,
    "history": READ,
    "add": ({"add"},),
    "delete": ({"delete"},),
    "export": READ,
    "import": ({"add", "change"},),
    "process_import": ({"add", "change"},),
    "delete_selected": ({"delete"},),
}
# Pages that open for reading although nothing may be done there.
LOOKED_AT = {"changelist", "history", "change", "export", "object"}


class Page(NamedTuple):
    model: type[Model]
    kind: str
    """As its URL is named, or the name of a list's action."""
    route: str
    is_action: bool = False

    @property
    def has_target(self) -> bool:
        return self.model in PERSONAL and self.kind not in ("changelist", "export")

    def opens_for(self, verbs: set[str], *, post: bool) -> bool:
        needed = VERBS.get(self.kind, ({"change"},))
        if self.kind == "change" and not post:
            needed = READ
        if self.model is User and self.kind == "add":
            needed = ({"add", "change"},)
        if self.model._meta.label == "signals_feed.Signal" and self.kind == "add":
            needed = ({"publish"},)
        return any(needed_here <= verbs for needed_here in needed)


def pages_of(model: type[Model]) -> list[Page]:
    """By the names in the URLconf, and the list's actions by the registry."""
    lists: Any = admin.site._registry[model]
    urls = [_page(model, str(url.pattern), url.name) for url in lists.get_urls()]
    actions = [*(lists.actions or ()), "delete_selected"]
    return urls + [Page(model, str(action), f"{_stem(model)}_changelist", True) for action in actions]


def _stem(model: type[Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


def _page(model: type[Model], pattern: str, name: str | None) -> Page:
    if name is None:
        return Page(model, "object", pattern)
    if name == "auth_user_password_change":
        return Page(model, "password", name)
    return Page(model, name.removeprefix(f"{_stem(model)}_"), name)


def address_of(page: Page, row: Model) -> str:
    if page.kind == "object":
        return f"{reverse(f'admin:{_stem(page.model)}_changelist')}{row.pk}/"
    whole = ("changelist", "add", "import", "process_import", "export")
    args = [] if page.is_action or page.kind in whole else [row.pk]
    return reverse(f"admin:{page.route}", args=args)


class Try(NamedTuple):
    """What is sent, and what must be so before."""

    row: Model
    fields: dict[str, Any]
    before: Callable[[], object] = lambda: None


def tries(page: Page, people: People, target: str, other: Model | None) -> Iterator[Try]:
    """Whatever could be sent to a page to do something to a target."""
    if page.model not in PERSONAL:
        assert other is not None
        yield Try(other, _filled(page, other))
        return
    person, row = people.users[target], people.row(page.model, target)
    if page.is_action:
        chosen = {"action": page.kind, "_selected_action": [str(row.pk)], "answered": "1", "post": "yes"}
        yield Try(row, chosen)
        return
    yield Try(row, _fields(page, person, row), _before(page, person))
    if page.model is EmailAddress and page.kind == "change":
        # Their own row, given to somebody else.
        yield Try(people.row(EmailAddress, "plain"), _address("given@example.net", person))


def _before(page: Page, person: User) -> Callable[[], object]:
    if page.model is Account and page.kind == "add":
        return Account.objects.filter(user=person).delete
    return lambda: None


def _address(email: str, person: User) -> dict[str, Any]:
    return {"user": person.pk, "email": email, "verified": "on"}


def _fields(page: Page, person: User, row: Model) -> dict[str, Any]:
    premium = Tier.objects.get(name="premium").pk
    # The right to publish is a switch of its own.
    single = Permission.objects.exclude(publishing_right.is_it())
    every = [str(pk) for pk in single.values_list("pk", flat=True)]
    known: dict[tuple[type[Model], str], Callable[[], dict[str, Any]]] = {
        (User, "change"): lambda: {
            **{"username": person.username, "email": "taken@example.net", "first_name": "Mallory"},
            **POWERS,
            "user_permissions": every,
        },
        (User, "password"): lambda: NEW_PASSWORD,
        (User, "add"): lambda: {"username": "made", **NEW_PASSWORD, **POWERS, "user_permissions": every},
        (Account, "change"): lambda: {"tier": premium, "may_publish": "on"},
        (Account, "add"): lambda: {"user": person.pk, "tier": premium},
        (ApiKey, "add"): lambda: {"account": person.account.pk, "name": "mine", "answered": "1"},
        (ApiKey, "change"): lambda: {"name": "renamed"},
        (ApiKey, "roll"): lambda: {"overlap_hours": "0", "answered": "1"},
        (EmailAddress, "add"): lambda: _address("added@example.net", person),
        (EmailAddress, "change"): lambda: _address("changed@example.net", person),
        (TierRequest, "decline"): lambda: {"answer": "No.", "answered": "1"},
        (PublisherRequest, "decline"): lambda: {"answer": "No.", "answered": "1"},
    }
    return known.get((page.model, page.kind), lambda: {"answered": "1", "post": "yes"})()


def _filled(page: Page, row: Model) -> dict[str, Any]:
    """The form of a row as it is, with another name, so that saving it changes something."""
    if page.is_action:
        return {"action": page.kind, "_selected_action": [str(row.pk)], "answered": "1", "post": "yes"}
    fields: dict[str, Any] = {"answered": "1", "post": "yes", "reason": "Wrong.", "prefix": "x"}
    for name, value in model_to_dict(row).items():
        if isinstance(value, list):
            fields[name] = [str(getattr(each, "pk", each)) for each in value]
        elif value is not None:
            fields[name] = str(value)
    for name in ("name", "title"):
        if name in fields:
            fields[name] += " again"
    if page.model is Group:
        fields["permissions"] = [str(pk) for pk in Permission.objects.values_list("pk", flat=True)[:3]]
    # A page may have a form below it, here always an empty one.
    return fields | {"notes-TOTAL_FORMS": "0", "notes-INITIAL_FORMS": "0"}
