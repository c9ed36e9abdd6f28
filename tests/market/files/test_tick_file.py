"""Opening and recognising: what is packed, what is empty, what nobody knows."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.engine.files.format import BadFile, FilePosition
from market.engine.files.tick_file import TickFile
from market.prices.records import Tick

QUOTES = "timestamp,bid,ask\n" + "".join(f"{1795003200000 + n},1.1,1.2\n" for n in range(50))
SAMPLES = {
    "histdata": "20120201 000003660,1.306600,1.306770,0\n",
    "histdata-m1": "20120201 000100;1.306570;1.306570;1.306470;1.306560;0\n",
    "klines": "1672515780000,0.0010,0.0025,0.0009,0.0020,1000,1672515839999,2.5,100,500,1.2,0\n",
    "aggtrades": "12345,0.00100000,100.0,100,105,1672515782136,True,True\n",
    "quotes": QUOTES,
    "dukascopy": '{"timestamp":1783944000000,"multiplier":1.0E-5,"times":[],"asks":[],"bids":[]}',
    "recording": '{"symbol":"EURUSD","bid":1.1,"ask":1.2,"time_ms":1795003200000}\n',
}


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "EURUSD.csv"


def ticks_of(path: Path, block: int = 64) -> list[Tick]:
    with TickFile(str(path), block=block) as file:
        return [tick for batch in file.batches("EURUSD", 0.00001) for tick in batch.ticks]


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, QUOTES)
    return content.getvalue()


def altered(at: int, value: int) -> bytes:
    """With a byte of the member's two headers changed: `at` counts within the local one."""
    content = bytearray(zipped("EURUSD.csv"))
    content[at] = content[content.index(b"PK\x01\x02") + at + 2] = value
    return bytes(content)


def hour(fields: str) -> bytes:
    return f'{{"timestamp":1,"multiplier":{fields}}}'.encode()


@pytest.mark.parametrize("name", SAMPLES)
def test_format_is_told_by_the_content(path: Path, name: str) -> None:
    path.write_text(SAMPLES[name])
    with TickFile(str(path)) as file:
        assert file.format.name == name
        list(file.batches("EURUSD", 0.00001))
        assert file.position == file.size == len(SAMPLES[name])


def test_bad_first_line_does_not_hide_the_format_and_one_that_is_named_is_not_guessed(path: Path) -> None:
    path.write_text("oops\n" + SAMPLES["histdata"])
    assert len(ticks_of(path)) == 1
    path.write_text("timestamp;bid\n1,2\n")
    with TickFile(str(path), "quotes") as file:
        assert file.format.name == "quotes"


@pytest.mark.parametrize(
    "content",
    [QUOTES.encode(), gzip.compress(QUOTES.encode()), zipped("a.csv")],
    ids=["plain", "gzip", "zip"],
)
def test_reading_goes_on_from_any_batch_to_the_end(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with TickFile(str(path), block=100) as file:
        batches = list(file.batches("EURUSD", 0.00001))
    assert batches[0].position == FilePosition(0, 1)
    for batch in batches:
        with TickFile(str(path), block=100) as file:
            rest = [line for later in file.batches("EURUSD", 0.00001, batch.position) for line in later.lines]
        assert rest == list(range(batch.lines[0], 52))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (zipped("a.csv", "b.csv"), "holds 2 files"),
        (gzip.compress(QUOTES.encode())[:-20], "cannot be read"),
        (b"", "is empty"),
        (b"date,price\n2026-11-18,1.1\n", r"(?s)--format.*histdata.*20120201 000003660"),
        (altered(6, 1), "is encrypted. Unpack it with its password"),
        (altered(8, 97), "cannot be read"),
        (hour(f'0.1,"more":{DEEP}'), "no whole hour"),
        (hour('5e-324,"times":[1],"asks":[1],"bids":[1]'), "no whole hour"),
        (hour('0.1,"times":[1],"asks":[1],"bids":[1],"ask":1e308'), "no whole hour"),
    ],
    ids=[
        *("two members", "cut short", "empty", "unknown", "encrypted", "packed in an unknown way"),
        *("deep", "no unit", "no price"),
    ],
)
def test_what_is_no_file_of_ticks_is_refused_with_the_way_out(
    path: Path, content: bytes, complaint: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(BadFile, match=complaint):
        ticks_of(path)
    with pytest.raises(BadFile, match="No such file"):
        TickFile(str(path.with_name("nowhere")))


@given(st.data())
@settings(max_examples=300)
def test_damaged_archive_is_a_sentence_whatever_is_wrong(path: Path, data: st.DataObject) -> None:
    archive = data.draw(st.sampled_from([zipped("EURUSD.csv"), gzip.compress(QUOTES.encode())]))
    content = bytearray(archive)
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])

    with contextlib.suppress(BadFile):
        ticks_of(path)


def test_line_that_is_nested_deeply_is_one_bad_line(path: Path) -> None:
    line = SAMPLES["recording"]
    path.write_text(f'{line}{{"symbol":"EURUSD","time_ms":1,"more":{DEEP}}}\n{line}')

    with TickFile(str(path)) as file:
        batches = list(file.batches("EURUSD", 0.00001))
    assert sum(len(batch.ticks) for batch in batches) == 2
    assert [line for batch in batches for line in batch.malformed] == [2]
