"""Two versions side by side in production: a page of either may ask the other for its scripts and styles."""

from __future__ import annotations

import copy
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.programs.services import redis
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation, Process

HOST = "tickwire.example"
PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": "of production, and long enough for it; 0123456789abcdefghijklmnopqrstuvwxyz",
    "KEY_PEPPER": "another of production, and long enough; 0123456789abcdefghijklmnopqrstuvwxyz",
    "ALLOWED_HOSTS": HOST,
    "EMAIL_URL": "dummymail://",
    "TRUSTED_PROXIES": "127.0.0.1",
}
NAMED = re.compile(r"/static/[^\"]+")
CHANGED = ("static/tickwire.css", "static/tickwire.svg")
NO_PART_OF_IT = shutil.ignore_patterns(".*", "tests", "clients", "var", "node_modules")
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("upgrade", "both versions serve each other's static files"),
]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Installation]:
    database = PrivatePostgres(tmp_path)
    with database.running(), redis(tmp_path) as redis_url:
        yield Installation(tmp_path, database.url, redis_url)


@pytest.fixture
def new(old: Installation) -> Installation:
    """The same installation, served by code whose pages look different."""
    other = copy.copy(old)
    other.root = old.directory / "new"
    shutil.copytree(ROOT, other.root, ignore=NO_PART_OF_IT)
    for name in CHANGED:
        with (other.root / name).open("a") as file:
            file.write("/* changed */\n")
    return other


class Visitors:
    """They ask every process for every file that a page has named, again and again."""

    def __init__(self) -> None:
        self.urls: set[str] = set()
        self.answers: Counter[str] = Counter()
        headers = {"Host": HOST, "X-Forwarded-Proto": "https"}
        self._http = httpx.Client(timeout=PATIENCE_S, headers=headers)
        self.close = self._http.close

    def names_at(self, server: Process) -> set[str]:
        return set(NAMED.findall(self._http.get(f"{server.url}/").raise_for_status().text))

    def ask(self, urls: set[str]) -> set[int]:
        return {self._http.get(url).status_code for url in urls}

    def run(self, has_ended: threading.Event) -> None:
        while not has_ended.is_set():
            for url in list(self.urls):
                self.answers[str(self._http.get(url).status_code)] += 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        has_ended = threading.Event()
        thread = threading.Thread(target=self.run, args=(has_ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()


def urls(server: Process, names: set[str]) -> set[str]:
    return {f"{server.url}{name}" for name in names}


def test_pages_of_both_versions_find_their_static_files(
    old: Installation, new: Installation, tell: Tell
) -> None:
    with closing(Visitors()) as visitors, old.web_process(0, **PRODUCTION) as first:
        before = visitors.names_at(first)
        visitors.urls |= urls(first, before)
        # While the new version puts its files beside those of the old one.
        with visitors.at_work(), new.web_process(0, **PRODUCTION) as second:
            after = visitors.names_at(second)
            assert (len(before - after), len(after - before)) == (len(CHANGED), len(CHANGED))
            found = [visitors.ask(urls(first, after)), visitors.ask(urls(second, before))]
            # One of the old version that starts again does not name what is new.
            with old.web_process(0, **PRODUCTION) as third:
                assert visitors.names_at(third) == before
                found.append(visitors.ask(urls(third, after)))
    tell(f"meanwhile {dict(visitors.answers)}")
    assert set(visitors.answers) == {"200"}
    assert found == [{200}] * 3
