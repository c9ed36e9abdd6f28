"""Pages name files, models, rooms and commands that are there, the order that lint holds to, and what an
operation costs alike."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.core.management import CommandError, get_commands, load_command_class

from pages.documents.rendering import anchor_of
from tools.lint.modules import PARTS, ROOMS, ROOT, STEPS, Product, room_of, texts

from .commands import PAGES, commands

ROOM_PAGES = {room: f"{room}/README.md" for room in ROOMS}
ARCHITECTURE = "docs/architecture.md"
ABOUT_CODE = (ARCHITECTURE, "docs/develop/changes.md", *ROOM_PAGES.values())
TEXTS = {page: (ROOT / page).read_text() for page in ABOUT_CODE}
FILE = re.compile(r"(?<![.\w/-])[\w/]*\w\.py\b|(?<![.\w/-])\w+/[\w/]*/")
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")
IMPORTS = [each for each in Product(texts(*ROOMS)).imports if not each.is_for_types]
PLACES = (*ROOMS, "clients", "docs", "templates", "tests", "tools")
FILES = {path.relative_to(ROOT).as_posix() for place in PLACES for path in (ROOT / place).rglob("*.*")} | {
    "manage.py"
}


@pytest.mark.parametrize(
    ("page", "name"),
    [(page, name) for page, text in TEXTS.items() for name in sorted({*FILE.findall(text)})],
)
def test_every_file_that_is_named_is_there(page: str, name: str) -> None:
    end = "" if name.endswith("/") else "$"
    # On the page of a room, a name belongs to this room, unless it begins at the root of the repository.
    is_of_room = page in ROOM_PAGES.values() and name.partition("/")[0] not in {*PLACES, "manage.py"}
    room = page.removesuffix("README.md") if is_of_room else ""
    files = [file for file in FILES if file.startswith(room)]
    assert any(re.search(rf"/{re.escape(name)}{end}", f"/{file}") for file in files)


@pytest.mark.parametrize("page", ABOUT_CODE)
def test_every_link_leads_to_a_heading_that_is_there(page: str) -> None:
    assert [link for link in LINK.findall(TEXTS[page]) if not leads_to_heading(page, link)] == []


def leads_to_heading(page: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    if not target.is_file():
        return False
    titles = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
    return not anchor or anchor in [anchor_of(title) for title in titles]


def test_architecture_has_the_rooms_in_order_each_with_its_page() -> None:
    assert " → ".join(", ".join(step) for step in STEPS) in TEXTS[ARCHITECTURE]
    rows = re.findall(r"^\| \[`(\w+)/`\]\(\.\./(.+?)\) \|", TEXTS[ARCHITECTURE], re.MULTILINE)
    assert rows == list(ROOM_PAGES.items())


@pytest.mark.parametrize("room", PARTS)
def test_page_of_a_room_has_its_parts_in_order(room: str) -> None:
    order = " → ".join(", ".join(f"`{part}`" for part in step) for step in PARTS[room])
    assert order in " ".join(TEXTS[ROOM_PAGES[room]].split())


@pytest.mark.parametrize("room", ROOMS)
def test_page_of_a_room_names_the_rooms_that_import_it(room: str) -> None:
    users = {room_of(each.importer) for each in IMPORTS if room_of(each.module) == room} - {room}
    assert rooms_named(room, "Used by") == users


@pytest.mark.parametrize("room", ROOMS)
def test_page_of_a_room_names_the_rooms_that_it_imports(room: str) -> None:
    used = {room_of(each.module) for each in IMPORTS if room_of(each.importer) == room} & set(ROOMS)
    assert rooms_named(room, "Uses") == used - {room}


def rooms_named(room: str, title: str) -> set[str]:
    (words,) = re.findall(rf"^\*\*{title}\*\*: (.+?)\n\n", TEXTS[ROOM_PAGES[room]], re.DOTALL | re.MULTILINE)
    if words.startswith("every room"):
        return set(ROOMS) - {room}
    return {name for name in re.findall(r"`(\w+)`", words) if name in ROOMS} - {room}


@pytest.mark.parametrize("room", ROOMS)
def test_page_of_a_room_names_its_models(room: str) -> None:
    models = {
        model.__name__
        for model in apps.get_models(include_auto_created=False)
        if room_of(model.__module__) == room
    }
    assert models - set(re.findall(r"`(\w+)`", TEXTS[ROOM_PAGES[room]])) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_page_of_a_room_is_read_at_a_glance(room: str) -> None:
    assert len(TEXTS[ROOM_PAGES[room]].splitlines()) <= 40


SIZING = (ROOT / "docs/operate/sizing.md").read_text()
SCALE = (ROOT / "docs/operate/scale.md").read_text()


@pytest.mark.parametrize(
    ("sized", "scaled"),
    [
        ("an open stream, with a ping every 10 seconds", "an open stream"),
        ("a stream that begins", "a stream that begins · ends"),
        ("a tick, in each web process whose clients want it", "a tick that clients of the process want"),
        ("a message of a stream, sent alone", "a message of a stream"),
        ("a tick that no client of the process wants", "a tick that no client of the process wants"),
    ],
)
def test_both_pages_name_the_same_cost(sized: str, scaled: str) -> None:
    assert first_number(SIZING, sized) == first_number(SCALE, scaled)


def first_number(page: str, operation: str) -> str:
    found = re.search(rf"^\| {re.escape(operation)} \| ([\d.]+)", page, re.M)
    assert found, operation
    return found[1]


def own_words(command: str) -> list[str]:
    """What stands behind the name of our own program, the sub-command as the pages write it."""
    program, *words = command.removeprefix("do ").split()
    if program.rpartition("/")[2] not in ("tickwire-server", "tickwire-admin", "manage.py") or not words:
        return []
    return [words[0].replace("_", "-"), *words[1:]]


def test_arguments_and_targets_that_are_named_are_taken() -> None:
    named = [command for page in PAGES for command in commands(page)]
    assert [fault for command in named if (fault := fault_of(command))] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "tickwire-server serve --wrokers 4",
        "tickwire-server serv",
        "make no-such-target",
        "tickwire-server restore",
        "tickwire-server move sqlite:////srv/tickwire/tickwire.sqlite3",
        "tickwire-admin restore --replace",
    ],
)
def test_wrong_arguments_are_seen(wrong: str) -> None:
    assert fault_of(wrong)


def fault_of(command: str) -> str:
    program, *rest = command.split()
    if program == "make" and not re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        return f"no target: {command}"
    words = own_words(command)
    # Names by themselves: the text says what follows, or any command is meant.
    if not words or words[0] in ("help", "NAME", "--version") or words == ["import-ticks"]:
        return ""
    name = {"engine": "run_engine"}.get(words[0], words[0].replace("-", "_"))
    if name not in get_commands():
        return f"no command: {command}"
    parser = load_command_class(get_commands()[name], name).create_parser("tickwire-server", name)
    try:
        parser.parse_args(words[1:])
    except CommandError as fault:
        return f"{command}: {fault}"
    return ""
