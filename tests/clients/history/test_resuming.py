"""`--resume` goes on only where what follows belongs to the file; else the file stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tickwire import Candle
from tickwire.cli import main

from .keeping import MINUTE_MS, START_MS, Keeper, as_csv, iso, keeping, make_candles

pytestmark = pytest.mark.served

WRITTEN = 20
FIRST, LAST = iso(START_MS), iso(START_MS + (WRITTEN - 1) * MINUTE_MS)
Resume = Callable[..., tuple[int, str]]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with keeping(Keeper(make_candles(30))) as kept:
        yield kept


@pytest.fixture
def file(keeper: Keeper, tmp_path: Path) -> Path:
    path = tmp_path / "candles.csv"
    path.write_text(as_csv(keeper.candles[:WRITTEN]))
    return path


@pytest.fixture
def resume(keeper: Keeper, file: Path, capsys: pytest.CaptureFixture[str]) -> Resume:
    def run(symbol: str = "EURUSD", timeframe: str = "1m", *words: str) -> tuple[int, str]:
        service = ("--key", "tw_live_any", "--url", keeper.url)
        own = ("candles", symbol, timeframe, "--output", str(file), "--resume", *words)
        return main([*service, *own]), capsys.readouterr().err

    return run


def is_refused(file: Path, resumed: tuple[int, str], sentence: str) -> bool:
    code, errors = resumed
    assert sentence in errors
    assert (code, errors.count("\n")) == (1, 1)
    return file.read_text().count("\n") == WRITTEN + 1


def every(minutes: int, candles: list[Candle]) -> list[Candle]:
    return [
        Candle(**{**candle, "time": iso(START_MS + number * minutes * MINUTE_MS)})
        for number, candle in enumerate(candles)
    ]


def test_only_the_last_candle_is_asked_for_again_and_may_be_written_otherwise(
    keeper: Keeper, file: Path, resume: Resume
) -> None:
    whole = file.read_text()
    assert resume() == (0, "")
    assert file.read_text() == as_csv(keeper.candles)
    again, page = (request.query for request in keeper.asked)
    assert (again["start"], again["limit"]) == (LAST, "1")
    assert page["start"] == LAST.replace("00Z", "00.001000Z")
    file.write_text(whole.replace("Z,", "+00:00,").replace("\n", "0\n").replace("volume0", "volume"))
    assert resume() == (0, "")
    assert file.read_text().count("\n") == 31


def test_file_of_another_instrument_is_refused(keeper: Keeper, file: Path, resume: Resume) -> None:
    keeper.series["USDJPY/1m"] = [Candle(**{**each, "open": 151.2}) for each in keeper.candles]
    refused = resume("usdjpy")
    assert is_refused(file, refused, f"the service has another candle at {LAST.replace(':00Z', 'Z')}")
    assert "cannot be resumed as USDJPY 1m" in refused[1]


@pytest.mark.parametrize("name", ["open", "high", "low", "close", "volume"])
def test_each_value_is_compared(keeper: Keeper, file: Path, resume: Resume, name: str) -> None:
    keeper.candles[WRITTEN - 1][name] += 0.00001  # type: ignore[literal-required]
    assert is_refused(file, resume(), "or that candle has been corrected since")


def test_file_of_another_timeframe_is_refused(keeper: Keeper, file: Path, resume: Resume) -> None:
    assert is_refused(file, resume("EURUSD", "5m"), "its last two candles, ")
    assert keeper.asked == []
    file.write_text(as_csv(every(5, keeper.candles[:WRITTEN])))
    keeper.candles = [*keeper.candles, *make_candles(200, START_MS + 96 * MINUTE_MS)]
    assert is_refused(file, resume(), "the service has no candle at ")


def test_candle_that_is_not_kept_any_more_is_not_called_a_mix(
    keeper: Keeper, file: Path, resume: Resume
) -> None:
    del keeper.candles[:WRITTEN]
    refused = resume()
    assert is_refused(
        file, refused, "the candles that the service still has begin at 2025-11-20T01:20Z, after"
    )
    assert "another instrument" not in refused[1]
    keeper.series["USDJPY/1m"] = []
    assert is_refused(file, resume("USDJPY"), "the service has no such candles")


@pytest.mark.parametrize("start", [FIRST, "2025-11-20"], ids=["the first", "earlier, and nothing between"])
def test_start_that_leads_to_the_first_candle_is_fine(
    keeper: Keeper, file: Path, resume: Resume, start: str
) -> None:
    assert resume("EURUSD", "1m", "--start", start) == (0, "")
    assert file.read_text() == as_csv(keeper.candles)


def test_start_that_does_not_lead_to_the_first_candle_is_refused(
    keeper: Keeper, file: Path, resume: Resume
) -> None:
    keeper.candles = [*make_candles(3, START_MS - 9 * MINUTE_MS), *keeper.candles]
    refused = resume("EURUSD", "1m", "--start", "2025-11-20")
    assert is_refused(file, refused, "the first candle at or after --start is that of 2025-11-20T00:51Z")
    later = iso(START_MS + MINUTE_MS)
    assert is_refused(file, resume("EURUSD", "1m", "--start", later), "Z, before --start. Leave --start out")
    del keeper.candles[:8]
    refused = resume("EURUSD", "1m", "--start", "2025-11-20")
    assert is_refused(file, refused, "after the first of the file at 2025-11-20T01:00Z")
    assert "another instrument" not in refused[1]
    assert resume() == (0, "")


def test_refused_file_keeps_its_torn_line_too(keeper: Keeper, file: Path, resume: Resume) -> None:
    torn = file.read_text() + "2025-11-20T01:2"
    file.write_text(torn)
    assert resume("EURUSD", "5m")[0] == 1
    assert file.read_text() == torn
    assert resume() == (0, "")
    assert file.read_text() == as_csv(keeper.candles)


@pytest.mark.parametrize("line", ["", "2025-11-20T01:20:00Z,1,2,3", "2025-11-20,1,2,3,4,5", "a,b,c,d,e,f"])
def test_line_that_is_no_candle_is_refused(file: Path, resume: Resume, line: str) -> None:
    before = file.read_text() + f"{line}\n"
    file.write_text(before)
    code, errors = resume()
    assert (code, "in it is not a candle" in errors, file.read_text()) == (1, True, before)
