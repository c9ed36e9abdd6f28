"""`import_ticks` as a person types it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from instruments.models import Instrument
from market.management.terminal import ProgressBar
from market.models import Candle
from tests.factories import make_instrument

pytestmark = [pytest.mark.django_db, pytest.mark.services]
START = "timestamp,bid,ask\n"
GOOD = "2026-10-05T12:00:00Z,1.08,1.0802\n2026-10-05T12:01:00Z,1.081,1.0812\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "EURUSD.csv"
    path.write_text(START + GOOD)
    return path


def run(*words: str) -> tuple[str, str]:
    """What it said, and what it complained of."""
    out, err = io.StringIO(), io.StringIO()
    call_command("import_ticks", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_summary_says_what_was_made_of_what(path: Path) -> None:
    assert run("EURUSD", str(path)) == (
        "EURUSD: 2 ticks made 2 one-minute candles, 2026-10-05 12:00 to 2026-10-05 12:01 UTC.\n",
        "",
    )


def test_bad_lines_are_named_and_counted(path: Path) -> None:
    path.write_text(START + "oops\n" * 12 + GOOD + "2026-10-05T12:02:00Z,1.08,1.07\n")

    out, err = run("eurusd", str(path))

    assert out.splitlines()[1] == "13 bad lines were left out."
    assert err.splitlines()[0] == f"{path}, line 2: no line of this format"
    assert err.splitlines()[-2:] == [
        f"{path}, line 16: the ask is below the bid",
        "… and 2 more lines: no line of this format",
    ]


def test_strict_stops_at_the_line_and_names_it(path: Path) -> None:
    path.write_text(START + GOOD + "oops\n")

    with pytest.raises(CommandError, match=r"line 4: no line of this format\. The minutes before it are"):
        run("EURUSD", str(path), "--strict")


def test_misspelt_symbol_is_guessed(path: Path) -> None:
    with pytest.raises(CommandError, match=r"no instrument EURUSF\. Did you mean EURUSD\?"):
        run("EURUSF", str(path))


def test_one_missing_file_among_several_is_told_before_anything_is_done(path: Path) -> None:
    with pytest.raises(CommandError, match="nowhere.csv cannot be read: No such file"):
        run("EURUSD", str(path), str(path.with_name("nowhere.csv")))

    assert not Candle.objects.exists()


def test_unknown_content_is_told_with_the_formats_there_are(path: Path) -> None:
    path.write_text("date,price\n")

    with pytest.raises(CommandError, match=r"(?s)--format.*histdata  +20120201"):
        run("EURUSD", str(path))


def test_file_without_a_single_tick_is_an_error(path: Path) -> None:
    with pytest.raises(CommandError, match="Is it the right file"):
        run("EURUSD", str(path), "--format", "histdata")


def test_days_without_ticks_are_told(path: Path) -> None:
    path.write_text(START + GOOD + "2026-10-08T12:00:00Z,1.08,1.0802\n")

    assert "1 gap of more than a trading day" in run("EURUSD", str(path))[0]


def test_nothing_moves_where_nobody_looks(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run("EURUSD", str(path))

    assert capfd.readouterr() == ("", "")


def test_terminal_shows_a_bar_and_clears_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    run("EURUSD", str(path))

    assert terminal.getvalue().endswith("\r\033[K")


def test_bar_shows_the_share_of_the_bytes_and_the_speed() -> None:
    terminal, moments = Terminal(), iter([0.0, 2.0, 2.01])
    bar = ProgressBar(terminal, 1000, lambda: next(moments))

    bar.show(500, 300_000)
    bar.show(501, 300_001)

    assert terminal.getvalue() == f"\r\033[K 50% [{'#' * 15}{' ' * 15}]  300,000 ticks, 150,000/s"


def test_bar_of_unknown_length_shows_the_speed_alone() -> None:
    terminal, moments = Terminal(), iter([0.0, 2.0])

    ProgressBar(terminal, 0, lambda: next(moments)).show(0, 500)

    assert terminal.getvalue() == "\r\033[K500 ticks, 250/s"
