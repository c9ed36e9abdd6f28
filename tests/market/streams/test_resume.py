from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import LastSent, Opening, RecentFrames, ReplayAllowance

NOW_MS = 1_795_000_000_000


@pytest.fixture
def recent() -> RecentFrames:
    recent = RecentFrames()
    recent.restart("e1")
    return recent


def add(recent: RecentFrames, symbol: str, seqs: range, now_ms: int = NOW_MS, **more: Any) -> None:
    for seq in seqs:
        recent.add(symbol, seq, frame(symbol, seq), now_ms, **more)


def frame(symbol: str, seq: int) -> bytes:
    return f'{{"symbol":"{symbol}","n":{seq}}}'.encode()


def open_with(
    recent: RecentFrames,
    *symbols: str,
    positions: dict[str, int] | None = None,
    epoch: str = "e1",
    now_ms: int = NOW_MS,
    features: tuple[Any, ...] = (),
    before: Subscriptions | None = None,
    allowance: ReplayAllowance | None = None,
    known: set[str] | None = None,
) -> Opening:
    subscribed = before or Subscriptions()
    resume = None if positions is None else Resume(epoch, positions)
    change = subscribed.subscribe(
        Subscribe(symbols=list(symbols) or UNSET, features=frozenset(features)),
        lambda symbol: known is None or symbol in known,
    )
    opening = recent.open(subscribed, change, resume, now_ms, allowance)
    return msgspec.structs.replace(opening, frames=list(opening.frames))


def told(opening: Opening) -> list[tuple[str, int]]:
    """Symbol and number of each frame; that it is the frame of this number is checked on the way."""
    found = []
    for seq, text in opening.frames:
        symbol = json.loads(text)["symbol"]
        assert text == frame(symbol, seq)
        found.append((symbol, seq))
    return found


def numbers(opening: Opening) -> list[int]:
    return [seq for _, seq in told(opening)]


def test_what_was_missed_comes_in_order_without_gap_or_duplicate(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 21))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 12})

    assert numbers(opening) == list(range(13, 21))
    assert opening.unrecovered == []
    assert opening.positions == {"EURUSD": 12}


def test_nothing_missed_is_recovered(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 21))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 20}, features=("snapshot",))

    assert opening == Opening({"EURUSD": 20}, [], [])


@pytest.mark.parametrize("away_ms", [5_000, 60_000, 119_000, 120_000])
def test_up_to_120_s_are_recovered(recent: RecentFrames, away_ms: int) -> None:
    add(recent, "EURUSD", range(1, 11), NOW_MS - 200_000)
    add(recent, "EURUSD", range(11, 13))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 10}, now_ms=NOW_MS + away_ms)

    assert (numbers(opening), opening.unrecovered) == ([11, 12], [])


@pytest.mark.parametrize(
    ("position", "epoch", "now_ms"),
    [
        pytest.param(5, "e1", NOW_MS + 120_001, id="longer than 120 s"),
        pytest.param(5, "e0", NOW_MS, id="wrong epoch"),
        pytest.param(10, "e0", NOW_MS, id="wrong epoch and the last number"),
        pytest.param(11, "e1", NOW_MS, id="from the future"),
        pytest.param(2**63 - 1, "e1", NOW_MS, id="from the far future"),
        pytest.param(0, "e1", NOW_MS, id="offset 0"),
        pytest.param(2, "e1", NOW_MS, id="trimmed"),
    ],
)
def test_what_is_not_whole_is_not_recovered_at_all(
    recent: RecentFrames, position: int, epoch: str, now_ms: int
) -> None:
    add(recent, "EURUSD", range(4, 11))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": position}, epoch=epoch, now_ms=now_ms)

    assert opening.unrecovered == ["EURUSD"]
    assert (opening.positions, numbers(opening)) == ({"EURUSD": 10}, [10])


def before(*seqs: int, came_ms: int = NOW_MS) -> LastSent:
    """What another process has sent up to number 4."""
    return LastSent("EURUSD", 4, before=[(came_ms, seq, frame("EURUSD", seq)) for seq in seqs])


