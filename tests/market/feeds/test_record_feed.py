"""`record_feed` as a person types it, and what it does with a feed."""

from __future__ import annotations

import asyncio
import errno
import io
import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from market.engine.feeds.feed import FeedReceiver
from market.engine.files.format import encode
from market.management.commands.record_feed import TickRecorder, record
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S, until

from .venues.fakes.kraken import STATUS, FakeKraken

TICKS = [Tick("EURUSD", 1.08, 1.0802, NOON_MS), Tick("EURUSD", 1.09, 1.08, NOON_MS - 5)]


class EndlessFeed:
    """Sends good and bad, and then nothing."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def run(self, receiver: FeedReceiver) -> None:
        receiver.take([])
        receiver.take(TICKS)
        receiver.refuse("malformed")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


class FullDisk(io.BytesIO):
    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def replayed(settings: Settings, tmp_path: Path) -> Path:
    """A feed that ends by itself."""
    settings.REPLAY_DIR, settings.REPLAY_SPEED = tmp_path, 0.0
    path = tmp_path / "EURUSD.jsonl"
    path.write_bytes(encode(TICKS))
    make_instrument("EURUSD", source="replay")
    return path


async def test_everything_is_recorded_the_bad_as_well() -> None:
    out, feed = io.BytesIO(), EndlessFeed()
    recorder = TickRecorder(out)
    await record(feed, recorder, seconds=0.01)
    assert out.getvalue() == encode(TICKS)
    assert (recorder.ticks, recorder.refused) == (2, {"malformed": 1})
    assert feed.was_cancelled


async def test_messages_of_a_venue_are_recorded_as_they_came_each_after_its_time() -> None:
    out = io.BytesIO()
    recorder = TickRecorder(out, is_raw=True)
    async with FakeKraken() as venue:
        feed = venue.make_feed()
        feed.now_ms, feed.hear_raw = lambda: NOON_MS, recorder.hear_raw
        recording = asyncio.create_task(record(feed, recorder))
        await venue.visited()
        quote = venue.quote("EUR/USD", 1.08, 1.0802, NOON_MS)
        await venue.send(b'{"bad":\n1', quote)
        await until(lambda: recorder.ticks == 1)
        recorder.ended.set()
        await recording
    lines = out.getvalue().splitlines()
    assert lines[0] == b"%d %s" % (NOON_MS, STATUS)
    assert lines[-2:] == [b'%d {"bad": 1' % NOON_MS, b"%d %s" % (NOON_MS, quote)]


async def test_full_disk_ends_it() -> None:
    recorder = TickRecorder(FullDisk())
    async with asyncio.timeout(PATIENCE_S):
        await record(EndlessFeed(), recorder)
    assert "No space left" in str(recorder.fault)


async def test_feed_that_breaks_is_not_hidden() -> None:
    class BrokenFeed:
        async def run(self, receiver: FeedReceiver) -> None:
            raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        await record(BrokenFeed(), TickRecorder(io.BytesIO()))


@pytest.mark.django_db
def test_recording_of_a_recording_is_the_same_and_appended_to(
    replayed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "recording.jsonl"
    call_command("record_feed", "replay", "--output", str(output))
    assert output.read_bytes() == replayed.read_bytes()
    told = r"2 ticks recorded, half within \d+ ms and 99% within \d+ ms of their own time\n"
    assert re.fullmatch(told, capsys.readouterr().err)
    output.write_bytes(encode(TICKS[:1]))
    call_command("record_feed", "replay", "--symbols", "eurusd", "--output", str(output))
    assert output.read_bytes() == encode([TICKS[0], *TICKS])


@pytest.mark.django_db
@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["kraken"], r"No instrument has kraken as its source.*--symbols"),
        (["replay", "--output", "/nowhere/x"], "x cannot be written: No such file"),
        (["nasdaq"], "invalid choice: 'nasdaq'"),
        (["replay", "--raw"], "replay is no venue and sends no messages"),
        *(
            (["replay", "--seconds", seconds], "is no number of seconds: an hour is 3600")
            for seconds in ("-3", "0", "nan", "inf", "1h")
        ),
        # An hour later it would look like success.
        (
            ["oanda", "--symbols", "EURUSD", "--seconds", "0.5"],
            "Nothing was recorded: OANDA_TOKEN is not set",
        ),
    ],
)
def test_what_cannot_be_recorded_is_told(words: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        call_command("record_feed", *words)
