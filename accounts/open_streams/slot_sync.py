"""Keeps Redis and this process in agreement: tells it our slots, piece by piece, so that nobody waits long
for one."""

import itertools
from collections.abc import Collection, Iterable
from typing import Any

from .stream_slots import MemorySlots, Slot, slot_name, slot_number

Ask = tuple[Any, ...]
PIECE = 50
START, DONE = "0", ""


class SlotSync:
    """First all that are here, oldest first; then what Redis has and we do not is taken out. Each step may be
    repeated, so after a call that failed it goes on where it was."""

    def __init__(self, process: str, here: MemorySlots) -> None:
        self._process, self._here = process, here
        self._untold = {slot.number: slot for slot in sorted(here.all(), key=lambda slot: slot.order)}
        self._asked: list[Slot] = []
        self._asks: list[Ask] = []
        self._looks_from = START
        """Where the comparison with what Redis has goes on; DONE once it has seen all."""
        self._strange: list[Any] = []
        """Name, caller, name, caller, … of what Redis has and we do not."""

    def add(self, slot: Slot) -> None:
        """A slot that was counted in this process alone."""
        self._untold[slot.number] = slot

    def asks(self, callers: Collection[str | None], *, is_due: bool) -> list[Ask]:
        """What to ask before questions about these callers: a claim has to find the slots that are here."""
        self._asked, self._asks = self._of_callers(callers), []
        if is_due:
            room = max(0, PIECE - len(self._asked))
            self._asked += self._take(itertools.islice(list(self._untold.values()), room))
        if self._asked:
            described = [
                (slot_name(slot, self._process), slot.stream.counted_under, slot.limit, slot.order)
                for slot in self._asked
            ]
            self._asks.append(("tell", described))
        elif is_due:
            self._asks += self._next_look()
        return self._asks

    def failed(self) -> None:
        """Nobody knows how much of it arrived, so what Redis has is looked through from the beginning."""
        self._untold = {slot.number: slot for slot in self._asked} | self._untold
        self._asked, self._strange, self._looks_from = [], [], START

    def heard(self, answers: list[Any]) -> bool:
        """Whether Redis has been told everything."""
        asks, self._asked, self._asks = self._asks, [], []
        for ask, answer in zip(asks, answers, strict=True):
            if ask[0] == "known":
                next_from, held = answer
                self._looks_from = DONE if next_from == START else next_from
                for name, caller in zip(held[::2], held[1::2], strict=True):
                    if slot_number(name) not in self._here:
                        self._strange += name, caller
        return any(ask[0] == "told" for ask in asks) and not self._untold

    def _next_look(self) -> list[Ask]:
        strange, self._strange = self._strange, []
        drops: list[Ask] = [("drop", strange)] if strange else []
        return [*drops, ("told",) if self._looks_from == DONE else ("known", self._looks_from)]

    def _of_callers(self, callers: Collection[str | None]) -> list[Slot]:
        found = (slot for caller in callers if caller is not None for slot in self._here.of(caller))
        return self._take(slot for slot in found if slot.number in self._untold)

    def _take(self, slots: Iterable[Slot]) -> list[Slot]:
        """The slots that have not ended meanwhile."""
        taken = list(slots)
        for slot in taken:
            self._untold.pop(slot.number)
        return [slot for slot in taken if slot.number in self._here]
