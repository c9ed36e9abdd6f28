"""The benchmark of growth in miniature: its market, its services, and what its table says."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from tests.nightly.benchmarks.streams.names import LIMIT, OURS
from tests.nightly.benchmarks.streams.test_report import make_load

from . import rest, streams
from .market import symbol
from .report import FLOOR, Growth, beyond_floor, table


def test_all_instruments_have_a_quote_and_the_same_candles(tmp_path: Path) -> None:
    with rest.services(tmp_path, [1, 3]) as running:
        one, three = running
        with three.peer.awake():
            answers = [ask(three.peer.url + rest.BARS.format(symbol(place)), three.key) for place in range(3)]
        assert {len(answer["ohlcv"]) for answer in answers} == {500}
        assert answers[0]["ohlcv"][:499] == answers[2]["ohlcv"][:499]
        assert one.resident_mb > 0
        assert one.start_cpu_s > 0
        assert one.at_rest(0.2) <= 1.2


def ask(url: str, key: str) -> dict[str, list[object]]:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"X-API-Key": key})) as answer:
        found: dict[str, list[object]] = json.load(answer)
        return found


def test_each_size_of_clients_is_the_same_work() -> None:
    hearers = {
        size: options["clients"] * options["own"] / options["symbols"]
        for size, options in streams.CLIENTS.cases.items()
    }
    assert set(hearers.values()) == {streams.AUDIENCE}
    assert {options["rate"] for options in streams.CLIENTS.cases.values()} == {streams.STEADY["rate"]}


def test_each_size_of_symbols_is_the_same_work() -> None:
    cases = streams.SYMBOLS.cases.values()
    assert {options["clients"] * options["own"] / options["symbols"] for options in cases} == {
        streams.AUDIENCE
    }
    assert len({(options["rate"], options["clients"]) for options in cases}) == 1


def test_what_the_kernel_takes_for_more_sockets_is_not_ours() -> None:
    alone = Growth("a message", ["1", "2"], [[4.0, 5.0, 4.0], [6.0, 7.0, 6.0]])
    beside = alone._replace(peer=[[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])

    assert alone.judged == 1.5
    assert beside.judged == 1.0
    assert [growth.judged for growth in beyond_floor([alone, beside])] == [1.5]


def test_growth_is_missed_above_the_goal_and_fails_above_the_floor() -> None:
    slight, far = (Growth("x", ["1", "2"], [[10.0], [10 * by]]) for by in (1.2, FLOOR + 0.02))

    assert "**missed**" in table([slight])
    assert "reached" in table([slight._replace(costs=[[10.0], [11.0]])])
    assert beyond_floor([slight, far]) == [far]


def test_costs_are_of_the_runs_of_each_size() -> None:
    loads = {
        (f"{streams.SYMBOLS.what}: {size}", server): [make_load(messages_per_cpu_s=speed)]
        for size, speed in (("10", 250_000), ("50", 200_000), ("500", 125_000))
        for server in (OURS, LIMIT)
    }

    found = streams.growth(streams.SYMBOLS, loads)

    assert found.costs == [[4.0], [5.0], [8.0]]
    assert found.judged == 1.0
