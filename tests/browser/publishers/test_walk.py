"""The life of a signal, from the form to a bundle that holds for somebody who trusts nobody but a witness."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Permission
from playwright.sync_api import expect

from core import clock
from market.push.keys import issue_ingest_key
from signals_feed.bundle.building import FOLDER, turn
from signals_feed.models import RulesBegun
from tests.browser.conftest import OpenPage, beside, look_until
from tests.browser.settings.test_keys_page import PASSWORD
from tests.browser.test_publishing import fill, log_in, review
from tests.client import Server
from tests.factories import make_account, make_instrument, make_user
from tests.patience import PATIENCE_S, wait_until
from tests.signals_feed.public_pages.test_bundle import WITNESS, cosign
from transparency.checkpoints import WitnessAddress
from transparency.models import SignedCheckpoint

KINDS = ["publish", "arm", "fill", "close_request", "arm", "close"]


@pytest.fixture
def push(server: Server, settings: Any) -> Callable[[float], bool]:
    """Sends a price, with the key of somebody else than the publisher, and tells whether it was accepted."""
    settings.WITNESSES = [WitnessAddress(WITNESS.verifier, "https://witness.example")]
    make_instrument("EURUSD", stale_after_s=3_600)
    RulesBegun.objects.create(rules=2)
    make_user("anna", PASSWORD).user_permissions.add(Permission.objects.get(codename="publish_signal"))
    key = issue_ingest_key("desk", "EURUSD", by="test", account=make_account())[1]

    def send(bid: float) -> bool:
        tick = {"symbol": "EURUSD", "bid": bid, "ask": round(bid + 0.00014, 5), "time": clock.now_ms()}
        address, headers = f"{server.url}/ingest/ticks", {"X-Ingest-Key": key}
        answer = httpx.post(address, json=[tick], headers=headers, timeout=PATIENCE_S)
        return bool(answer.json()["accepted"])

    wait_until(lambda: send(1.0841))
    return send


def witness(size: int) -> None:
    """Somebody else sees so much of the ledger, as soon as it is signed."""

    def cosigned() -> bool:
        newest = SignedCheckpoint.objects.newest()
        if newest is None or newest.size < size:
            return False
        cosign(newest)
        return True

    beside(lambda: wait_until(cosigned))
    # It says so by the whole second, which must be over before anything ends.
    seen_ms = clock.now_ms()
    wait_until(lambda: clock.now_ms() > seen_ms + 2_000)


def verify(folder: Path, *options: str) -> tuple[int, list[str]]:
    """The exit code, and what is said of signals."""
    command = [sys.executable, "-I", "verify.py", "bundle.zip", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if " signal " in line]


@pytest.mark.also_on("firefox")
def test_signal_is_filled_closed_and_holds_without_the_service(
    push: Callable[[float], bool], open_page: OpenPage, settings: Any, tmp_path: Path
) -> None:
    page = open_page()
    log_in(page)
    expect(page.locator("form[data-publish]")).to_contain_text("It is filled at the next price")
    fill(page)
    review(page)
    expect(page.get_by_role("dialog")).to_contain_text("it ends unfilled and counts nowhere")
    page.get_by_role("button", name="Publish permanently").click()
    card = page.locator("[data-signal]")
    expect(card.locator("[data-state]")).to_have_text("waiting for its fill")
    witness(2)

    filled = card.locator("[data-fill]", has_text="1.08434")
    look_until(page, lambda: push(1.0842) and filled.count())
    expect(card.locator("[data-state]")).to_have_text("active")
    expect(card.locator("[data-result]")).to_contain_text("−1.4\xa0pips")

    card.locator("summary").click()
    card.get_by_role("button", name="Yes, close it").click()
    expect(card.locator("[data-state]")).to_have_text("asked to close")
    ended = page.locator("li.card", has_text="It has ended.")
    look_until(page, lambda: push(1.0860) and ended.count())
    ended.get_by_role("link").click()
    expect(page.locator(".sum")).to_have_text("+0.50\xa0R")
    expect(page.get_by_text("saw the publication before the signal ended")).to_be_visible()
    expect(page.get_by_text("first settled tick from after the request to close")).to_be_visible()
    assert page.locator(".entries .badge").all_inner_texts() == KINDS
    witness(len(KINDS))

    page.goto("/publishers/anna")
    page.get_by_role("link", name="Recorded here").click()
    page.wait_for_url("**/signals/*#proof")
    expect(page.get_by_text("The result holds.")).to_be_in_viewport()
    expect(page.get_by_role("row", name="pnl_r")).to_contain_text("0.00166 / 0.00334")
    page.get_by_role("link", name="Entry 6").click()
    page.wait_for_url("**/ledger?at=6#entry-6")
    expect(page.locator(".wanted")).to_be_in_viewport()
    expect(page.locator(".wanted")).to_contain_text("Closed by the publisher")

    page.goto("/publishers/anna")
    bundle = page.get_by_role("link", name="Download everything")
    with turn(Path(settings.VAR_DIR) / FOLDER):
        bundle.click()
        page.get_by_role("heading", name="Temporarily unavailable").wait_for()
    page.goto("/publishers/anna")
    with page.expect_download() as download:
        bundle.click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    zipfile.ZipFile(file).extract("verify.py", tmp_path)
    assert verify(tmp_path)[0] == 2
    code, told = verify(tmp_path, "--fresh", "--key", str(WITNESS.verifier))
    assert (code, len(told)) == (0, 1)
    assert told[0].endswith("buy EURUSD, manual, 0.497 R, witnessed before its end")
