"""Candles as tables: the same whether they were sent as Arrow or as JSON, with times in UTC."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import pandas
import polars
import pyarrow
import pytest
from tickwire import AsyncClient, Client

from tests.patience import PATIENCE_S

from .keeping import ARROW, CUT_SHORT, START_MS, Keeper, keeping, make_candles, moment

pytestmark = pytest.mark.served

KEY = "tw_live_any"
NUMBERS = ["open", "high", "low", "close", "volume"]
# As where the package is not installed: a module that is None cannot be imported.
WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from tickwire import Client
with Client("tw_live_any", sys.argv[3]) as client:
    made = getattr(client.history("EURUSD", "1m"), sys.argv[2])()
    print(len(made))
"""


@pytest.fixture(params=[True, False], ids=["Arrow", "JSON"])
def keeper(request: pytest.FixtureRequest) -> Iterator[Keeper]:
    """Its pages break off once on the way."""
    with keeping(Keeper(make_candles(2_500), {1: CUT_SHORT})) as kept:
        kept.writes_arrow = request.param
        yield kept


@pytest.fixture
def client(keeper: Keeper) -> Iterator[Client]:
    with Client(KEY, keeper.url) as made:
        yield made


def test_frame_of_pandas_is_indexed_by_time_in_utc(client: Client, keeper: Keeper) -> None:
    frame = client.history("EURUSD", "1m", limit=1_000).to_pandas()
    index = frame.index
    assert isinstance(index, pandas.DatetimeIndex)
    assert (str(index.tz), index.name, index[0]) == (
        "UTC",
        "time",
        pandas.Timestamp(START_MS, unit="ms", tz="UTC"),
    )
    assert list(frame.columns) == NUMBERS
    # As the indices of other libraries, which then join with it.
    assert str(index.dtype) == "datetime64[ns, UTC]"
    assert set(map(str, frame.dtypes)) == {"float64"}
    expected = [[candle[name] for name in NUMBERS] for candle in keeper.candles]  # type: ignore[literal-required]
    assert frame.to_numpy().tolist() == expected
    assert [at.isoformat() for at in index] == [moment(c["time"]).isoformat() for c in keeper.candles]
    # As own data, which may be written to.
    frame.loc[index[0], "open"] = 2.0
    # Arrow is preferred where it can be read.
    assert {request.headers["accept"] for request in keeper.asked} == {f"{ARROW}, application/json;q=0.5"}


def test_polars_and_arrow_have_the_same_as_the_asynchronous_client(client: Client, keeper: Keeper) -> None:
    async def make() -> tuple[pandas.DataFrame, polars.DataFrame, pyarrow.Table]:
        async with AsyncClient(KEY, keeper.url) as asynchronous:
            history = asynchronous.history("EURUSD", "1m", limit=1_000)
            return await history.to_pandas(), await history.to_polars(), await history.to_arrow()

    history = client.history("EURUSD", "1m", limit=1_000)
    polar, table = history.to_polars(), history.to_arrow()
    table.validate(full=True)
    assert polar.columns == ["time", *NUMBERS]
    assert polar.schema["time"] == polars.Datetime("ms", "UTC")
    assert table.schema.field("time").type == pyarrow.timestamp("ms", "UTC")
    times = [moment(candle["time"]) for candle in keeper.candles]
    assert polar["time"].to_list() == table["time"].to_pylist() == times
    for name in NUMBERS:
        values = [candle[name] for candle in keeper.candles]  # type: ignore[literal-required]
        assert polar[name].to_list() == table[name].to_pylist() == values
    of_pandas, of_polars, of_arrow = asyncio.run(asyncio.wait_for(make(), PATIENCE_S))
    assert of_pandas.equals(history.to_pandas())
    assert of_polars.equals(polar)
    assert of_arrow.equals(table)


@pytest.mark.parametrize("make", ["to_pandas", "to_polars", "to_arrow"])
def test_nothing_stored_is_a_table_without_rows(keeper: Keeper, client: Client, make: str) -> None:
    keeper.candles.clear()
    keeper.mishaps.clear()
    table = getattr(client.history("EURUSD", "1m"), make)()
    assert len(table) == 0
    if make == "to_pandas":
        assert str(table.index.dtype) == "datetime64[ns, UTC]"


Without = Callable[[str, str], subprocess.CompletedProcess[str]]


@pytest.fixture
def without(keeper: Keeper) -> Without:
    """A program in which a package is missing."""

    def run(package: str, call: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT, package, call, keeper.url]
        path = {"PYTHONPATH": "clients/python"}
        return subprocess.run(command, env=path, capture_output=True, text=True, timeout=PATIENCE_S)

    return run


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [("pandas", "to_pandas", "pandas"), ("polars", "to_polars", "polars"), ("pyarrow", "to_arrow", "arrow")],
)
def test_missing_extra_is_named_before_anything_is_asked_for(
    keeper: Keeper, without: Without, package: str, call: str, extra: str
) -> None:
    said = without(package, call).stderr
    assert said.endswith(
        f"needs {package}: run pip install {package}, or install the client with its extra, "
        f"tickwire[{extra}].\n"
    )
    assert keeper.asked == []


@pytest.mark.parametrize("call", ["to_pandas", "to_polars"])
def test_frames_need_no_pyarrow(keeper: Keeper, without: Without, call: str) -> None:
    done = without("pyarrow", call)
    assert (done.stdout, done.stderr) == ("2500\n", "")
    assert {request.headers["accept"] for request in keeper.asked} == {"application/json"}
