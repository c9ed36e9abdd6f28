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
    "aggtrades": "12345,0.00100000,100.0,100,105,1672515782136,True,True\n",
    "quotes": QUOTES,
    "dukascopy": '{"timestamp":1783944000000,"multiplier":1.0E-5,"times":[],"asks":[],"bids":[]}',
    "recording": '{"symbol":"EURUSD","bid":1.1,"ask":1.2,"time_ms":1795003200000}\n',
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "EURUSD.csv"


def ticks_of(path: Path, block: int = 64) -> list[Tick]:
    with TickFile(str(path), block=block) as file:
        return [tick for batch in file.batches("EURUSD", 0.00001) for tick in batch.ticks]


@pytest.mark.parametrize("name", SAMPLES)
def test_format_is_told_by_the_content(path: Path, name: str) -> None:
    path.write_text(SAMPLES[name])

    with TickFile(str(path)) as file:
        assert file.format.name == name


def test_bad_first_line_does_not_hide_the_format(path: Path) -> None:
    path.write_text("oops\n" + SAMPLES["histdata"])

    assert len(ticks_of(path)) == 1


def test_format_that_is_named_is_not_guessed(path: Path) -> None:
    path.write_text("timestamp;bid\n1,2\n")

    with TickFile(str(path), "quotes") as file:
        assert file.format.name == "quotes"


def test_gzip_is_unpacked(path: Path) -> None:
    path.write_bytes(gzip.compress(QUOTES.encode()))

    assert len(ticks_of(path)) == 50


def test_zip_with_one_member_is_unpacked(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("EURUSD.csv", QUOTES)

    assert len(ticks_of(path)) == 50


def test_zip_with_two_members_is_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.csv", QUOTES)
        packed.writestr("b.csv", QUOTES)

    with pytest.raises(BadFile, match="holds 2 files"):
        TickFile(str(path))


def test_gzip_that_was_cut_short_is_told_where_it_breaks(path: Path) -> None:
    path.write_bytes(gzip.compress(QUOTES.encode())[:-20])

    with pytest.raises(BadFile, match="cannot be read"):
        ticks_of(path)


@pytest.mark.parametrize("packed", [False, True])
def test_reading_goes_on_from_any_batch(path: Path, packed: bool) -> None:
    path.write_bytes(gzip.compress(QUOTES.encode()) if packed else QUOTES.encode())
    with TickFile(str(path), block=100) as file:
        batches = list(file.batches("EURUSD", 0.00001))

    for batch in batches:
        with TickFile(str(path), block=100) as file:
            rest = [line for later in file.batches("EURUSD", 0.00001, batch.position) for line in later.lines]
        assert rest == list(range(batch.lines[0], 52))


def test_position_comes_to_the_size(path: Path) -> None:
    path.write_text(QUOTES)

    with TickFile(str(path), block=100) as file:
        assert sum(len(batch.ticks) for batch in file.batches("EURUSD", 0.00001)) == 50
        assert file.position == file.size == len(QUOTES)


def test_empty_file_is_refused(path: Path) -> None:
    path.touch()

    with pytest.raises(BadFile, match="is empty"):
        TickFile(str(path))


def test_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        TickFile(str(path))


def test_bars_are_refused_with_the_way_to_ticks(path: Path) -> None:
    path.write_text("20120201 000100;1.306570;1.306570;1.306470;1.306560;0\n")

    with pytest.raises(BadFile, match="download the ticks"):
        TickFile(str(path))


def test_unknown_content_is_refused_with_a_sample_of_each_format(path: Path) -> None:
    path.write_text("date,price\n2026-11-18,1.1\n")

    with pytest.raises(BadFile, match=r"(?s)--format.*histdata.*20120201 000003660"):
        TickFile(str(path))


def test_place_of_the_first_batch_is_the_beginning(path: Path) -> None:
    path.write_text(QUOTES)

    with TickFile(str(path)) as file:
        assert next(file.batches("EURUSD", 0.00001)).position == FilePosition(0, 1)


def damaged_zip(path: Path, at: int, value: int) -> None:
    """With a byte of the member's two headers changed: `at` counts within the local one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("EURUSD.csv", QUOTES)
    content = bytearray(path.read_bytes())
    content[at] = content[content.index(b"PK\x01\x02") + at + 2] = value
    path.write_bytes(content)


def test_encrypted_zip_is_refused_with_the_way_out(path: Path) -> None:
    damaged_zip(path, 6, 1)

    with pytest.raises(BadFile, match="is encrypted. Unpack it with its password"):
        TickFile(str(path))


def test_zip_that_is_packed_in_an_unknown_way_is_refused(path: Path) -> None:
    damaged_zip(path, 8, 97)

    with pytest.raises(BadFile, match="cannot be read"):
        TickFile(str(path))


@given(st.data())
@settings(max_examples=300)
def test_damaged_archive_is_a_sentence_whatever_is_wrong(path: Path, data: st.DataObject) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("EURUSD.csv", QUOTES)
    content = bytearray(data.draw(st.sampled_from([packed.getvalue(), gzip.compress(QUOTES.encode())])))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])

    with contextlib.suppress(BadFile):
        ticks_of(path)


DEEP = "[" * 100_000 + "]" * 100_000


def test_line_that_is_nested_deeply_is_one_bad_line(path: Path) -> None:
    line = SAMPLES["recording"]
    path.write_text(f'{line}{{"symbol":"EURUSD","time_ms":1,"more":{DEEP}}}\n{line}')

    with TickFile(str(path)) as file:
        batches = list(file.batches("EURUSD", 0.00001))
    assert sum(len(batch.ticks) for batch in batches) == 2
    assert [line for batch in batches for line in batch.malformed] == [2]


@pytest.mark.parametrize(
    "hour",
    [
        f'{{"timestamp":1,"multiplier":0.1,"more":{DEEP}}}',
        '{"timestamp":1,"multiplier":5e-324,"times":[1],"asks":[1],"bids":[1]}',
        '{"timestamp":1,"multiplier":0.1,"times":[1],"asks":[1],"bids":[1],"ask":1e308}',
    ],
    ids=["deep", "no unit", "no price"],
)
def test_hour_of_dukascopy_that_makes_no_sense_is_a_sentence(path: Path, hour: str) -> None:
    path.write_text(hour)

    with pytest.raises(BadFile, match="no whole hour"):
        ticks_of(path)
