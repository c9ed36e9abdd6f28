from argparse import ArgumentParser, ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from instruments.catalogue import catalogue
from signals_feed.publishing.actions import current_quote, publish
from signals_feed.rules import SignalRefused, SignalTerms
from transparency.remembered import Forked


def price(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite():
        raise ArgumentTypeError(f"{text} is not a price.")
    return found


class Command(BaseCommand):
    help = (
        "Publish a trade signal, with the checks of the publishing page. It goes out at once on every "
        "process that serves, and is filled at the next price, at least one second later. The terms are "
        "checked against the price that the engine stored last, which is a second old at most."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("publisher", help="The name of a user who may publish.")
        parser.add_argument("symbol")
        parser.add_argument("direction", choices=("buy", "sell"))
        parser.add_argument(
            "--stop", type=price, required=True, help="Below the entry of a buy, above that of a sell."
        )
        parser.add_argument(
            "--target", type=price, required=True, help="Above the entry of a buy, below that of a sell."
        )
        parser.add_argument("--entry", type=price, help="Without it: at the market.")

    def handle(self, *args: Any, **options: Any) -> None:
        publisher = User.objects.filter(username=options["publisher"]).first()
        if publisher is None:
            raise CommandError(f"There is no user {options['publisher']}.")
        catalogue.load_now()
        symbol = options["symbol"].upper()
        terms = SignalTerms(
            symbol, options["direction"], options["stop"], options["target"], options["entry"]
        )
        try:
            signal = publish(terms, publisher, current_quote(symbol))
        except (SignalRefused, Forked) as refused:
            raise CommandError(str(refused)) from None
        digits = signal.instrument.digits
        entry, stop, target = (
            f"{price:.{digits}f}" for price in (signal.entry, signal.stop_loss, signal.take_profit)
        )
        self.stdout.write(
            f"Published {signal.pk}: {signal.direction} {symbol} at {entry}, stop {stop}, target {target}."
        )
