"""The figures of several workers become those of one service."""

from __future__ import annotations

from serving.metrics.snapshots import Family, Sample, Snapshot, text_of
from serving.metrics.totals import EndedWorkers, add_up


def make_snapshot(
    *families: Family, shared: float | None = None, shared_at: float = 0.0, requests: float | None = None
) -> Snapshot:
    own = list(families)
    if requests is not None:
        own.append(make_family("tickwire_requests", "counter", ("tickwire_requests_total", {}, requests)))
    engine = [] if shared is None else [make_family("tickwire_ticks", "counter", ("ticks_total", {}, shared))]
    return Snapshot(own, engine, shared_at)


def make_family(name: str, kind: str, *samples: tuple[str, dict[str, str], float]) -> Family:
    return Family(name, "What it says.", kind, [Sample(*each) for each in samples])


def seen(*running: Snapshot, ended: EndedWorkers | None = None, silent: tuple[Snapshot, ...] = ()) -> str:
    numbered = {str(number): each for number, each in enumerate(running, 1)}
    text = text_of(add_up(ended or EndedWorkers(), [*running, *silent], numbered)).decode()
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def test_counters_are_added_up_with_those_of_workers_that_have_ended_or_do_not_answer() -> None:
    ended = EndedWorkers()
    ended.note(make_snapshot(requests=3))
    ended.note(make_snapshot(requests=5))

    for running, silent, total in (((3, 4), (), 15), ((1,), (6,), 15), ((2,), (), 10), ((), (), 8)):
        each = [make_snapshot(requests=count) for count in running]
        said_last = tuple(make_snapshot(requests=count) for count in silent)
        assert seen(*each, ended=ended, silent=said_last) == f"tickwire_requests_total {total}.0"


def test_histograms_are_added_up_bucket_by_bucket() -> None:
    def make_histogram(fast: float, all_: float, sum_s: float) -> Snapshot:
        samples: tuple[tuple[str, dict[str, str], float], ...] = (
            ("s_bucket", {"le": "0.1"}, fast),
            ("s_bucket", {"le": "+Inf"}, all_),
            ("s_sum", {}, sum_s),
        )
        return make_snapshot(make_family("s", "histogram", *samples))

    assert seen(make_histogram(1, 2, 0.5), make_histogram(4, 6, 0.25)).splitlines() == [
        's_bucket{le="0.1"} 5.0',
        's_bucket{le="+Inf"} 8.0',
        "s_sum 0.75",
    ]


def test_gauge_keeps_one_value_for_each_worker_but_open_sockets_are_added_up() -> None:
    ready = [make_snapshot(make_family("ready", "gauge", ("ready", {}, value))) for value in (1, 0)]
    assert seen(*ready).splitlines() == ['ready{worker="1"} 1.0', 'ready{worker="2"} 0.0']

    name, ended = "tickwire_stream_connections", EndedWorkers()
    one = make_snapshot(make_family(name, "gauge", (name, {"stream": "market"}, 3)))
    ended.note(one)
    assert seen(one, one, ended=ended) == name + '{stream="market"} 6.0'


def test_quantile_is_the_worst_and_none_of_an_ended_worker_stays() -> None:
    def make_latency(p95: float, count: float) -> Snapshot:
        return make_snapshot(
            make_family("late", "summary", ("late", {"quantile": "0.95"}, p95), ("late_count", {}, count))
        )

    ended = EndedWorkers()
    ended.note(make_latency(9.0, 10))

    assert seen(make_latency(0.01, 1), make_latency(0.03, 2), ended=ended).splitlines() == [
        "late_count 13.0",
        'late{quantile="0.95"} 0.03',
    ]


def test_what_the_engine_told_all_is_taken_from_who_heard_it_last() -> None:
    cut_off = make_snapshot(shared=900, shared_at=10.0)
    hears = make_snapshot(shared=40, shared_at=20.0)

    assert seen(cut_off, hears) == seen(hears, cut_off) == "ticks_total 40.0"
