"""Publishers without skill who do everything to look as if they had it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .luck import COUNT, CURRENCIES, STOCKS, TICKS_A_DAY, TWINS, Desk


@dataclass
class Cheat:
    rng: Random

    def act(self, desk: Desk) -> None:
        raise NotImplementedError

    def is_time(self, desk: Desk, days: int = 1) -> bool:
        return desk.now % (days * TICKS_A_DAY) == 0

    def anything(self) -> int:
        return self.rng.randrange(COUNT)

    def side(self) -> int:
        return self.rng.choice((1, -1))


class Copies(Cheat):
    """Publishes the same trade 31 times, so that all is won or lost at once."""

    def act(self, desk: Desk) -> None:
        if not desk.open:
            what, side = self.anything(), self.side()
            stop, target = self.rng.choice((1, 3)), self.rng.choice((1, 3, 10))
            for _ in range(31):
                desk.fill(what, side, stop, target)


class Hedges(Cheat):
    """Buys and sells the same, closes the winner by hand and lets the loser go on."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk):
            desk.both(self.anything(), 3)
        for trade in desk.open.values():
            if desk.in_r(trade) > 0.2:
                desk.close(trade)


class TinyStops(Cheat):
    """One result in a hundred R is worth many small losses."""

    def act(self, desk: Desk) -> None:
        for _ in range(2):
            desk.fill(self.anything(), self.side(), 0.01)


class OptionalStopping(Cheat):
    """Trades until the results look good, then rests."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk) and desk.total_r < 8:
            desk.fill(self.anything(), self.side(), 1, 1)


class WinnersByHand(Cheat):
    """Takes every small gain; what is behind stays open for as long as it may."""

    def act(self, desk: Desk) -> None:
        desk.fill(self.anything(), self.side(), 4)
        for trade in desk.open.values():
            if desk.in_r(trade) > 0.05:
                desk.close(trade)


class ThirtyAtOnce(Cheat):
    """Thirty trades in a minute that win or lose together."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk):
            side = self.side()
            for what in self.rng.sample(STOCKS, 30):
                desk.fill(what, side, 1)


class AcrossDays(Cheat):
    """Adds to one bet day after day, and ends all of it when the whole is ahead."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk):
            desk.fill(self.rng.choice(CURRENCIES), 1, 3)
        if sum(map(desk.in_r, desk.open.values())) > 2:
            for trade in desk.open.values():
                desk.close(trade)


class DilutedLoss(Cheat):
    """Surrounds each bet with nineteen signals that end at zero."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk, days=2):
            what, side = self.anything(), self.side()
            desk.fill(what, side, 1, 3)
            for _ in range(19):
                if trade := desk.fill(what, side, 1):
                    desk.close(trade)


class OverClosures(Cheat):
    """Buys and sells with tiny stops just before a market closes: one of both meets a gap."""

    def act(self, desk: Desk) -> None:
        for trade in desk.open.values():
            desk.close(trade)
        closing = desk.market.closing(desk.now)
        for what in self.rng.sample(closing, min(3, len(closing))):
            desk.both(what, 0.01)


class Announced(Cheat):
    """The same, only before nights that are known to move the price much further than those before."""

    def act(self, desk: Desk) -> None:
        for trade in desk.open.values():
            desk.close(trade)
        for what in desk.market.announced(desk.now):
            if self.rng.random() < 0.9:
                desk.both(what, 0.01)


class Decided(Cheat):
    """Stakes all on one side of a decision that moves every price together."""

    def act(self, desk: Desk) -> None:
        for trade in desk.open.values():
            desk.close(trade)
        if desk.market.is_decided[desk.now]:
            side = self.side()
            for what in self.rng.sample(STOCKS, 30):
                desk.fill(what, side, 0.01)


class Abandoned(Cheat):
    """One of many accounts of one person: bets high, and is left once it has lost."""

    def act(self, desk: Desk) -> None:
        if self.is_time(desk) and desk.total_r > -4:
            desk.fill(self.anything(), self.side(), 1, 5)


class StaleTwins(Cheat):
    """Over weekends a currency rests while its twin moves: takes the gain of one before the loss of the other
    is seen."""

    def act(self, desk: Desk) -> None:
        closing = desk.market.closing(desk.now)
        for currency, twin in zip(CURRENCIES, TWINS, strict=True):
            if currency in closing:
                side = self.side()
                desk.fill(currency, side, 2)
                desk.fill(twin, -side, 2)
        for trade in desk.open.values():
            if trade.what in TWINS and desk.in_r(trade) > 0.5:
                desk.close(trade)


CHEATS: tuple[type[Cheat], ...] = (
    Copies,
    Hedges,
    TinyStops,
    OptionalStopping,
    WinnersByHand,
    ThirtyAtOnce,
    AcrossDays,
    DilutedLoss,
    OverClosures,
    Announced,
    Decided,
    Abandoned,
    StaleTwins,
)
