"""What stands on a signal's page of the prices that it began and ended with."""

from __future__ import annotations

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from signals_feed.models import Evidence, Signal
from signals_feed.proof import QUOTED
from signals_feed.rules import RULES


def evidence_of(signal: Signal, kind: str) -> SafeString:
    found = next((each for each in signal.evidence.all() if each.kind == kind), None)
    return SafeString("-") if found is None else described(found, signal.instrument.digits)


def described(evidence: Evidence, digits: int) -> SafeString:
    prices = [(name, getattr(evidence, name)) for name in QUOTED]
    known = [(name.replace("_", " "), f"{price:.{digits}f}") for name, price in prices if price is not None]
    return format_html(
        "{}, {} UTC{}<br>{}<br>{}",
        evidence.get_source_display(),
        f"{evidence.at:%Y-%m-%d %H:%M:%S.%f}"[:-3],
        f", number {evidence.seq} of {evidence.epoch}" if evidence.seq else "",
        format_html_join(", ", "{} {}", known),
        RULES[evidence.rule],
    )


def links_of(signal: Signal) -> SafeString:
    scorecard = reverse("publisher", args=[signal.user.get_username()])
    ledger = f"{reverse('admin:signals_feed_ledgerentry_changelist')}?q={signal.pk}"
    return format_html(
        '<a href="{}" class="text-primary-600">Scorecard of {}</a> · '
        '<a href="{}" class="text-primary-600">Its ledger entries</a>',
        scorecard,
        signal.user,
        ledger,
    )
