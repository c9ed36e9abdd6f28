"""GET /api/news: what staff published, newest first, in one query, with each item encoded once."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import msgspec
from django.db.models import Aggregate, CharField, OuterRef, QuerySet, Subquery
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace
from rest_framework.request import Request

from core.contract.answers import Answer
from core.contract.errors import InvalidCursor
from core.contract.parameters import IntegerParameter, TextParameter, WordListParameter, describes
from core.contract.ranges import Cursors, Range, RangeSerializer, read_range
from core.database import CompiledQuery
from core.plain_json import encode
from core.struct_schemas import Moment, openapi
from core.threads import in_thread_promptly
from core.times import iso_time
from core.viewset import ApiViewSet

from .labels import Label, sentiment_label
from .models import NewsItem, NewsQuerySet

CURSORS = Cursors("news")
ABOUT = (
    "Newest first. The label follows from the score: bullish from 0.15 upwards, bearish from −0.15 "
    "downwards. "
    "With `start`, `end` or `cursor`, the response has `next`, the cursor of the next page, or null: "
    "together, the pages contain each item once, whatever is published in the meantime."
)
COLUMNS = ("title", "category", "sentiment_score", "published_at")
AT, PK = COLUMNS.index("published_at"), len(COLUMNS)
SYMBOLS = "symbols"
EXPANSIONS = ("id", "url", "source", "summary", "symbols", "model")


class NewsQuerySerializer(RangeSerializer):
    category = WordListParameter(
        NewsItem.Category.values, help_text="Only these categories, separated by commas; all by default."
    )
    limit = IntegerParameter(default=20, max_value=500, help_text="Maximum number of items.")
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each item, separated by commas.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` and "
        "`expand` may differ."
    )


class NewsFacts(msgspec.Struct):
    title: Annotated[str, Meta(description="The headline.")]
    category: Annotated[
        str,
        openapi(enum=NewsItem.Category.values),
        Meta(description="The kind of market it is about."),
    ]
    sentiment: Annotated[Label, Meta(description="Bullish from 0.15 upwards, bearish from −0.15 downwards.")]
    sentiment_score: Annotated[float, Meta(ge=-1, le=1, description="−1 is bearish, 1 bullish.")]
    timestamp: Annotated[Moment, Meta(description="When it was published.")]


class NewsFeedItem(NewsFacts):
    """A news item, with what `expand` asked for."""

    component: ClassVar[str] = "NewsItem"

    id: Annotated[int | UnsetType, Meta(description="Identifier of the item. Only on request.")] = UNSET
    url: Annotated[
        str | UnsetType, Meta(description="Link to the article; empty for our own items. Only on request.")
    ] = UNSET
    source: Annotated[str | UnsetType, Meta(description="Who published it. Only on request.")] = UNSET
    summary: Annotated[str | UnsetType, Meta(description="A short text. Only on request.")] = UNSET
    symbols: Annotated[
        list[str] | UnsetType, Meta(description="Instruments it is about. Only on request.")
    ] = UNSET
    model: Annotated[
        str | UnsetType, Meta(description="What scored it; `staff` after an override. Only on request.")
    ] = UNSET


class NewsList(msgspec.Struct):
    items: Annotated[list[NewsFeedItem], Meta(description="Newest first.")]
    next: Annotated[
        str | None | UnsetType,
        Meta(description="Only with `start`, `end` or `cursor`: the cursor of the next page."),
    ] = UNSET


GOLD = NewsFeedItem("Gold steadies as real yields slip", "gold", "bullish", 0.42, "2026-11-20T13:55:00.000Z")
FACTORIES = NewsFeedItem(
    "Euro-zone factory output falls more than forecast", "macro", "bearish", -0.38, "2026-11-20T10:00:00.000Z"
)
SAMPLES = {
    "Two items": NewsList([GOLD, FACTORIES]),
    "With source and symbols": NewsList([replace(GOLD, source="Tickwire desk", symbols=["XAUUSD"])]),
    "The last page of a range": NewsList([FACTORIES], None),
}


class NewsViewSet(ApiViewSet):
    @describes(
        "listNews",
        NewsList,
        "Curated news with sentiment",
        tag="News",
        examples=SAMPLES,
        details=ABOUT,
        query=[NewsQuerySerializer],
        refusals=[InvalidCursor(field="cursor")],
    )
    async def list(self, request: Request) -> Answer:
        found = self.parameters(NewsQuerySerializer)
        wanted = found["category"], found["limit"], found["expand"]
        span = read_range(found, CURSORS, sorted(found["category"]))
        if span is None:
            return Answer(await in_thread_promptly(read_feed, *wanted))
        return Answer(await in_thread_promptly(read_page, span, *wanted))


def read_feed(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> bytes:
    return b"{%s}" % encode_rows(expansions, feed_statement(categories, limit, expansions).rows())


def read_page(span: Range, categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> bytes:
    rows = compiled(span.of(NewsItem.objects.for_feed()), categories, limit + 1, expansions).rows()
    shown, following = span.page(rows, limit, AT, PK)
    return b'{%s,"next":%s}' % (encode_rows(expansions, shown), following)


def encode_rows(expansions: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> bytes:
    return b'"items":[%s]' % b",".join(encode_item(expansions, *row) for row in rows)


@lru_cache(maxsize=512)
def feed_statement(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> CompiledQuery:
    return compiled(NewsItem.objects.for_feed(), categories, limit, expansions)


def compiled(
    news: NewsQuerySet, categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]
) -> CompiledQuery:
    if SYMBOLS in expansions:
        news = news.annotate(joined=Subquery(joined_symbols()))
    names = ["joined" if name == SYMBOLS else name for name in expansions if name != "id"]
    columns = (*COLUMNS, "id", *names)
    if len(categories) in (0, len(NewsItem.Category)):
        return CompiledQuery(news.values_list(*columns)[:limit])
    return Newest([news.filter(category=name).values_list(*columns)[:limit] for name in categories], limit)


class Newest(CompiledQuery):
    """The newest rows of several queries, each of which starts with its own newest. For a category IN (…), a
    database would read the whole feed to find two rare categories."""

    def __init__(self, parts: Sequence[QuerySet[Any, Any]], limit: int) -> None:
        compiled = [part.query.sql_with_params() for part in parts]
        rows = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _ in compiled)  # noqa: S608 - Django's SQL
        order = '"published_at" DESC, "id" DESC'
        self._sql = f"SELECT * FROM ({rows}) AS feed ORDER BY {order} LIMIT {limit:d}"  # noqa: S608 - as above
        self._params = tuple(param for _, params in compiled for param in params)


def joined_symbols(item: str = "pk") -> QuerySet[Any, Any]:
    """Of the item that this column of the query names."""
    through: QuerySet[Any, Any] = NewsItem.symbols.through.objects.filter(newsitem=OuterRef(item))
    return through.order_by().values("newsitem").values_list(Joined("instrument__symbol"))


class Joined(Aggregate):
    """The values joined by commas, in no particular order."""

    function = "group_concat"
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any, **options: Any) -> Any:
        return self.as_sql(
            compiler,
            connection,
            function="string_agg",
            template="%(function)s(%(expressions)s, ',')",
            **options,
        )


@lru_cache(maxsize=4096)
def encode_item(
    expansions: tuple[str, ...],
    title: str,
    category: str,
    score: float,
    published_at: datetime,
    item_id: int,
    *expanded: Any,
) -> bytes:
    """Cached under everything that the bytes depend on."""
    values = dict(zip((name for name in expansions if name != "id"), expanded, strict=True))
    if "id" in expansions:
        values["id"] = item_id
    if SYMBOLS in values:
        # They arrive joined, in any order.
        values[SYMBOLS] = sorted(values[SYMBOLS].split(",")) if values[SYMBOLS] else []
    label, time = sentiment_label(score), iso_time(published_at)
    return encode(NewsFeedItem(title, category, label, score, time, **values))
