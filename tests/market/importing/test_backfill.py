"""`backfill` from a folder and from an address, which is a server on loopback with the venue's tree."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from core.times import MINUTE_MS
from market.management.commands.backfill import TREE
from market.models import Candle
from tests.factories import make_instrument
from tests.market.ticking import ms

pytestmark = pytest.mark.django_db
NOW = "2026-03-02T12:00:00Z"


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    make_instrument("BTCUSD", digits=2)
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture(params=["folder", "address"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """What `--source` names, and where its files lie."""
    if request.param == "folder":
        yield str(tmp_path), tmp_path
        return
    folder = (tmp_path / TREE.format(name="BTCUSDT", file="")).resolve()
    folder.mkdir(parents=True)
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


def publish(folder: Path, month: str, *, times: int = 1, spoilt: bool = False) -> None:
    """A file of the last two minutes of a month and its checksum; from 2025 on its times are microseconds."""
    name = f"BTCUSDT-1m-{month}.zip"
    begins_ms = ms(f"{month}-28T23:58:00")
    lines = (
        f"{at * times},40{n}.5,40{n + 1}.0,400.0,40{n}.75,2.5,{(at + MINUTE_MS) * times - 1},1,1,1,1,0\n"
        for n, at in enumerate((begins_ms, begins_ms + MINUTE_MS))
    )
    with zipfile.ZipFile(folder / name, "w") as packed:
        packed.writestr(name.replace(".zip", ".csv"), "".join(lines))
    digest = hashlib.sha256((folder / name).read_bytes() + b"." * spoilt).hexdigest()
    (folder / f"{name}.CHECKSUM").write_text(f"{digest}  {name}\n")


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("backfill", "btcusd", *words, stdout=out)
    return out.getvalue()


def minutes() -> list[str]:
    found = Candle.objects.filter(timeframe="1m").order_by("opened_at")
    return [f"{row.opened_at:%m-%d %H:%M} {row.high} {row.basis}" for row in found]


def test_every_month_that_has_ended_and_is_there_is_imported(source: tuple[str, Path]) -> None:
    named, folder = source
    publish(folder, "2026-01", times=1000)
    publish(folder, "2026-02", times=1)
    said = run("--from", "2026-01", "--source", named)
    assert "BTCUSD: 4 bars made" in said
    assert minutes()[:1] + minutes()[-1:] == [
        "01-28 23:58 401.00000000 import",
        "02-28 23:59 402.00000000 import",
    ]


def test_without_a_last_month_it_ends_before_the_first_that_is_missing(source: tuple[str, Path]) -> None:
    named, folder = source
    publish(folder, "2026-01")
    assert "BTCUSDT-1m-2026-02.zip" in run("--from", "2026-01", "--source", named)
    assert len(minutes()) == 2
    with pytest.raises(CommandError, match=r"BTCUSDT-1m-2026-02\.zip"):
        run("--from", "2026-01", "--until", "2026-02", "--source", named)
    with pytest.raises(CommandError, match=r"BTCUSDT-1m-2025-12\.zip"):
        run("--from", "2025-12", "--source", named)


def test_a_file_that_is_not_what_its_checksum_says_imports_nothing(source: tuple[str, Path]) -> None:
    named, folder = source
    publish(folder, "2026-01")
    publish(folder, "2026-02", spoilt=True)
    with pytest.raises(CommandError, match=r"2026-02\.zip is not what its checksum says"):
        run("--from", "2026-01", "--source", named)
    (folder / "BTCUSDT-1m-2026-02.zip.CHECKSUM").unlink()
    with pytest.raises(CommandError, match="CHECKSUM"):
        run("--from", "2026-01", "--until", "2026-02", "--source", named)
    assert minutes() == []


def test_months_that_retention_will_drop_are_announced(tmp_path: Path, settings: LazySettings) -> None:
    publish(tmp_path, "2026-02")
    words = "--from", "2026-02", "--source", str(tmp_path)
    settings.CANDLE_DAYS = {"1m": 20}
    assert "CANDLE_DAYS_1M" in run(*words)
    settings.CANDLE_DAYS = {"1m": 60}
    assert "CANDLE_DAYS_1M" not in run(*words)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--from", "2026-13"], "no month"),
        (["--from", "2026-03"], "has ended"),
        (["--from", "2026-01", "--source", "http://127.0.0.1:1"], "connection failed"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_sentence(words: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        run(*words)


def test_a_name_at_the_venue_is_used(tmp_path: Path) -> None:
    make_instrument("ETHUSD", digits=2, source="binance:ETHUSDC")
    with pytest.raises(CommandError, match="ETHUSDC-1m-2026-01"):
        call_command("backfill", "ETHUSD", "--from", "2026-01", "--source", str(tmp_path))
