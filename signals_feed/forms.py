"""What publishers type."""

from __future__ import annotations

from uuid import uuid4

from django import forms

from instruments.catalogue import catalogue
from market import services as market

from .models import Signal

PRICE = {"inputmode": "decimal", "autocomplete": "off"}


def offered() -> list[tuple[str, str]]:
    found = sorted(catalogue.active(), key=lambda facts: facts.symbol)
    return [(facts.symbol, f"{facts.symbol} – {facts.name}") for facts in found]


def price_field(help_text: str) -> forms.DecimalField:
    return forms.DecimalField(
        max_digits=18,
        decimal_places=8,
        widget=forms.TextInput(attrs=PRICE),
        help_text=help_text,
    )


def traded(wanted: str) -> str:
    """The instrument that is asked for, or the first of which something can be published now."""
    found = [facts for symbol, _ in offered() if (facts := catalogue.find(symbol)) is not None]
    if any(facts.symbol == wanted for facts in found):
        return wanted
    is_open = (facts.symbol for facts in found if market.state(facts) == "open")
    return next(is_open, found[0].symbol if found else "")


class PublishForm(forms.Form):
    symbol = forms.ChoiceField(choices=offered, label="Instrument")
    direction = forms.ChoiceField(choices=Signal.Direction.choices)
    entry = price_field("A buy may not be below the ask, a sell not above the bid, and neither 1 % away.")
    stop_loss = price_field("Below the entry of a buy, above that of a sell. From here to the entry is 1 R.")
    take_profit = price_field("On the other side.")
    # The same form sent twice is one signal.
    token = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)

    @property
    def chosen_symbol(self) -> str:
        """Whose quote stands beside the form."""
        return traded(str(self["symbol"].value()))
