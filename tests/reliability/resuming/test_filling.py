"""A client that was away for more than a stream replays fills the gap over REST, over a kill as well."""

from __future__ import annotations

import json
import os
import shutil
import signal
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.programs.services import free_port
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOL, BATCH, BATCHES = "AWAY", 500, 5
Numbered = tuple[str, int, float]
"""Epoch, number and bid."""


class Bot:
    def __init__(self, service: StreamService, port: int) -> None:
        self.service, self._port = service, port
        self.key = service.make_key(requests_per_minute=10_000)
        self.acknowledged: list[float] = []

    def push(self, number: int) -> bool:
        ticks = self.service.make_ticks([SYMBOL] * number)
        if not self.service.push(ticks):
            return False
        self.acknowledged += [tick["bid"] for tick in ticks]
        return True

    def begin(self, server: Process) -> None:
        self.service.servers = [server]
        wait_until(lambda: self.push(1))

    def hear(self, **resume: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The reply, the first frame after it, and its epoch."""
        fields = {"features": ["seq"], **resume}
        with subscribed(self._port, self.key, [SYMBOL], **fields) as (connection, reply):
            while True:
                assert self.push(1)
                frame = json.loads(connection.recv(PATIENCE_S))
                if frame.get("seq", 0) > reply["positions"][SYMBOL]:
                    return reply, frame, reply["epoch"]

    def walk(self, start_ms: int) -> list[Numbered]:
        found: list[Numbered] = []
        query = f"/api/market/{SYMBOL}/ticks?start={start_ms}&limit=700"
        path = query
        while True:
            body = self.service.servers[0].ask(path, self.key).json()
            found += [(body["epoch"], item["seq"], item["bid"]) for item in body["items"]]
            if body["next"] is None:
                return found
            path = f"{query}&cursor={body['next']}"


@pytest.mark.row("12", "a gap that no stream replays is filled over REST")
@pytest.mark.parametrize("is_new_epoch", [False, True], ids=["same epoch", "new epoch"])
def test_gap_is_filled_with_every_number_over_a_kill(embedded: Installation, is_new_epoch: bool) -> None:
    port = free_port()
    bot = Bot(StreamService(embedded, [SYMBOL]), port)
    with interruptible(), embedded.web_process(port) as server:
        bot.begin(server)
        _, last, epoch = bot.hear()
        known = len(bot.acknowledged)
        for _ in range(BATCHES):
            assert bot.push(BATCH)
        if is_new_epoch:
            # What a journal that is lost cannot repeat is in the files by then.
            assert bot.walk(last["time"])[-1][2] == bot.acknowledged[-1]
        os.kill(server.pid, signal.SIGKILL)
    if is_new_epoch:
        shutil.rmtree(embedded.directory / "journal")
    with embedded.web_process(port) as server:
        bot.begin(server)
        for _ in range(BATCHES):
            assert bot.push(BATCH)
        resume = {"epoch": epoch, "positions": {SYMBOL: last["seq"]}}
        reply, first, present = bot.hear(resume=resume)
        assert reply["unrecovered"] == [SYMBOL]
        assert (present != epoch) == is_new_epoch
        filled = [
            each for each in bot.walk(last["time"]) if each[:2] > (epoch, last["seq"]) or each[0] != epoch
        ]

    assert [bid for _, _, bid in filled[: len(bot.acknowledged) - known]] == bot.acknowledged[known:]
    assert filled[-1][2] == bot.acknowledged[-1]
    assert (present, first["seq"], first["bid"]) in filled
    for name, own in groupby(filled, itemgetter(0)):
        seqs = [seq for _, seq, _ in own]
        assert seqs == [*range(seqs[0], seqs[-1] + 1)]
        assert name != epoch or seqs[0] == last["seq"] + 1


@pytest.mark.row("12", "a gap that no stream replays is filled over REST")
def test_every_web_process_beside_an_engine_has_the_ticks(scaled: Installation) -> None:
    with streaming(scaled, 2, [SYMBOL]) as service:
        bot = Bot(service, 0)
        for _ in range(BATCHES):
            assert bot.push(BATCH)
        for server in tuple(service.servers):
            service.servers = [server]
            wait_until(lambda: [bid for _, _, bid in bot.walk(0)][-1:] == bot.acknowledged[-1:])
            assert [bid for _, _, bid in bot.walk(0)][-len(bot.acknowledged) :] == bot.acknowledged
