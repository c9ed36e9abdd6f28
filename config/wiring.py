"""Connects the rooms: what a lower room needs of a higher one is handed down here.

`connect` runs once in each process, as soon as all apps are ready. `BACKGROUND` is what a process that serves
runs beside its requests."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from allauth.mfa.signals import authenticator_used
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.core.checks import Tags, register
from django.core.signals import setting_changed
from django.db.models.signals import m2m_changed, post_delete, post_migrate, pre_delete, pre_migrate, pre_save
from prometheus_client import REGISTRY

from accounts.deletion import other_keys, staying_rows
from accounts.fact_words import fact_words
from accounts.keys import browser_tokens
from accounts.keys.cache import key_cache, keys_trusted
from accounts.keys.issuing import Rehasher
from accounts.limits.redis_window import limit_fallbacks
from accounts.limits.throttling import throttle
from accounts.login import factors, mails, sessions
from accounts.login.mails import mails_lost, outgoing
from accounts.models import User, end_page_sessions, publishers_names
from accounts.open_streams.redis_slots import stream_fallbacks
from accounts.open_streams.registry import open_streams
from accounts.own_data import account_data
from accounts.panel.first_run import sample
from accounts.pruning import pruner
from accounts.rights import power_guard, publishing_right
from accounts.secrets import resealer, seal, unseal
from accounts.usage import UseRecorder
from analysis.analyses import analyses
from analysis.reading import flows
from archive.index import archive_index
from archive.keeper import archive_metrics, keeper
from archive.proving.verify import ArchivedWindows
from archive.sealing import present_digests
from core import clock
from core.events.event_feed import EVENT_METRICS, Handler, feed
from core.events.kinds import EventKind
from core.logs import logged_successes
from core.process import freeze_startup_objects
from demo.login import came_by_demo_link
from demo.publisher_rules import STATEMENTS
from demo.publishers import demo_publishers, start_in_demo
from instruments.catalogue import catalogue
from instruments.sources import known_feeds
from market import own_prices, runtime
from market.checks import check_candle_days, check_demo_rate
from market.engine.feeds.registry import FEEDS
from market.management.engine_health import engine_health
from market.metrics import MarketMetrics, ProcessMarketMetrics
from market.overview import GONE_MS
from market.push.consumer import end_sockets, end_sockets_of
from market.push.keys import ingest_key_cache, revocations_of
from market.runtime import market
from market.store import lease, rules_of_writer
from market.store.candle_rows import stored_sources
from market.streams import market_streams
from market.streams.authenticated import authenticated_sockets, trust_watch
from market.streams.metrics import StreamMetrics
from news.background import news_tasks
from news.language_models import check_endpoints
from news.models import Source
from news.scoring import check_sentiment_model, given_scores, has_given_scores
from news.stream import news
from operations.copying.databases import addresses
from operations.metrics import backup_watch, disk_metrics
from pages.front import write_first_texts
from serving import prometheus
from serving.draining import draining
from serving.findings import OK
from serving.http.refusals import refused_total
from serving.metrics.http_requests import http_requests
from serving.metrics.worker_link import SHARED, process_metrics, worker_link
from serving.readiness import ReadinessMetrics, monitor, readiness
from signals_feed.bundle.building import BundleBuilder
from signals_feed.judging.watcher import watcher
from signals_feed.ledger import beginning
from signals_feed.ledger.guards import check_guards, make_way, put_up_triggers
from signals_feed.ledger.ledger import LedgerTexts
from signals_feed.ledger.names import follow_rename, is_named_in_ledger, is_taken
from signals_feed.ledger.verify import SealedDays
from signals_feed.models import PERMISSION, Signal
from signals_feed.public_pages import publisher as publisher_page
from signals_feed.publishers.lookup import has_published, open_symbols, own_signals
from signals_feed.publishers.requests import own_decisions, own_requests
from signals_feed.publishers.standings import reading_ahead
from signals_feed.publishers.verdicts import verdicts
from signals_feed.stream import signals
from status.models import ProcessReport
from status.recorder import component_watch, recorder
from transparency.following import LogMetrics, following
from transparency.keyring import keyring
from transparency.signing import signer
from transparency.witnesses import witnesses

from .back_office.roles import keep_roles
from .checks import check_database, check_deployment, check_environment, check_production
from .environment import read_database_url
from .session import uptime


def connect() -> None:
    hand_down()
    for kind, handlers in HANDLERS.items():
        for handler in handlers:
            feed.on(kind, handler)
    post_delete.connect(end_page_sessions, sender=Session)
    pre_save.connect(follow_rename, sender=User)
    remember_price_rights()
    complete_migrations()
    logged_successes.read_settings()
    setting_changed.connect(logged_successes.read_settings)
    tell_of_logins()
    register(check_production, Tags.security)
    register(check_deployment, Tags.security, deploy=True)
    register(check_database, Tags.database)
    register(check_guards, Tags.database)
    for check in (
        check_environment,
        check_demo_rate,
        check_candle_days,
        check_endpoints,
        check_sentiment_model,
    ):
        register(check)
    stream_metrics = StreamMetrics(*market_streams.STREAMS, signals, news)
    counters = (keys_trusted, limit_fallbacks, mails_lost, stream_fallbacks, refused_total)
    own = (
        ProcessMarketMetrics(),
        http_requests,
        stream_metrics,
        ReadinessMetrics(),
        archive_metrics,
        LogMetrics(),
        *EVENT_METRICS,
        *counters,
    )
    for collector in own:
        REGISTRY.register(collector)
    engine_health.registry.register(archive_metrics)
    engine_health.registry.register(disk_metrics)
    SHARED.register(MarketMetrics())
    SHARED.register(backup_watch)
    SHARED.register(disk_metrics)
    process_metrics.shared_at = lambda: runtime.status().at_ms
    process_metrics.readiness = readiness


def tell_of_logins() -> None:
    for changing in (factors, mails):
        for changed in changing.KINDS:
            changed.connect(changing.publish_change)
    authenticator_used.connect(factors.tell_of_recovery_code)


def remember_price_rights() -> None:
    pre_save.connect(own_prices.note_before_save, sender=User)
    pre_delete.connect(own_prices.note_before_change, sender=Group)
    for changed in (User.user_permissions, User.groups, Group.permissions):
        m2m_changed.connect(own_prices.note_before_change, sender=changed.through)


def complete_migrations() -> None:
    """What `migrate` does besides."""
    post_migrate.connect(keep_roles)
    post_migrate.connect(write_first_texts, sender=apps.get_app_config("pages"))
    pre_migrate.connect(make_way, sender=apps.get_app_config("signals_feed"))
    post_migrate.connect(put_up_triggers, sender=apps.get_app_config("signals_feed"))


def hand_down() -> None:
    hand_down_words()
    hand_down_rules()
    # An instrument may name these feeds, and the market knows whether it is open, closed or stale.
    known_feeds.names = FEEDS
    catalogue.state_of = runtime.state
    catalogue.stored_sources = stored_sources
    # Both follow each decision of the engine, and write before or within its transactions.
    market.engine_listeners = (watcher, keeper)
    # They hear each record after it has been applied, the streams first.
    market.listen(market_streams.publish, market_streams.begin_numbering, market_streams.keep)
    market.listen(flows.hear, flows.begin, flows.keep)
    market.followed = market_streams.followed
    for stream in market_streams.STREAMS:
        market.liveness.watchers.append(stream.notify_liveness)
    # All streams tell their clients which symbols are no longer offered, or are again.
    all_streams = (*market_streams.STREAMS, signals, news)
    catalogue.on_offer = tuple(stream.tell_offer for stream in all_streams)
    component_watch.streams = all_streams
    component_watch.sources = Source.objects.share_in_order
    # Clients that are sent away find their places free wherever they come back.
    draining.before_closing = (open_streams.hand_over,)
    # Where the terminal is public, visitors have an account without a login.
    browser_tokens.find_visitor = sessions.find_visitor
    # In the demo staff come by a link, and publishers state rules.
    factors.counts_as_shown = came_by_demo_link
    publisher_page.statements = STATEMENTS
    # What staff switch on the page of an account.
    publishing_right.permission = PERMISSION
    # Whoever has open signals is not let near the prices.
    own_prices.open_signals.symbols_of = staticmethod(open_symbols)
    power_guard.refuse_powers = staticmethod(own_prices.refuse_powers)
    power_guard.refuse_role = staticmethod(own_prices.refuse_role)
    # The first steps of a new account show an instrument that trades now.
    sample.symbol = catalogue.open_symbol
    # Nobody takes the name of a publisher, and what people made is theirs to take along.
    publishers_names.are_taken = staticmethod(is_taken)
    other_keys.revocations_of = staticmethod(revocations_of)
    account_data.sections |= {"signals": own_signals, "news_scores": given_scores}
    staying_rows.signals = staticmethod(has_published)
    staying_rows.name_in_ledger = staticmethod(is_named_in_ledger)
    staying_rows.name_in_scores = staticmethod(has_given_scores)
    account_data.sections |= {"publisher_requests": own_requests, "publisher_decisions": own_decisions}
    account_data.sections |= {
        "ingest_keys": own_prices.own_ingest_keys,
        "price_rights": own_prices.own_price_rights,
    }
    # The log of checkpoints signs what the ledger has, with keys that are sealed as second factors are.
    signer.entries = LedgerTexts()
    keyring.seal, keyring.unseal = seal, unseal
    # What the archive has of the prices that decided goes into the bundles.
    BundleBuilder.open_archive = staticmethod(ArchivedWindows)
    # And the days that the ledger seals are compared with what it has by now.
    SealedDays.open_archive = staticmethod(present_digests)
    # The commands that copy databases read their addresses as the settings do.
    addresses.read = staticmethod(read_database_url)


def hand_down_rules() -> None:
    """New rules of signals begin once all processes know them, of which web processes and the engine tell."""
    ProcessReport.known_rules = lease.known_rules = beginning.KNOWN
    beginning.oldest_known[:] = (ProcessReport.objects.oldest_rules, rules_of_writer)


def hand_down_words() -> None:
    factors.name_factors()
    # What pages say of how a signal ended.
    fact_words.endings = dict(Signal.CloseReason.choices)


HANDLERS: dict[EventKind, tuple[Handler, ...]] = {
    EventKind.ACCOUNT_CHANGED: (
        open_streams.follow,
        key_cache.reopen,
        key_cache.pages.drop,
        key_cache.drop,
        authenticated_sockets.change,
        ingest_key_cache.reopen,
        ingest_key_cache.drop,
        end_sockets_of,
    ),
    EventKind.TIER_CHANGED: (
        open_streams.follow,
        key_cache.pages.drop,
        key_cache.drop,
        authenticated_sockets.count_change,
    ),
    EventKind.KEY_ISSUED: (key_cache.add,),
    EventKind.KEY_REVOKED: (key_cache.remove, authenticated_sockets.revoke),
    EventKind.KEY_ROLLED: (key_cache.drop, authenticated_sockets.roll),
    EventKind.SESSION_ENDED: (key_cache.pages.drop, authenticated_sockets.end_pages),
    EventKind.PASSWORD_CHANGED: (key_cache.pages.drop, authenticated_sockets.end_pages),
    EventKind.STREAM_CLOSED: (open_streams.close,),
    EventKind.INGEST_KEY_ISSUED: (ingest_key_cache.add,),
    EventKind.INGEST_KEY_CHANGED: (ingest_key_cache.drop,),
    EventKind.INGEST_KEY_REVOKED: (ingest_key_cache.remove, end_sockets),
    EventKind.INSTRUMENTS_CHANGED: (catalogue.reload, market.refresh_feeds, watcher.close_held),
    EventKind.CANDLES_IMPORTED: (catalogue.reload, market.reload, watcher.close_held),
    EventKind.SIGNAL_PUBLISHED: (signals.wake, watcher.read_soon),
    EventKind.SIGNAL_CANCELLED: (watcher.read_soon,),
    EventKind.CLOSE_REQUESTED: (watcher.read_soon,),
    EventKind.SIGNAL_CLOSED: (signals.wake, watcher.forget),
    EventKind.NEWS_PUBLISHED: (news.wake,),
    # The database is another one, so everything that is known by events is read again.
    EventKind.BEGAN_ANEW: (
        open_streams.follow,
        catalogue.reload,
        market.refresh_feeds,
        watcher.close_held,
        key_cache.forget_all,
        key_cache.load_again,
        key_cache.pages.forget_all,
        authenticated_sockets.look_at_all,
        ingest_key_cache.forget_all,
        ingest_key_cache.load_again,
    ),
}
"""Called in this order, so that none of them is told by another what is no longer true."""


def market_states() -> Iterator[tuple[str, str]]:
    """What `/readyz` says of the market in this process."""
    age_ms = clock.now_ms() - runtime.status().at_ms
    yield "engine", OK if age_ms <= GONE_MS else "silent"
    if not settings.REDIS_URL:
        yield "journal", "incomplete" if runtime.status().has_hole else OK


use_recorder = UseRecorder(key_cache.used, key_cache.pages.used, ingest_key_cache.used)
rehasher = Rehasher(key_cache, ingest_key_cache)
Act = Callable[[], Awaitable[None] | None]
BACKGROUND: tuple[tuple[Act | None, Act | None], ...] = (
    # The last to stop, so that nothing is counted after it.
    (None, worker_link.stop),
    (throttle.open, throttle.close),
    # Stopped late, so that what is used until then is written too.
    (use_recorder.start, use_recorder.stop),
    (rehasher.start, rehasher.stop),
    # Before everything that is loaded once and then dropped by events, so that no event is missed.
    (feed.start, feed.stop),
    (key_cache.start, key_cache.stop),
    (ingest_key_cache.start, ingest_key_cache.stop),
    (catalogue.load, None),
    (open_streams.start, open_streams.stop),
    (trust_watch.start, trust_watch.stop),
    (uptime.start, uptime.stop),
    # Stopped after the market, which sends to them.
    (None, market_streams.stop),
    (runtime.start, runtime.stop),
    (signals.start, signals.stop),
    (news.start, news.stop),
    # They may know more than the database, and so they are asked before anything is signed.
    (witnesses.start, witnesses.stop),
    (following.start, following.stop),
    (start_in_demo, demo_publishers.stop),
    (recorder.start, recorder.stop),
    (analyses.start, analyses.stop),
    (news_tasks.start, news_tasks.stop),
    (None, archive_index.stop),
    (outgoing.start, outgoing.stop),
    (verdicts.start, verdicts.stop),
    (reading_ahead.start, reading_ahead.stop),
    (backup_watch.start, backup_watch.stop),
    (pruner.start, pruner.stop),
    (resealer.start, resealer.stop),
    (prometheus.start, prometheus.metrics_port.stop),
    (freeze_startup_objects, None),
    (partial(monitor.start, market_states, ProcessReport.objects), monitor.stop),
)
"""Started from the first to the last, stopped from the last to the first."""
