"""Every page of the back office, tried by every role on every target, with GET and POST."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db import connection, transaction
from django.db.models import Model

from accounts.models import Account, TierRequest, User
from signals_feed.publishers.requests import PublisherRequest
from tests.accounts.back_office.rows import one_of_each

from .cells import LOOKED_AT, Page, Try, address_of, pages_of, tries
from .people import (
    PERSONAL,
    SUPER,
    TARGETS,
    People,
    Role,
    every_power,
    everything_of_everybody,
    powers_of_everybody,
)
from .urls import ask

SHUT = (302, 403, 404, 405)
ONLY_SUPERUSERS = {(Authenticator, "delete"), (Authenticator, "delete_selected")}


@cache
def powers_on(model: type[Model]) -> frozenset[str]:
    app, name = model._meta.app_label, model._meta.model_name
    found = Permission.objects.filter(content_type__app_label=app, content_type__model=name)
    return frozenset(f"{app}.{codename}" for codename in found.values_list("codename", flat=True))


def roles_for(model: type[Model]) -> Iterator[Role]:
    """Each single permission that could matter; those of all other models at once, since having more of
    them never opens less: what is shut to all of these together is shut to each of them alone."""
    every, own = every_power(), powers_on(model)
    yield Role("anonymous", is_staff=False)
    yield Role("plain user with every permission", every, is_staff=False)
    yield Role("staff without permissions")
    for power in sorted(own):
        yield Role(f"staff with {power}", frozenset({power}))
    yield Role(f"staff with all but those of {model._meta.label}", every - own)
    yield Role("staff with every permission", every)
    yield Role("superuser", SUPER)


class Cell(NamedTuple):
    role: Role
    people: People
    me: User | AnonymousUser
    page: Page
    target: str


class State(NamedTuple):
    """What a cell could change."""

    owned: dict[int, list[Any]]
    table: list[Any]
    powers: dict[int, tuple[bool, bool, frozenset[int]]]


class Matrix:
    """Holes are cells that opened although they must not; `acted` are those in which something happened."""

    def __init__(self, model: type[Model], roles: Iterable[Role] | None = None) -> None:
        self.model = model
        self.roles = list(roles_for(model)) if roles is None else list(roles)
        self.holes: list[str] = []
        self.acted: set[tuple[str, str, str]] = set()
        self.cells = 0
        self._known: State | None = None
        self._known_at = 0

    def try_all(self) -> None:
        for role in self.roles:
            with transaction.atomic():
                self._try_role(role)
                transaction.set_rollback(True)
            self._known = None

    def _try_role(self, role: Role) -> None:
        people = People(role)
        other = None if self.model in PERSONAL else one_of_each()[self.model]
        me = AnonymousUser() if role.name == "anonymous" else people.users["self"]
        for page in pages_of(self.model):
            for target in TARGETS if page.has_target and role.is_staff else ("plain",):
                cell = Cell(role, people, me, page, target)
                sends = list(tries(page, people, target, other))
                if not page.is_action:
                    self._get(cell, sends[0])
                for sent in sends:
                    self._post(cell, sent)

    def _get(self, cell: Cell, sent: Try) -> None:
        self.cells += 1
        answer = ask("GET", address_of(cell.page, sent.row), cell.me)
        if answer.status_code not in SHUT and not may(cell, post=False):
            self._hole("GET", cell, answer.status_code)
        # A page for reading has no button to save with.
        offers = cell.page.kind == "change" and getattr(answer, "context_data", {}).get(
            "has_change_permission"
        )
        if offers and not may(cell, post=True):
            self._hole("GET a form to save", cell, answer.status_code)

    def _post(self, cell: Cell, sent: Try) -> None:
        self.cells += 1
        with transaction.atomic():
            undone = self._state()
            sent.before()
            before = self._state()
            answer = ask("POST", address_of(cell.page, sent.row), cell.me, sent.fields)
            self._judge(cell, answer.status_code, before, self._state())
            transaction.set_rollback(True)
        self._known, self._known_at = undone, rows_written()

    def _judge(self, cell: Cell, status: int, before: State, after: State) -> None:
        users = before.owned.keys() | after.owned.keys()
        changed = {pk for pk in users if before.owned.get(pk) != after.owned.get(pk)}
        has_acted = bool(changed) or before.table != after.table
        if has_acted and not may(cell, post=True):
            self._hole("POST", cell, status)
        concerned = {cell.people.users[cell.target].pk, cell.people.users["plain"].pk}
        if not changed <= concerned | (after.owned.keys() - before.owned.keys()):
            self._hole("POST that changed somebody else", cell, status)
        given = given_by_rule(cell.page)
        if not cell.role.is_superuser and raised(before.powers, after.powers, given):
            self._hole("POST that gave powers", cell, status)
        if has_acted:
            self.acted.add((cell.role.name, cell.page.kind, cell.target))

    def _state(self) -> State:
        """Looked at again only if a row was written since: in most cells nobody may."""
        if self._known is None or self._known_at != rows_written():
            table = list(self.model._default_manager.order_by("pk").values_list())
            self._known = State(everything_of_everybody(), table, powers_of_everybody())
            self._known_at = rows_written()
        return self._known

    def _hole(self, what: str, cell: Cell, status: int) -> None:
        page = f"{self.model._meta.label} {cell.page.kind}"
        self.holes.append(f"{what} {page} on {cell.target} by {cell.role.name}: {status}")


def rows_written() -> int:
    """By this connection, ever, also those that were undone."""
    return int(connection.connection.total_changes)


def may(cell: Cell, *, post: bool) -> bool:
    """The rule, said once more without asking the service."""
    page, role = cell.page, cell.role
    if role.is_superuser:
        return True
    if not role.is_staff or (post and page.model is Group) or (page.model, page.kind) in ONLY_SUPERUSERS:
        return False
    if not page.opens_for(verbs_of(role, page.model), post=post):
        return False
    is_for_reading = not post and page.kind in (*LOOKED_AT, "add")
    if is_for_reading or not page.has_target or (page.model is User and page.kind == "add"):
        return True
    decides_for_oneself = page.model in (Account, TierRequest, PublisherRequest) and cell.target == "self"
    return cell.people.may_be_acted_on(cell.target) and not decides_for_oneself


def verbs_of(role: Role, model: type[Model]) -> set[str]:
    return {power.partition(".")[2].split("_")[0] for power in role.powers & powers_on(model)}


def given_by_rule(page: Page) -> frozenset[int]:
    """Accepting somebody as a publisher lets them publish, and nothing else."""
    if (page.model, page.kind) != (PublisherRequest, "accept"):
        return frozenset()
    return frozenset(Permission.objects.filter(codename="publish_signal").values_list("pk", flat=True))


def raised(before: dict[int, Any], after: dict[int, Any], given: frozenset[int] = frozenset()) -> bool:
    nobody: tuple[bool, bool, frozenset[int]] = (False, False, frozenset())
    return any(
        is_staff > before.get(pk, nobody)[0]
        or is_super > before.get(pk, nobody)[1]
        or bool(powers - before.get(pk, nobody)[2] - given)
        for pk, (is_staff, is_super, powers) in after.items()
    )
