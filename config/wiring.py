"""What follows each control event, in its order, and what a process that serves runs beside its requests."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from accounts.keys.cache import key_cache
from accounts.keys.issuing import Rehasher
from accounts.limits.throttling import throttle
from accounts.login.mails import outgoing
from accounts.open_streams.registry import open_streams
from accounts.pruning import pruner
from accounts.secrets import resealer
from accounts.usage import UseRecorder
from analysis.analyses import analyses
from archive.index import archive_index
from core import clock
from core.events.event_feed import Handler, feed
from core.events.kinds import EventKind
from core.process import freeze_startup_objects
from demo.publishers import demo_publishers, start_in_demo
from instruments.catalogue import catalogue
from market import runtime
from market.overview import GONE_MS
from market.push.consumer import end_sockets, end_sockets_of
from market.push.keys import ingest_key_cache
from market.runtime import bus_url, market
from market.streams import market_streams
from market.streams.authenticated import authenticated_sockets, trust_watch
from news.background import news_tasks
from news.stream import news
from operations.metrics import backup_watch
from serving import prometheus
from serving.findings import OK
from serving.metrics.worker_link import worker_link
from serving.readiness import monitor
from signals_feed.judging.watcher import watcher
from signals_feed.ledger.ledger import following
from signals_feed.publishers.standings import reading_ahead
from signals_feed.publishers.verdicts import verdicts
from signals_feed.stream import signals
from status.models import ProcessReport
from status.recorder import recorder
from transparency.witnesses import witnesses

from .service_statistics import uptime

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
"""Called in this order, so that none reloads from a cache that is itself out of date."""


def market_states() -> Iterator[tuple[str, str]]:
    """What `/readyz` says of the market in this process."""
    age_ms = clock.now_ms() - runtime.status().at_ms
    yield "engine", OK if age_ms <= GONE_MS else "silent"
    yield "ticks", "stopped" if runtime.status().ticks_fault else OK
    if not bus_url():
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
