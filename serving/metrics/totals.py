"""The figures of several workers as those of one service.

What is counted is added up, with what workers counted that have ended, so that no restart makes a total go
back. What is measured cannot be added up: it gets the label `worker`, with exceptions that are named here.
"""

from collections.abc import Iterable, Mapping

from .snapshots import Family, Sample, Snapshot

COUNTED = frozenset(("counter", "histogram", "summary"))
ADDED_GAUGES = frozenset(("tickwire_stream_connections",))
QUANTILE = "quantile"
Labels = tuple[tuple[str, str], ...]
SampleName = tuple[str, Labels]


class FamilyTotal:
    """One family of several processes."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[SampleName, float] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            name = sample.name, tuple(sorted(sample.labels.items()))
            before = self.values.get(name)
            if before is None:
                self.values[name] = sample.value
            elif QUANTILE in sample.labels:
                # The worst of them: quantiles of parts do not make one of the whole.
                self.values[name] = max(before, sample.value)
            else:
                self.values[name] = before + sample.value

    def label(self, samples: Iterable[Sample], worker: str) -> None:
        for sample in samples:
            labels = sample.labels | {"worker": worker}
            self.values[sample.name, tuple(sorted(labels.items()))] = sample.value

    def told(self) -> Family:
        samples = [Sample(name, dict(labels), value) for (name, labels), value in self.values.items()]
        return Family(self.family.name, self.family.text, self.family.kind, samples)


class EndedWorkers:
    """What workers counted that have ended."""

    def __init__(self) -> None:
        self.totals: dict[str, FamilyTotal] = {}

    def note(self, last: Snapshot) -> None:
        for family in last.own:
            if family.kind in COUNTED:
                total = self.totals.setdefault(family.name, FamilyTotal(family))
                total.add(sample for sample in family.samples if QUANTILE not in sample.labels)


def add_up(ended: EndedWorkers, known: Iterable[Snapshot], running: Mapping[str, Snapshot]) -> list[Family]:
    """`known`: the last of every process that has not ended. `running`: those that answered just now, by the
    number of the worker."""
    totals: dict[str, FamilyTotal] = {}
    for name, before in ended.totals.items():
        totals[name] = FamilyTotal(before.family)
        totals[name].values |= before.values
    for snapshot in known:
        for family in filter(is_added, snapshot.own):
            totals.setdefault(family.name, FamilyTotal(family)).add(family.samples)
    for worker, snapshot in running.items():
        for family in snapshot.own:
            if not is_added(family):
                totals.setdefault(family.name, FamilyTotal(family)).label(family.samples, worker)
    latest = max(running.values(), key=lambda snapshot: snapshot.shared_at, default=None)
    return [*(total.told() for total in totals.values()), *(latest.shared if latest else ())]


def is_added(family: Family) -> bool:
    return family.kind in COUNTED or family.name in ADDED_GAUGES
