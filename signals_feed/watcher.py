"""Watches every active signal on every tick, and closes it once.

Where it runs: in the process that has the engine, and nowhere else. It is a witness of the engine
(market/engine/ witness.py), so it hears each tick before anybody else does, and whatever makes one engine of
many makes one watcher of many: the lease. A closing is a transaction that holds the lease, so that an engine
that was replaced closes nothing any more. A stand-in first hears what its predecessor had put on the bus and
not written yet. And whoever closes at the same moment, by hand or from a second engine: the row that is
still active decides (closures.py).

What is lost when it is killed: nothing that the database knows of. A tick that closes a signal is written as
a `Hit` in the same transaction as the engine's checkpoint that contains the tick, unless the signal was
closed before that, which usually takes milliseconds. So a restart goes on either from before the tick, which
then never happened for anybody, or closes by the very same tick: an engine that starts takes no tick and
writes nothing before all signals are read. The checkpoint also marks the minute up to which all prices were
judged. Minutes that were stored after it by others, as by the demo's simulation of a pause, are judged as
minutes when the engine starts, and minutes out of a venue's history as they come; those out of files never
are, because nobody was quoted them. What nobody stored is judged by the first tick after the gap.

A signal that is published anywhere is heard of within a quarter of a second, at once in this process; the
last ticks are remembered for it, and it is judged from the first tick after the one that it was published
at. The one stretch that nobody judges is between a publication and a kill within that quarter of a second.

Signals of instruments that are not offered wait until they are; on a closed or stale market, cancelled and
expired ones wait for the first tick."""

from __future__ import annotations

from .watching.watch import Watch

watcher = Watch()