@pytest.mark.parametrize(
    ("known", "came", "position", "replayed"),
    [
        pytest.param(None, [range(1, 1502)], 501, range(502, 1502), id="as many frames as are recovered"),
        pytest.param(None, [range(1, 1502)], 500, None, id="one frame more"),
        pytest.param(None, [range(1, 11)], 0, None, id="offset 0, though all frames are there"),
        pytest.param(None, [range(1, 6), range(8, 11)], 4, None, id="a hole"),
        pytest.param(None, [range(1, 6), range(8, 11)], 8, range(9, 11), id="behind the hole"),
        pytest.param(before(1, 2, 3, 4), [range(5, 7)], 2, range(3, 7), id="with what comes now"),
        pytest.param(before(1, 2, 3), [], 4, range(0), id="nothing of the other process was missed"),
        pytest.param(before(3, 4, came_ms=NOW_MS - 120_001), [], 2, None, id="sent too long ago"),
        pytest.param(
            before(1, 2, 3, 4, came_ms=NOW_MS + 60_000), [range(5, 7)], 1, range(2, 7), id="put back"
        ),
        *(
            pytest.param(before(*sent), [], position, None, id=f"in part: {sent}")
            for sent, position in [((1, 2, 3), 2), ((1, 2, 3, 4, 5), 2), ((1, 3, 4), 1), ((3, 4), 1), ((), 2)]
        ),
    ],
)
def test_missed_frames_are_replayed_whole_or_not_at_all(
    recent: RecentFrames, known: LastSent | None, came: list[range], position: int, replayed: range | None
) -> None:
    if known is not None:
        recent.know(known)
    for seqs in came:
        add(recent, "EURUSD", seqs)
    opening = open_with(recent, "EURUSD", positions={"EURUSD": position})

    assert opening.unrecovered == (["EURUSD"] if replayed is None else [])
    if replayed is not None or not came:
        assert numbers(opening) == list(replayed or ())


def test_clock_that_is_set_back_changes_no_order(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 5))
    add(recent, "EURUSD", range(5, 9), NOW_MS - 3_600_000)

    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 1})) == list(range(2, 9))


def test_position_0_is_whole_where_nothing_came(recent: RecentFrames) -> None:
    recent.know(LastSent("EURUSD", 0))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 0})

    assert opening == Opening({"EURUSD": 0}, [], [])


def test_symbol_of_which_nothing_is_known_is_not_recovered(recent: RecentFrames) -> None:
    for position in (0, 5):
        opening = open_with(recent, "EURUSD", positions={"EURUSD": position})
        assert opening == Opening({"EURUSD": 0}, ["EURUSD"], [])


def test_each_symbol_is_whole_or_not_at_all(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "XAUUSD", range(8, 11))
    opening = open_with(recent, "EURUSD", "XAUUSD", positions={"EURUSD": 8, "XAUUSD": 3})

    assert opening.unrecovered == ["XAUUSD"]
    assert opening.positions == {"EURUSD": 8, "XAUUSD": 10}
    assert told(opening) == [("XAUUSD", 10), ("EURUSD", 9), ("EURUSD", 10)]


def test_symbols_come_in_the_order_in_which_they_came(recent: RecentFrames) -> None:
    for seq in (1, 2, 3):
        add(recent, "XAUUSD", range(seq, seq + 1), NOW_MS + 10 * seq)
        add(recent, "EURUSD", range(seq, seq + 1), NOW_MS + 10 * seq + 5)
    opening = open_with(recent, "EURUSD", "XAUUSD", positions={"EURUSD": 1, "XAUUSD": 1})

    assert told(opening) == [("XAUUSD", 2), ("EURUSD", 2), ("XAUUSD", 3), ("EURUSD", 3)]


def test_symbol_without_a_position_starts_live(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "XAUUSD", range(1, 11))
    opening = open_with(recent, "EURUSD", "XAUUSD", positions={"XAUUSD": 9})

    assert told(opening) == [("XAUUSD", 10)]
    assert opening.positions == {"EURUSD": 10, "XAUUSD": 9}


@pytest.mark.parametrize("named", ["XAUUSD", "EURSUD", "EURUSD/1m"])
def test_position_of_what_is_not_subscribed_is_unrecovered(recent: RecentFrames, named: str) -> None:
    """It may be misspelt: to say that all was recovered would hide what was missed."""
    add(recent, "XAUUSD", range(1, 11))
    opening = open_with(recent, "EURUSD", positions={named: 9})

    assert opening == Opening({"EURUSD": 0}, [named], [])


def test_position_of_what_was_rejected_is_told_once(recent: RecentFrames) -> None:
    opening = open_with(recent, "EURUSD", "gone", positions={"GONE": 9}, known={"EURUSD"})

    assert opening == Opening({"EURUSD": 0}, [], [])


def test_from_its_first_frame_on_candles() -> None:
    """Of a day's candles none may have come for hours: 0 is where its client is."""
    candles = RecentFrames(from_first=True)
    candles.restart("e1")
    candles.know(LastSent("EURUSD", 0))
    assert open_with(candles, "EURUSD", positions={"EURUSD": 0}) == Opening({"EURUSD": 0}, [], [])
    add(candles, "EURUSD", range(1, 4))
    add(candles, "XAUUSD", range(4, 7))

    opening = open_with(candles, "EURUSD", "XAUUSD", positions={"EURUSD": 0, "XAUUSD": 0})

    assert opening.unrecovered == ["XAUUSD"]
    assert told(opening) == [("XAUUSD", 6), ("EURUSD", 1), ("EURUSD", 2), ("EURUSD", 3)]


