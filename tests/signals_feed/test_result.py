"""What a closed signal earned, against tables and against exact fractions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from signals_feed.rules import exit_price, paid_entry, result

PIP = Decimal("0.0001")
prices = st.integers(1, 10**9).map(lambda points: Decimal(points).scaleb(-5))
pips = st.sampled_from([Decimal(pip) for pip in ("0.0001", "0.01", "0.1", "1", "0.00001", "0.25")])
directions = st.sampled_from(["buy", "sell"])


def pnl(direction: str, entry: str, close: str, pip: Decimal = PIP) -> Decimal:
    stop = Decimal(entry) * (Decimal("0.5") if direction == "buy" else 2)
    return result(direction, Decimal(entry), stop, Decimal(entry), Decimal(close), pip).pnl


@pytest.mark.parametrize(
    ("direction", "entry", "close", "expected"),
    [
        ("buy", "1.08420", "1.09000", "58.0"),
        ("buy", "1.08420", "1.08100", "-32.0"),
        ("sell", "1.08420", "1.08100", "32.0"),
        ("sell", "1.08420", "1.09000", "-58.0"),
        ("buy", "1.08420", "1.08420", "0.0"),
        # Half of a tenth of a pip goes away from nought, whichever side it is on.
        ("buy", "1.084200", "1.084205", "0.1"),
        ("buy", "1.084205", "1.084200", "-0.1"),
        ("sell", "1.084205", "1.084200", "0.1"),
        ("buy", "1.084200", "1.084215", "0.2"),
        ("buy", "1.084215", "1.084200", "-0.2"),
        ("buy", "1.084200", "1.084225", "0.3"),
        ("sell", "1.084200", "1.084225", "-0.3"),
        ("buy", "1.084200", "1.084204", "0.0"),
        ("buy", "1.0842000", "1.0842049", "0.0"),
        ("buy", "1.0842049", "1.0842000", "0.0"),
    ],
)
def test_pips_have_one_decimal_half_away_from_nought(
    direction: str, entry: str, close: str, expected: str
) -> None:
    assert str(pnl(direction, entry, close)) == expected


@pytest.mark.parametrize(
    ("pip", "entry", "close", "expected"),
    [
        ("0.01", "155.123", "155.456", "33.3"),
        ("1", "92000", "91999.5", "-0.5"),
        ("0.1", "4200", "4201.11", "11.1"),
    ],
)
def test_pips_are_those_of_the_instrument(pip: str, entry: str, close: str, expected: str) -> None:
    assert pnl("buy", entry, close, Decimal(pip)) == Decimal(expected)


@pytest.mark.parametrize(
    ("direction", "stop", "close", "percent", "r"),
    [
        ("buy", "98", "101", "1.0000", "0.5000"),
        ("buy", "98", "98", "-2.0000", "-1.0000"),
        ("sell", "102", "98", "2.0000", "1.0000"),
        ("sell", "103", "101", "-1.0000", "-0.3333"),
    ],
)
def test_percent_of_the_price_paid_and_multiple_of_the_risk(
    direction: str, stop: str, close: str, percent: str, r: str
) -> None:
    outcome = result(direction, Decimal(100), Decimal(stop), Decimal(100), Decimal(close), PIP)

    assert (str(outcome.pnl_percent), str(outcome.pnl_r)) == (percent, r)


def test_percent_and_risk_are_of_the_worse_price_that_was_paid() -> None:
    outcome = result("buy", Decimal(100), Decimal(98), Decimal(102), Decimal(104), Decimal(1))

    assert outcome == (Decimal(2), Decimal("1.9608"), Decimal("0.5"))


@pytest.mark.parametrize(
    ("direction", "entry", "tradable", "paid"),
    [("buy", 5, 6, 6), ("buy", 6, 5, 6), ("sell", 5, 6, 5), ("sell", 6, 5, 5), ("buy", 5, 5, 5)],
)
def test_result_runs_from_the_worse_of_entry_and_market(
    direction: str, entry: int, tradable: int, paid: int
) -> None:
    assert paid_entry(direction, Decimal(entry), Decimal(tradable)) == paid


@pytest.mark.parametrize(("direction", "price"), [("buy", "1.0841"), ("sell", "1.0843")])
def test_buy_gets_out_on_the_bid_and_sell_on_the_ask(direction: str, price: str) -> None:
    assert exit_price(direction, Decimal("1.0841"), Decimal("1.0843")) == Decimal(price)


def half_away(value: Fraction, decimals: int) -> Fraction:
    scaled = abs(value) * 10**decimals
    return Fraction(floor(scaled + Fraction(1, 2)), 10**decimals) * (1 if value >= 0 else -1)


@settings(max_examples=300)
@given(directions, prices, prices, prices, prices, pips)
def test_results_are_the_exact_fractions_rounded_once(
    direction: str, entry: Decimal, stop: Decimal, tradable: Decimal, close: Decimal, pip: Decimal
) -> None:
    assume(stop < entry if direction == "buy" else stop > entry)
    paid = Fraction(max(entry, tradable) if direction == "buy" else min(entry, tradable))
    gained = (Fraction(close) - paid) * (1 if direction == "buy" else -1)

    outcome = result(direction, entry, stop, tradable, close, pip)

    assert Fraction(outcome.pnl) == half_away(gained / Fraction(pip), 1)
    assert Fraction(outcome.pnl_percent) == half_away(gained / paid * 100, 4)
    assert Fraction(outcome.pnl_r) == half_away(gained / abs(paid - Fraction(stop)), 4)


@given(prices, prices, pips)
def test_buy_and_sell_of_the_same_move_are_opposite(entry: Decimal, close: Decimal, pip: Decimal) -> None:
    assert pnl("buy", str(entry), str(close), pip) == -pnl("sell", str(entry), str(close), pip)


@given(directions, prices, prices, prices)
def test_what_the_market_offered_never_improves_a_result(
    direction: str, entry: Decimal, tradable: Decimal, close: Decimal
) -> None:
    stop = entry / 2 if direction == "buy" else entry * 2
    as_named = result(direction, entry, stop, entry, close, PIP)

    assert result(direction, entry, stop, tradable, close, PIP).pnl <= as_named.pnl


@given(directions, prices, st.integers(-4, 4))
def test_nought_has_no_sign(direction: str, entry: Decimal, points: int) -> None:
    close = entry + Decimal(points).scaleb(-6)
    stop = entry / 2 if direction == "buy" else entry * 2

    assert not result(direction, entry, stop, entry, close, PIP).pnl.is_signed()
