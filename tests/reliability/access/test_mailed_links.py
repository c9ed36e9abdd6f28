"""A link out of a mail lets somebody in, so no line of the log has one, whatever becomes of the mail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.mail_server import MailServer, mail_server
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

pytestmark = [pytest.mark.usefixtures("rows")]
PASSWORD = "a long walk 7"
SECRET = re.compile(r"/(?:confirm-email|reset/key)/([^/]+)/")


@pytest.fixture
def mails() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


def submit(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    browser.get(path)
    token = browser.cookies["csrftoken"]
    return browser.post(path, data=fields | {"csrfmiddlewaretoken": token})


def ask_for_links(server: Process, mails: MailServer, name: str) -> list[str]:
    """One that confirms an address and one that resets a password."""
    address = {"email": f"{name}@example.com"}
    before = len(mails.links)
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=PATIENCE_S) as browser:
        passwords = {"password1": PASSWORD, "password2": PASSWORD}
        submit(browser, "/accounts/signup/", username=name, **address, **passwords)
        submit(browser, "/accounts/logout/")
        submit(browser, "/accounts/password/reset/", **address)
        wait_until(lambda: len(mails.links) >= before + 2)
        return mails.links[before:]


def use(server: Process, link: str) -> None:
    path = link.partition(f":{server.port}")[2]
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=PATIENCE_S) as browser:
        browser.get(f"{path[:-2]}x/")
        browser.get(f"/accounts/login/?next={path}", headers={"Referer": link})
        browser.get(f"/nothing?link={link}", headers={"Referer": link})
        browser.get(f"/nothing/{quote(path, safe='')}", headers={"Referer": quote(link, safe="")})
        browser.get(path, headers={"Host": "elsewhere.example"})
        browser.put(path)
        browser.get(path)


@pytest.mark.row("31", "no mailed link in the log")
def test_no_mailed_link_appears_in_the_log(embedded: Installation, mails: MailServer, tell: Tell) -> None:
    with embedded.serve(1, ACCESS_LOG="1", LOG_LEVEL="DEBUG", EMAIL_URL=mails.url) as (server,):
        links = ask_for_links(server, mails, "ada")
        for link in links:
            use(server, link)
        mails.refuses = True
        refused = ask_for_links(server, mails, "eve")
        wait_until(lambda: server.log.read_text().count("No mail was sent") == 2)
    log = server.log.read_text()
    secrets = [secret for link in (*links, *refused) for secret in SECRET.findall(link)]
    tell(
        f"{sum(secret in log for secret in secrets)} of {len(secrets)} links in {len(log)} characters of log"
    )
    assert len(set(secrets)) == 4
    # What the mail server answered is there, without the link.
    assert "refused for what it holds" in log
    parts = {part for secret in secrets for part in (secret, secret.partition("-")[2]) if len(part) > 12}
    assert [line for line in log.splitlines() if any(part in line for part in parts)] == []
