"""From the last release to this code, back, and here again, with signals open all the while: each is filled
and closed once, by the rules by which it was published."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path

import httpx
import pytest

from core.clock import now_ms
from core.times import MINUTE_MS, epoch_ms
from market.prices import interval_start
from signals_feed.contradictions import contradictions
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.new_rules import have_begun
from signals_feed.ledger.verify import verify
from signals_feed.marks import Mark
from signals_feed.models import Signal
from status.models import ProcessReport
from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.upgrade.upgrading import (
    Made,
    as_released,
    check,
    check_signals,
    migrate,
    serving_the_release,
    set_up,
    upgraded,
)
from tests.transparency.naive import head

FAR = "0.5", "9"
ARMED = ["publish", "arm fill:1"]
REFUSED = "cannot be closed"
pytestmark = pytest.mark.row("upgrade", "every signal is filled and closed once, by its own rules")


class Desk:
    """An instrument whose prices come from here alone, and the signals on it, by name."""

    def __init__(self, url: str, made: Made, here: Installation) -> None:
        self._url, self._made, self._here = url, made, here
        self._publisher = made.publisher(made.held)
        self._publisher.url = url
        self._tokens: dict[str, str] = {}
        self._checkpoint = 0, ""

    # What is asked of the service.

    def push(self, bid: float) -> None:
        """Until it is taken."""
        headers = {"X-Ingest-Key": self._made.ingest_key}

        def is_taken() -> bool:
            tick = {"symbol": self._made.held, "bid": bid, "ask": bid + 0.0002, "time": now_ms()}
            answer = httpx.post(f"{self._url}/ingest/ticks", json=[tick], headers=headers, timeout=PATIENCE_S)
            return answer.status_code == 200 and bool(answer.json()["accepted"])

        wait_until(is_taken)

    def publish(self, name: str, stop: str, target: str) -> None:
        self._tokens[name] = self._publisher.publish(stop, target)

    def close(self, name: str) -> int:
        return self._publisher.post(f"/settings/signals/{self.signal(name).pk}/close", {}).status_code

    def get(self, path: str) -> httpx.Response:
        headers = {"X-API-Key": self._made.key}
        return httpx.get(f"{self._url}{path}", headers=headers, timeout=PATIENCE_S)

    def checkpoint(self) -> tuple[int, str]:
        """The size of the newest, and its root."""
        _, size, root, *_ = self.get("/ledger/checkpoint").text.splitlines()
        return int(size), root

    # What the database says.

    def signal(self, name: str) -> Signal:
        with self._here.orm(only_reads=True):
            return Signal.objects.get(token=self._tokens[name])

    def told(self, name: str) -> list[str]:
        with self._here.orm(only_reads=True):
            own = LedgerEntry.objects.filter(
                signal__in=Signal.objects.filter(token=self._tokens[name]).values("pk")
            )
            return [f"{each.kind} {each.part}".strip() for each in own.order_by("position")]

    def end(self, name: str) -> tuple[str, float | None]:
        signal = self.signal(name)
        return signal.close_reason, None if signal.close_price is None else float(signal.close_price)

    def push_until(self, bid: float, name: str, what: str) -> None:
        def has_come() -> bool:
            self.push(bid)
            return what in self.told(name)

        wait_until(has_come)

    # The story.

    def begin(self) -> None:
        """By the release."""
        self.push(1.0)
        self.publish("stopped", "0.99", "9")
        self.publish("aimed", "0.5", "1.02")

    def close_those_of_before(self) -> None:
        self.push(0.98)
        self.push(1.03)
        wait_until(lambda: self.end("stopped")[0] and self.end("aimed")[0])
        assert [self.end("stopped"), self.end("aimed")] == [("stop_loss", 0.98), ("take_profit", 1.02)]
        self.push(1.0)

    def knows_rules_2(self) -> bool:
        """All web processes that report do."""
        with self._here.orm(only_reads=True):
            return ProcessReport.objects.oldest_rules() == 2

    def follows_rules_2(self) -> bool:
        with self._here.orm(only_reads=True):
            return have_begun()

    def leave_three_open(self) -> None:
        """One filled, one to be closed, one that waits for its fill."""
        self.publish("filled", "0.9", "9")
        self.publish("asked", *FAR)
        for name in ("filled", "asked"):
            self.push_until(1.0, name, "fill")
        assert self.close("asked") == 302
        wait_until(lambda: "arm close_request:1" in self.told("asked"))
        self.publish("waiting", *FAR)
        wait_until(lambda: self.told("waiting") == ARMED)
        self._checkpoint = self.checkpoint()

    def reach_the_stop(self, log: Path) -> None:
        """While the release serves, in a minute that began after the fill."""
        filled_at = self.signal("filled").filled_at
        assert filled_at is not None
        wait_until(lambda: now_ms() >= interval_start(epoch_ms(filled_at), MINUTE_MS) + MINUTE_MS)
        self.push(0.85)
        self.push(1.0)
        wait_until(lambda: REFUSED in log.read_text())

    def stay_as_they_are(self, log: Path) -> None:
        """The release can neither close them nor crashes nor tries for ever."""
        before = {name: self.told(name) for name in ("filled", "asked", "waiting")}
        assert {name: self.close(name) for name in before} == dict.fromkeys(before, 500)
        for name in before:
            pk = self.signal(name).pk
            assert self.get(f"/api/signals/{pk}").json()["status"] == "active"
            assert self.get(f"/api/signals/{pk}/proof").status_code == 200
        for path in ("/api/signals?status=all", "/api/signals/ledger", "/publishers/publisher"):
            assert self.get(path).status_code == 200
        self.push(1.0)
        assert {name: self.told(name) for name in before} == before
        assert log.read_text().count(REFUSED) == 1

    def end_all(self) -> None:
        wait_until(lambda: "arm fill:2" in self.told("waiting"))
        self.push_until(1.0, "waiting", "fill")
        self.push_until(1.0, "asked", "close")
        # The minute in which its stop was reached may only now be over.
        wait_until(lambda: self.end("filled")[0])
        self.push_until(0.4, "waiting", "close")
        wait_until(lambda: self.end("lasting")[0])

    def check(self) -> None:
        assert {name: (self.told(name), *self.end(name)) for name in self._tokens} == {
            "stopped": (["publish", "close"], "stop_loss", 0.98),
            "aimed": (["publish", "close"], "take_profit", 1.02),
            "lasting": (["publish", "close"], "stop_loss", 0.4),
            "filled": ([*ARMED, "fill", "close"], "stop_loss", 0.85),
            "asked": (
                [*ARMED, "fill", "close_request", "arm close_request:1", "arm close_request:2", "close"],
                *("manual", 1.0),
            ),
            "waiting": ([*ARMED, "arm fill:2", "fill", "close"], "stop_loss", 0.4),
        }
        for name in self._tokens:
            proof = self.get(f"/api/signals/{self.signal(name).pk}/proof").json()
            assert (proof["mark"], proof["mark_reason"]) == (Mark.RECORDED, None)
        with self._here.orm():
            rows = list(LedgerEntry.objects.order_by("position").values_list("signal", "payload"))
            assert verify().fault == ""
        payloads = [payload for _, payload in rows]
        for name in ("filled", "asked", "waiting"):
            own = [json.loads(payload) for about, payload in rows if about == self.signal(name).pk]
            assert contradictions(own) == []
        # What was signed before the way back is signed in what there is now.
        wait_until(lambda: self.checkpoint()[0] == len(payloads))
        for size, root in (self._checkpoint, self.checkpoint()):
            assert root == b64encode(head([text.encode() for text in payloads[:size]])).decode()


async def test_on_postgresql_and_redis_under_traffic(tmp_path: Path, tell: Tell) -> None:
    with serving_the_release(tmp_path) as upgrade:
        service, traffic = upgrade.service, upgrade.traffic
        desk = Desk(f"http://127.0.0.1:{service.front}", upgrade.made, upgrade.here)
        async with traffic.at(service.front):
            with upgrade.publisher:
                await upgrade.do(desk.begin)
                await upgraded(upgrade)
                # The old web processes are forgotten, and the old engine still runs.
                await upgrade.do(wait_until, desk.knows_rules_2)
                await upgrade.do(desk.publish, "lasting", *FAR)
                await upgrade.do(upgrade.check_ledger, upgrade.released, upgrade.here)
                await upgrade.do(service.put_engine, upgrade.here)
                await upgrade.do(desk.close_those_of_before)
                await upgrade.do(wait_until, desk.follows_rules_2)
                await upgrade.do(desk.leave_three_open)
                await asyncio.to_thread(upgrade.publisher.stop)
            await asyncio.to_thread(upgrade.publisher.wait_for_the_ticks)
            # Web processes of both beside the old engine, then nothing else than the release.
            await upgrade.do(service.put_engine, upgrade.released)
            await upgrade.do(upgrade.put_web, 0, upgrade.released)
            await upgrade.do(upgrade.check_keys)
            await upgrade.do(desk.reach_the_stop, service.engine_log)
            await upgrade.do(upgrade.put_web, 1, upgrade.released)
            await upgrade.do(desk.stay_as_they_are, service.engine_log)
        check(traffic, tell)
        # Those who wait for a tick are armed in another numbering, in which no stream resumes.
        traffic.streams = []
        async with traffic.at(service.front):
            for number in range(len(service.ports)):
                await upgrade.do(upgrade.put_web, number, upgrade.here)
            await upgrade.do(service.put_engine, upgrade.here)
            await upgrade.do(desk.end_all)
            await upgrade.do(desk.check)
        assert all(source.sent - source.taken <= source.held_up.total() for source in traffic.sources)
        check_signals(upgrade.publisher, tell)


def test_on_sqlite_one_process_after_the_other(tmp_path: Path) -> None:
    here, port = Installation(tmp_path, f"sqlite:///{tmp_path / 'upgraded.sqlite3'}"), free_port()
    released = as_released(here, tmp_path / "released")
    desk = Desk(f"http://127.0.0.1:{port}", set_up(released), here)
    with released.web_process(port):
        desk.begin()
        desk.publish("lasting", *FAR)
    migrate(here)
    with here.web_process(port):
        desk.close_those_of_before()
        wait_until(desk.knows_rules_2)
        desk.leave_three_open()
    with released.web_process(port) as server:
        desk.reach_the_stop(server.log)
        desk.stay_as_they_are(server.log)
    with here.web_process(port):
        desk.end_all()
        desk.check()
