import json
import subprocess

import httpx
import pytest
from playwright.sync_api import Page, Route

from tests.browser.conftest import OpenPage, look_until
from tests.client import Server
from tests.factories import make_instrument, put_quote
from tests.patience import PATIENCE_S, wait_until

PASSWORD = "a long walk 7"
# Within the page, because Playwright would wait for the answer to the first.
PRESS_ON = """(button) => {
  button.click();
  setInterval(() => { button.click(); console.debug("pressed"); }, 20);
}"""
NAME_OF_FOCUSED = "(document.activeElement.labels?.[0] ?? document.activeElement).textContent"


def sign_up(page: Page, name: str = "grace") -> None:
    page.goto("/accounts/signup/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Email").fill(f"{name}@example.com")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign up").click()
    page.wait_for_url("**/settings/keys")


def issue(page: Page, name: str = "laptop") -> str:
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Issue key").click()
    return secret_on(page)


def secret_on(page: Page) -> str:
    secret = page.locator("#secret").inner_text()
    # Its script hides and copies the key, and comes after it.
    page.wait_for_load_state()
    return secret


def act(page: Page, summary: str, button: str) -> None:
    page.locator("summary", has_text=summary).last.click()
    page.get_by_role("button", name=button).last.click()


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def status_of(server: Server, key: str) -> int:
    return httpx.get(f"{server.url}/api/session", headers={"X-API-Key": key}, timeout=PATIENCE_S).status_code


def test_nothing_empty_stands_below_the_last_command(server: Server, open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    issue(page)
    card, last = page.locator(".card.shown").bounding_box(), page.locator(".copyable").last.bounding_box()
    assert card is not None
    assert last is not None
    assert card["y"] + card["height"] - last["y"] - last["height"] < 32


def test_a_key_lives_from_signup_to_revocation(server: Server, open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    issue(page)
    page.get_by_role("button", name="Copy the key").click()
    page.get_by_text("Copied.").wait_for()
    first = clipboard(page)
    assert status_of(server, first) == 200

    page.get_by_role("link", name="back to my keys").click()
    page.locator("summary", has_text="Roll").click()
    page.get_by_label("How long the old key keeps working").select_option("1 hour")
    page.get_by_role("button", name="Roll this key").click()
    second = secret_on(page)
    assert second != first
    assert (status_of(server, first), status_of(server, second)) == (200, 200)

    page.get_by_role("link", name="back to my keys").click()
    act(page, "Revoke", "Yes, revoke this key")
    page.get_by_text("is revoked. It stops working within 2 seconds.").wait_for()
    wait_until(lambda: status_of(server, first) == 401)
    assert status_of(server, second) == 200


@pytest.fixture
def _quoted(server: Server) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")


@pytest.mark.usefixtures("_quoted")
def test_copied_lines_work_as_they_are_in_one_shell(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    issue(page)
    lines = []
    for name in ("Copy the export line", "Copy the curl line"):
        page.get_by_role("button", name=name).click()
        page.get_by_text("Copied.").wait_for()
        lines.append(clipboard(page))
    ran = subprocess.run(["sh", "-ec", "\n".join(lines)], capture_output=True, timeout=PATIENCE_S, check=True)
    assert json.loads(ran.stdout)["symbol"] == "EURUSD"


@pytest.mark.also_on("firefox")
def test_reload_shows_the_list_without_the_secret(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    secret = issue(page)
    assert secret not in page.url
    page.reload()
    assert page.get_by_role("heading", name="laptop").count() == 1
    assert secret not in page.content()


def test_back_button_does_not_bring_the_secret_back(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    secret = issue(page)
    page.get_by_role("link", name="Email").click()
    page.wait_for_url("**/accounts/email/")
    page.go_back()
    assert secret not in page.content()


def test_a_page_kept_for_the_back_button_holds_no_secret(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    secret = issue(page)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    assert secret not in page.content()


def test_pressing_again_while_waiting_sends_nothing(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    held: list[Route] = []
    page.route("**/settings/keys", lambda route: held.append(route))
    page.get_by_label("Name").fill("laptop")
    press_on(page, "Issue key", held)
    held[-1].continue_()
    assert secret_on(page).startswith("tw_live_")
    assert len(held) == 1


def press_on(page: Page, name: str, held: list[Route]) -> None:
    """Also while the answer to the first press is held."""
    pressed: list[str] = []
    page.on("console", lambda said: pressed.append(said.text) if held else None)
    page.get_by_role("button", name=name).evaluate(PRESS_ON)
    look_until(page, lambda: len(pressed) > 1)


def test_copying_works_where_the_browser_offers_no_clipboard(open_page: OpenPage) -> None:
    page = open_page(script="delete Navigator.prototype.clipboard;")
    sign_up(page)
    secret = issue(page)
    page.get_by_role("button", name="Copy the key").click()
    page.get_by_text("Copied.").wait_for()
    page.goto("/settings/keys")
    page.get_by_label("Name").press("Control+V")
    assert page.get_by_label("Name").input_value() == secret


def test_page_works_without_javascript(server: Server, open_page: OpenPage) -> None:
    page = open_page(java_script_enabled=False)
    sign_up(page)
    secret = issue(page)
    assert status_of(server, secret) == 200
    assert page.get_by_role("button", name="Copy").count() == 0
    page.reload()
    assert "No key was issued, because" in page.content()
    assert secret not in page.content()
    act(page, "Revoke", "Yes, revoke this key")
    wait_until(lambda: status_of(server, secret) == 401)


def test_key_is_issued_and_copied_by_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page()
    sign_up(page)
    tab_to(page, "Name")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    secret = secret_on(page)
    tab_to(page, "Copy the key")
    page.keyboard.press("Enter")
    page.get_by_text("Copied.").wait_for()
    assert clipboard(page) == secret


def tab_to(page: Page, name: str) -> None:
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate(NAME_OF_FOCUSED) == name:
            return
    raise AssertionError(f"{name} cannot be reached with the Tab key")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_small_phone(open_page: OpenPage, scheme: str) -> None:
    page = open_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    sign_up(page, "a" * 30)
    widths = [width_of(page)]
    issue(page, "W" * 60)
    widths.append(width_of(page))
    for path in ("/settings/keys", "/accounts/email/", "/accounts/password/change/", "/"):
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        widths.append(width_of(page))
    assert set(widths) == {360}


def width_of(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width
