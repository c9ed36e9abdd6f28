"""One row of every model that has a page."""

from __future__ import annotations

from datetime import date

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import Group
from django.db.models import Model

from accounts.models import Account, AiUsage, ApiKey, Tier, TierRequest, User
from core.events.outbox import ControlEvent
from instruments.models import Instrument, TradingCalendar, WithheldSource
from market.models import Candle, IngestKey
from market.push.keys import issue_ingest_key
from news.models import NewsItem, Source
from pages.models import SiteText
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.models import Signal
from signals_feed.publishers.requests import PublisherRequest
from status.models import Incident
from tests.contract.published import make_published, quoted
from tests.factories import make_account, make_candle, make_instrument, make_key, make_news

MODELS: tuple[type[Model], ...] = (
    *(Account, AiUsage, ApiKey, ControlEvent, Tier, User, Instrument, TradingCalendar, Candle, IngestKey),
    *(
        NewsItem,
        Source,
        Signal,
        LedgerEntry,
        Group,
        EmailAddress,
        LogEntry,
        TierRequest,
        PublisherRequest,
        Incident,
        WithheldSource,
        Authenticator,
        SiteText,
    ),
)
Rows = dict[type[Model], Model]
SECOND_FACTOR = "KEEP-ME-TO-YOURSELF"


def one_of_each() -> Rows:
    account = make_account()
    make_key(account)
    AiUsage.objects.create(account=account, day=date(2026, 11, 18), used=3)
    instrument = make_instrument()
    make_candle(instrument)
    issue_ingest_key("desk", by="test")
    make_news()
    Source.objects.create(name="Example Wire", address="https://example.com/feed.xml")
    make_published(instrument, quoted("1.08400", "1.08424"))
    SiteText.objects.get_or_create(name="terms", defaults={"body": "# Terms"})
    Group.objects.create(name="newsroom")
    WithheldSource.objects.create(name="oanda", why="Its terms forbid redistribution.")
    Incident.objects.create(title="No prices of gold")
    TierRequest.objects.create(account=account, wanted=Tier.objects.get(name="pro"), why="A bot.")
    PublisherRequest.objects.create(account=account, why="Gold, by hand.")
    EmailAddress.objects.create(user=account.user, email="ada@example.com")
    LogEntry.objects.log_actions(account.user.pk, [account], ADDITION, "Made.", single_object=True)
    Authenticator.objects.create(user=account.user, type="totp", data={"secret": SECOND_FACTOR})
    first = {model: model._default_manager.order_by("pk")[0] for model in MODELS}
    # Before it there are the roles that every installation has.
    return first | {Group: Group.objects.get(name="newsroom")}