def test_position_is_read_in_lower_case_too(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))

    assert numbers(open_with(recent, "eurusd", positions={"eurusd": 8})) == [9, 10]


def test_what_comes_already_is_not_replayed(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    subscribed = Subscriptions()
    open_with(recent, "EURUSD", before=subscribed)
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 5}, features=("snapshot",), before=subscribed)

    assert opening == Opening({"EURUSD": 10}, [], [])


def test_all_symbols_are_resumed_by_their_positions(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "XAUUSD", range(1, 11))
    opening = open_with(recent, positions={"EURUSD": 9, "NOPE": 3})

    assert opening.unrecovered == ["NOPE"]
    assert opening.positions == {"EURUSD": 9, "NOPE": 0, "XAUUSD": 10}
    assert told(opening) == [("EURUSD", 10)]


def test_snapshot_is_the_last_tick(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))

    assert open_with(recent, "EURUSD").frames == []
    assert numbers(open_with(recent, "EURUSD", features=("snapshot",))) == [10]


def test_snapshot_is_a_tick_though_an_absorption_came_after(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "EURUSD", range(11, 12), is_tick=False)
    opening = open_with(recent, "EURUSD", features=("snapshot",))

    assert (numbers(opening), opening.positions) == ([10], {"EURUSD": 11})


def test_what_was_sent_before_is_known_by_its_last_number_alone(recent: RecentFrames) -> None:
    recent.know(LastSent("EURUSD", 7, frame("EURUSD", 7)))
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 7})
    assert (opening.unrecovered, opening.frames) == ([], [])

    assert numbers(open_with(recent, "EURUSD", features=("snapshot",))) == [7]
    assert open_with(recent, "EURUSD", positions={"EURUSD": 6}).unrecovered == ["EURUSD"]
    add(recent, "EURUSD", range(8, 10))
    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 7})) == [8, 9]


def test_who_lost_the_place_replays_nothing_in_the_same_epoch(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    recent.restart("e1")

    assert open_with(recent, "EURUSD", positions={"EURUSD": 8}).unrecovered == ["EURUSD"]


def test_new_epoch_forgets_what_was(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    recent.restart("e2")
    add(recent, "EURUSD", range(1, 4))

    assert open_with(recent, "EURUSD", positions={"EURUSD": 2}, epoch="e1").unrecovered == ["EURUSD"]
    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 2}, epoch="e2")) == [3]


def test_nobody_resumes_over_the_beginning_of_another_series(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 4))
    recent.begin_series("EURUSD", None)
    away = [open_with(recent, "EURUSD", positions={"EURUSD": seq}).unrecovered for seq in (1, 3)]
    add(recent, "EURUSD", range(4, 7))
    assert away == [["EURUSD"]] * 2
    assert open_with(recent, "EURUSD", positions={"EURUSD": 3}).unrecovered == ["EURUSD"]
    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 4})) == [5, 6]


def test_frames_are_those_of_the_moment_of_asking_however_late_they_are_read(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 1_001))
    subscribed = Subscriptions()
    change = subscribed.subscribe(Subscribe(symbols=["EURUSD"]), lambda _: True)
    opening = recent.open(subscribed, change, Resume("e1", {"EURUSD": 1}), NOW_MS)
    add(recent, "EURUSD", range(1_001, 3_001))
    assert [seq for seq, _ in opening.frames] == list(range(2, 1_001))


def test_one_socket_is_replayed_all_that_is_kept_once_in_its_time(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 1_001))
    add(recent, "XAUUSD", range(1, 3))
    allowance = ReplayAllowance()

    def resume(now_ms: int, position: int) -> list[str]:
        add(recent, "EURUSD", range(recent.positions(["EURUSD"])["EURUSD"] + 1, 2_002), now_ms)
        return open_with(
            recent, "EURUSD", positions={"EURUSD": position}, now_ms=now_ms, allowance=allowance
        ).unrecovered

    assert [resume(NOW_MS, 1_001) for _ in range(3)] == [[], [], ["EURUSD"]]
    assert resume(NOW_MS, 2_001) == []
    assert resume(NOW_MS + 120_000, 1_001) == ["EURUSD"]
    add(recent, "EURUSD", range(2_002, 2_005), NOW_MS + 120_001)
    assert resume(NOW_MS + 120_001, 2_001) == []
