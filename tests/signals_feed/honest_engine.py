"""A simple engine that does to one signal what the contract says, and the ledger that it writes. It shares
no code with the judge: prices are integers, seen from the publisher, and what is rounded is a fraction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from signals_feed.exits import Minute, Tick

Entry = dict[str, Any]
START_MS = 1_795_000_020_000
STALE_MS, WAIT_MS = 20_000, 1_000
CAUSES = ("staff", "market_closed", "kind_changed", "deactivated", "withheld")


class Plan(NamedTuple):
    """A signal, and what happens after it: milliseconds later, what, and its numbers."""

    is_buy: bool
    worse: int
    """How much worse than the market the named entry is."""
    risk: int
    reward: int
    expires_ms: int
    written_after_ms: int
    steps: list[tuple[int, str, tuple[int, ...]]]
    ahead_ms: int = 0
    """How far the engine's clock is ahead of the venue's."""


def iso(at_ms: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).strftime(
        "%Y-%m-%dT%H:%M:%S.%fZ"
    )


def half_away(value: Fraction, decimals: int) -> str:
    """Rounded half away from nought, as the ledger spells it."""
    units = floor(abs(value) * 10**decimals + Fraction(1, 2)) * (1 if value >= 0 else -1)
    return f"{Decimal(units).scaleb(-decimals).normalize() + 0:f}"


class HonestEngine:
    def __init__(self, plan: Plan, start_ms: int = START_MS) -> None:
        self.start_ms = start_ms
        self.plan, self.sign = plan, 1 if plan.is_buy else -1
        self.now_ms, self.bid, self.spread, self.seq, self.numbering = self.start_ms, 1000, 2, 40, 0
        self.unsettled_ms, self.unsettled_since_ms = 0, 0
        self.feed = "kraken"
        self.market: list[Tick | Minute] = []
        self.entries: list[Entry] = []
        self.last = self._tick(self.start_ms - plan.ahead_ms - 5_000, is_settled=True)
        # Higher is better for the publisher, also of a sell.
        self.shown = self._pays(self.last)
        self.entry = self.shown + plan.worse
        self.stop, self.target = self.entry - plan.risk, self.entry + plan.reward
        self.expires_ms = self.start_ms + plan.expires_ms
        self.arms: dict[str, Entry] = {}
        self.unheard = {"fill"}
        self.is_away = self.is_withheld = False
        self.filled: Tick | None = None
        self.paid = 0
        self.seen: list[int] = []
        self.others: set[str] = set()
        self.cause, self.cancelled_at = "", ""
        self._publish()
        for wait_ms, what, numbers in plan.steps:
            self.now_ms += wait_ms
            self._time_passes()
            getattr(self, what)(*numbers)

    @property
    def is_closed(self) -> bool:
        return bool(self.entries[-1]["kind"] == "close")

    @property
    def state(self) -> str:
        if self.is_closed:
            return "has ended"
        if self.filled is None:
            return "waits for its fill"
        is_over = self.arms.keys() - {"fill"} or self.now_ms >= self.expires_ms
        return "waits for a tradable tick" if is_over else "is open"

    @property
    def venue_ms(self) -> int:
        return self.now_ms - self.plan.ahead_ms

    # What happens.

    def tick(self, move: int, spread: int, lag_ms: int, settled: int) -> None:
        before, self.bid, self.spread = self.last, max(500, self.bid + move), spread
        self.seq += 1
        self._settle(is_settled=bool(settled))
        self.last = self._tick(max(before.time_ms, self.venue_ms - lag_ms), is_settled=bool(settled))
        self._time_passes()
        if not self.is_closed:
            self._fill(self.last) if self.filled is None else self._judge(self.last, before)

    def source(self, feed: int) -> None:
        self.feed = ("kraken", "push:a", "binance")[feed]

    def withhold(self) -> None:
        """What is decided from here on is told to nobody."""
        self.is_withheld = True

    def wait(self) -> None:
        """Nothing happens."""

    def leave(self) -> None:
        """Nothing is heard or decided any more."""
        self.is_away = True

    def minute(self, low: int, high: int, opened: int) -> None:
        """One that the engine does not see; afterwards it goes on in the same numbering."""
        opened_ms = -(-self.venue_ms // 60_000) * 60_000
        self.now_ms = opened_ms + 60_000 + self.plan.ahead_ms
        bids = self.bid - low + min(opened, low + high), self.bid - low, self.bid + high
        self.market.append(Minute(opened_ms, *map(Decimal, (*bids, bids[1] + 2, bids[2] + 2))))
        if self.filled is not None and not self.is_closed and opened_ms >= self.filled.time_ms:
            self.others.add("minutes")
            self._judge_minute(opened_ms, bids)
        self._time_passes()

    def look(self) -> None:
        """Hears of what was asked for since, and arms it."""
        is_late = self.now_ms + self.plan.written_after_ms > self.written_ms + 5_000
        for asked in sorted(self.unheard, key=("fill", "cancel", "close_request").index):
            if asked == "fill" and is_late and not self.cause:
                self._cancel("not_armed")
                self._unfilled()
            elif not self.is_closed and not (asked == "fill" and is_late):
                self._arm(asked)
        self.unheard.clear()

    def restart(self) -> None:
        """The numbering begins anew, and so does every wait."""
        self.numbering += 1
        for asked in [each for each in self.arms if each != "fill" or self.filled is None]:
            if not self.is_closed:
                self._arm(asked)

    def request(self) -> None:
        if not self.is_closed and all(entry["kind"] != "close_request" for entry in self.entries):
            self.unheard.add("close_request")
            self._write("close_request", at=iso(self.now_ms))

    def cancel(self, which: int) -> None:
        """By staff, of whom the engine hears later, or by the engine itself."""
        if not (self.is_closed or self.cause or (CAUSES[which] == "market_closed" and self.filled)):
            self._cancel(CAUSES[which])
            self.unheard.add("cancel")
            if CAUSES[which] != "staff":
                self.look()
        elif not self.is_closed and self.cause == "staff" and self.filled and which > 1:
            self._arm(CAUSES[which])
            self._end_at_last(CAUSES[which], iso(self.now_ms))

    # What the engine does.

    def _publish(self) -> None:
        terms = {"entry": self.entry, "stop_loss": self.stop, "take_profit": self.target}
        fields: Entry = {name: str(self.sign * price) for name, price in terms.items()}
        fields |= {"direction": "buy" if self.sign == 1 else "sell", "tradable_price": str(abs(self.shown))}
        fields |= {"published_at": iso(self.start_ms), "expires_at": iso(self.expires_ms)}
        fields |= {
            "rules": 2,
            "number": 1,
            "rank_unit": "3",
            "demo": False,
            "pip_size": "0.25",
            "stale_ms": STALE_MS,
        }
        self._write("publish", **fields, evidence=self._evidence(self.last, "tick", "quote"))
        self.written_ms = self.start_ms + self.plan.written_after_ms

    def _write(self, kind: str, **fields: Any) -> None:
        written = iso(self.now_ms + self.plan.written_after_ms)
        self.entries.append({"kind": kind, "signal": "s", "written": written, **fields})

    def _tick(self, time_ms: int, *, is_settled: bool) -> Tick:
        prices, epoch = (Decimal(self.bid), Decimal(self.bid + self.spread)), f"e{self.numbering}"
        unsettled_ms = self._unsettled_ms()
        tick = Tick(*prices, time_ms, epoch, self.seq, self.now_ms, self.feed, is_settled, unsettled_ms)
        self.market.append(tick)
        return tick

    def _pays(self, tick: Tick) -> int:
        return int(tick.ask) if self.sign == 1 else -int(tick.bid)

    def _gets(self, tick: Tick) -> int:
        return int(tick.bid) if self.sign == 1 else -int(tick.ask)

    def _arm(self, asked: str) -> None:
        number = self.arms[asked]["number"] + 1 if asked in self.arms else 1
        where = {"epoch": f"e{self.numbering}", "seq": self.seq, "wait_ms": WAIT_MS}
        where |= {"unsettled_ms": self._unsettled_ms(), "ahead_ms": self.plan.ahead_ms}
        self._write("arm", **{"for": asked, "number": number, "at": iso(self.now_ms)}, **where)
        self.arms[asked] = where | {"number": number, "at_ms": self.now_ms}
        if asked == "cancel" and self.filled is None:
            self._unfilled()
        elif asked == "cancel":
            self._end_at_last(self.cause, self.cancelled_at)

    def _end_at_last(self, cause: str, at: str) -> None:
        if cause in ("kind_changed", "deactivated"):
            self._close(self.last, self._gets(self.last), "cancelled", "current", "tick", at)
        elif cause == "withheld" and self.filled is not None:
            self.seen, self.others = self.seen[:1], set()
            self._close(self.filled, self.seen[0], "cancelled", "current", "tick", at)

    def _is_due(self, asked: str, tick: Tick) -> bool:
        arm = self.arms.get(asked)
        if arm is None or tick.time_ms + self.plan.ahead_ms < arm["at_ms"]:
            return False
        return tick.settled and self.now_ms >= arm["at_ms"] + WAIT_MS

    def _time_passes(self) -> None:
        arm = self.arms.get("fill")
        is_over = self.filled is not None or self.is_closed
        if arm is None or is_over or self.unsettled_since_ms or self.is_away:
            return
        if self.now_ms - arm["at_ms"] - self.unsettled_ms + arm["unsettled_ms"] > 60_000:
            self._arm_or_cancel("no_tick")
            if not self.is_closed:
                self._unfilled()

    def _unsettled_ms(self) -> int:
        return self.unsettled_ms + (self.now_ms - self.unsettled_since_ms if self.unsettled_since_ms else 0)

    def _settle(self, *, is_settled: bool) -> None:
        self.unsettled_ms = self._unsettled_ms()
        self.unsettled_since_ms = 0 if is_settled else self.now_ms

    def _arm_or_cancel(self, cause: str) -> None:
        """It ends in any case, and staff may have cancelled it without being heard of yet."""
        if not self.cause:
            self._cancel(cause)
        elif "cancel" in self.unheard:
            self.unheard.discard("cancel")
            self._arm("cancel")

    def _cancel(self, cause: str) -> None:
        self.cause, self.cancelled_at = cause, iso(self.now_ms)
        self._write("cancel", cancelled_at=self.cancelled_at, cause=cause, unsettled_ms=self._unsettled_ms())

    def _fill(self, tick: Tick) -> None:
        if not self._is_due("fill", tick):
            return
        price, gets = self._pays(tick), self._gets(tick)
        self.filled, self.paid, self.seen = tick, max(self.entry, price), [gets]
        self._judged_by(tick)
        self._write(
            "fill",
            fill_price=str(abs(price)),
            evidence=self._evidence(tick, "tick", "fill"),
        )
        if gets <= self.stop:
            self._close(tick, gets, "stop_loss", "stop", "tick")
        elif max(gets, self.paid) >= self.target:
            self._arm_or_cancel("beyond_target")
            self._close(tick, gets, "cancelled", "current", "tick")

    def _judge(self, tick: Tick, before: Tick) -> None:
        if self.is_withheld:
            return
        gets = self._gets(tick)
        source = "first_after_gap" if tick.time_ms - before.time_ms > STALE_MS else "tick"
        self.seen.append(gets)
        self._judged_by(tick)
        if gets <= self.stop:
            self._close(tick, gets, "stop_loss", "stop", source)
        elif gets >= self.target:
            self._close(tick, self.target, "take_profit", "target", source)
        elif self._is_due("close_request", tick):
            self._close(tick, gets, "manual", "current", source)
        elif self._is_due("cancel", tick):
            self._close(tick, gets, "cancelled", "current", source)
        elif tick.time_ms + self.plan.ahead_ms >= self.expires_ms and tick.settled:
            self._close(tick, gets, "expired", "current", source)

    def _judged_by(self, tick: Tick) -> None:
        self.others |= {tick.feed} if tick.feed.startswith("push") else set()

    def _judge_minute(self, opened_ms: int, bids: tuple[int, int, int]) -> None:
        opened, low, high = bids
        worst, best = (low, high) if self.sign == 1 else (-high - 2, -low - 2)
        self.seen += [worst, best]
        made = self.market[-1]
        if worst <= self.stop and self.sign == 1 and opened <= self.stop:
            self._close(made, opened, "stop_loss", "stop_at_open", "candle")
        elif worst <= self.stop:
            self._close(made, worst, "stop_loss", "stop_at_worst", "candle")
        elif opened_ms + 60_000 + self.plan.ahead_ms > self.expires_ms:
            self._close(made, worst, "expired", "worst", "candle")
        elif best >= self.target:
            self._close(made, self.target, "take_profit", "target", "candle")

    def _close(
        self, by: Tick | Minute, price: int, reason: str, rule: str, source: str, at: str = ""
    ) -> None:
        at_ms = by.time_ms if isinstance(by, Tick) else by.opened_ms + 59_999
        risk, gained = self.paid - self.stop, Fraction(price - self.paid)
        best, worst = min(max(*self.seen, price), self.target), min(*self.seen, price)
        extremes = {"best": str(abs(best)), "worst": str(abs(worst))}
        feeds = [by.feed, *sorted(self.others - {by.feed})] if isinstance(by, Tick) else []
        self._write(
            "close",
            rules=2,
            close_price=str(abs(price)),
            close_reason=reason,
            closed_at=at or iso(max(at_ms, self.start_ms)),
            pnl=half_away(gained * 4, 1),
            pnl_percent=half_away(gained / abs(self.paid) * 100, 4),
            pnl_r=half_away(gained / risk, 4),
            best_r=half_away(Fraction(best - self.paid, risk), 4),
            worst_r=half_away(Fraction(worst - self.paid, risk), 4),
            evidence=self._evidence(by, source, rule)
            | extremes
            | ({"feed": "+".join(feeds)} if feeds else {}),
        )

    def _unfilled(self) -> None:
        nothing = dict.fromkeys(("pnl", "pnl_percent", "pnl_r"), "0") | {"best_r": None, "worst_r": None}
        how = {"close_price": str(abs(self.entry)), "close_reason": "cancelled", "evidence": None}
        self._write("close", rules=2, closed_at=self.cancelled_at, **how, **nothing)

    def _evidence(self, by: Tick | Minute, source: str, rule: str) -> Entry:
        shown: Entry = {"source": source, "rule": rule}
        if isinstance(by, Minute):
            names = ("bid_open", "bid_low", "bid_high", "ask_low", "ask_high")
            prices = {name: str(getattr(by, name)) for name in names}
            return shown | prices | {"at": iso(by.opened_ms), "epoch": "", "seq": 0}
        shown |= {"bid": str(by.bid), "ask": str(by.ask), "at": iso(by.time_ms), "epoch": by.epoch}
        shown |= {"settled": by.settled, "unsettled_ms": by.unsettled_ms}
        return shown | {"seq": by.seq, "accepted_ms": by.accepted_ms, "feed": by.feed, "simulated": False}
