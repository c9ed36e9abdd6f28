"""Titles and summaries of strangers, and the feeds that they come in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news.ingest.parsing import (
    LONGEST_TITLE,
    MAX_ENTRIES,
    FeedEntry,
    NoFeed,
    clean,
    read_feed,
    read_time,
    shorten,
)
from news.ingest.polling import pause
from news.ingest.stories import (
    NAMES,
    TOLD_ANEW_AFTER,
    SeenTitles,
    find_subjects,
    normalised,
    published_at,
    title_key,
    words_of,
)

from .feed_server import item, rss


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Gold steadies", "Gold steadies"),
        ("  Gold\n\tsteadies ", "Gold steadies"),
        ("<b>Gold</b> <i>steadies</i>", "Gold steadies"),
        ("Gold<script>alert(1)</script> steadies", "Gold steadies"),
        ("Gold<style>*{}</style> steadies", "Gold steadies"),
        ('<img src=x onerror="alert(1)">Gold', "Gold"),
        ("Gold <!-- a comment --> steadies", "Gold steadies"),
        ("AT&amp;T rises", "AT&T rises"),
        ("AT&T rises", "AT&T rises"),
        ("Tom &amp;amp; Jerry", "Tom &amp; Jerry"),
        ("&lt;b&gt; is no tag here", "<b> is no tag here"),
        ("Rates < 5 % and > 3 %", "Rates < 5 % and > 3 %"),
        ("Euro at &euro;1.08 &#8211; caf&eacute;", "Euro at €1.08 – café"),
        ("Gold\x00 steadies\x07", "Gold steadies"),
        ("Gold \u202esedaets\u202c", "Gold sedaets"),
        ("Gold\u200b\ufeff\u2066 steadies\u00ad", "Gold steadies"),
        ("Gold\u2028steadies", "Gold steadies"),
        ("Cafe\u0301", "Café"),
        ("Go\ud800ld", "Gold"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("G" + "\u0301" * 50 + "old", "Ǵ" + "\u0301" * 4 + "old"),
        ("", ""),
        ("<p></p>", ""),
    ],
)
def test_only_text_is_left(text: str, plain: str) -> None:
    assert clean(text, LONGEST_TITLE) == plain


def test_what_does_not_fit_is_cut_between_words() -> None:
    assert shorten("Gold steadies as yields ease", 16) == "Gold steadies…"
    assert shorten("Gold steadies", 13) == "Gold steadies"
    assert shorten("x" * 50, 10) == "x" * 9 + "…"


@given(st.text(max_size=500))
def test_whatever_comes_becomes_one_short_line_without_hidden_letters(text: str) -> None:
    plain = clean(text, LONGEST_TITLE)
    assert len(plain) <= LONGEST_TITLE
    assert plain == " ".join(plain.split())
    assert not any(letter in plain for letter in "\x00\u202e\u2066\u200b\ufeff\n\r\t")


@pytest.mark.parametrize("text", ["<", "&", "<a ", "&lt;", "a\u0301", "<b>"])
def test_what_is_far_too_long_is_not_even_read(text: str) -> None:
    assert len(clean(text * 1_000_000, LONGEST_TITLE)) <= LONGEST_TITLE


ADDRESS = "https://wire.example/rss/all.xml"
DATE = "Wed, 18 Nov 2026 12:00:00 GMT"
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry>
<id>tag:wire.example,2026:7</id><title type="html">Gold &lt;b&gt;steadies&lt;/b&gt;</title>
<link href="/gold"/><updated>2026-11-18T13:00:00+01:00</updated><summary>It does.</summary></entry></feed>"""
RDF = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY % HTMLlat1 PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" "http://10.0.0.1/x.ent">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><item rdf:about="https://wire.example/gold">
<title>Gold steadies</title><link>https://wire.example/gold</link><dc:date>2026-11-18T12:00:00Z</dc:date>
<description>It does.</description></item></rdf:RDF>"""


def read(body: bytes, content_type: str = "application/xml") -> list[FeedEntry]:
    return read_feed(body, content_type, ADDRESS).entries


def refusal(body: bytes) -> str:
    with pytest.raises(NoFeed) as caught:
        read_feed(body, "application/xml", ADDRESS)
    return str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        rss(item("Gold steadies", "7", "/gold", DATE, "It does.")),
        ATOM.encode(),
        RDF.encode(),
        ATOM.replace("?>", " encoding='utf-16'?>", 1).encode("utf-16"),
    ],
    ids=["RSS", "Atom", "RDF", "UTF-16"],
)
def test_every_kind_of_feed_reads_alike(body: bytes) -> None:
    (entry,) = read(body)
    assert (entry.title, entry.summary, entry.published_at) == ("Gold steadies", "It does.", NOON)
    assert entry.address == "https://wire.example/gold"


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        (item("One", "7", "/a"), item("Two", "7", "/b"), True),
        (item("One", "", "/a"), item("Two", "", "/a"), True),
        (item("One"), item("Two"), False),
    ],
)
def test_entries_are_told_apart_by_guid_else_by_address_else_by_title(
    one: str, other: str, are_one: bool
) -> None:
    keys = [read(rss(each))[0].guid_key for each in (one, other)]
    assert (keys[0] == keys[1]) is are_one


def test_titles_are_plain_text_links_run_nothing_and_what_has_no_title_is_counted() -> None:
    hostile = "&lt;script&gt;alert(1)&lt;/script&gt;Gold &lt;b onclick=x&gt;up&lt;/b&gt; at AT&amp;amp;T"
    body = rss(item(hostile, link="javascript:alert(1)"), item("&lt;img&gt;"), "<item/>")
    feed = read_feed(body, "", ADDRESS)
    assert [(entry.title, entry.address) for entry in feed.entries] == [("Gold up at AT&T", "")]
    assert feed.untitled == 2
    assert read(rss()) == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("Café".encode("cp1252"), "application/xml; charset=windows-1252"),
        # They say one thing and are another, as feeds do.
        ("Café".encode("cp1252"), "application/xml; charset=utf-8"),
        ("Café".encode(), "text/html; charset=us-ascii"),
        ("Café".encode(), "application/xml; charset=no-such-thing"),
        ("Café".encode(), ""),
    ],
)
def test_a_wrong_encoding_is_seen_through(body: bytes, content_type: str) -> None:
    assert [entry.title for entry in read(rss(item("~")).replace(b"~", body), content_type)] == ["Café"]


@pytest.mark.parametrize(
    "body", [b"Go\x00ld", b"Go\xff\xfeld", b"Gold &nosuch; up", b"Gold <b up", b"Gold ]]> up"]
)
def test_broken_text_breaks_nothing(body: bytes) -> None:
    feed = read_feed(rss(item("~"), item("Silver")).replace(b"~", body), "application/xml", ADDRESS)
    assert "Silver" in str(feed.entries) or len(feed.entries) == 1
    assert "\x00" not in str(feed.entries)


@pytest.mark.parametrize(
    "date", ["", "nonsense", "Fri, 31 Dec 99999 00:00:00 GMT", "Sat, 01 Jan 0000 00:00:00 GMT"]
)
def test_a_date_that_is_none_is_none(date: str) -> None:
    assert [entry.published_at for entry in read(rss(item("Gold", date=date)))] == [None]


def test_only_the_newest_entries_are_taken() -> None:
    dates = [f"{day:02} Nov 2026 {hour:02}:00:00 GMT" for day in range(1, 19) for hour in range(24)]
    feed = read_feed(rss(*(item(f"Gold {date}", date=date) for date in dates)), "", ADDRESS)
    assert (len(feed.entries), feed.left_out) == (MAX_ENTRIES, len(dates) - MAX_ENTRIES)
    assert feed.entries[0].title == "Gold 18 Nov 2026 23:00:00 GMT"


def laughs(depth: int = 9) -> bytes:
    declared = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, depth + 1))
    return f'<!DOCTYPE x [<!ENTITY l0 "lol">{declared}]><rss><item><title>&l{depth};</title>'.encode()


@pytest.mark.parametrize(
    "body",
    [
        laughs(),
        laughs().replace(b"<!ENTITY", b"<!EnTiTy"),
        laughs().decode().encode("utf-16"),
        laughs().decode().encode("utf-32-be"),
        b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 50_000 + b'">]><rss><channel><item><title>' + b"&a;" * 20_000,
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><rss><channel><item><title>&f;</title>',
    ],
    ids=["billion laughs", "in other letters", "UTF-16", "UTF-32", "one word 20,000 times", "a file"],
)
def test_entities_of_its_own_are_refused(body: bytes) -> None:
    assert refusal(body) == "it declares entities of its own, which no feed needs"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b"<!doctype html><html><body>Sign in</body></html>", "the answer is a web page, not a feed"),
        (b'{"items": []}', "the answer is neither RSS nor Atom"),
        (b"\x89PNG\r\n", "the answer is neither RSS nor Atom"),
        pytest.param(b"<rss>" + b"<a>" * 300_000, "it has more than 100,000 tags", id="nested for ever"),
    ],
)
def test_what_is_no_feed_is_named(body: bytes, reason: str) -> None:
    assert refusal(body) == reason


def test_the_name_of_a_file_is_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "feed.xml"
    secret.write_bytes(rss(item("Secret")))
    assert refusal(str(secret).encode()) == "the answer is neither RSS nor Atom"


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        (NOON - timedelta(hours=3, milliseconds=250), NOON - timedelta(hours=3, milliseconds=250)),
        (None, NOON),
        *((NOON + ahead, NOON) for ahead in (timedelta(seconds=1), timedelta(days=365_000))),
        (NOON - timedelta(days=7), NOON - timedelta(days=7)),
        (NOON - timedelta(days=7, milliseconds=1), None),
        (datetime.fromtimestamp(0, UTC), None),
    ],
)
def test_a_story_is_of_its_date_or_of_now_and_no_news_if_it_is_old(
    told: datetime | None, taken: datetime | None
) -> None:
    assert published_at(told, NOON) == taken


@pytest.mark.parametrize("fields", [(99999, 1, 1), (10_000, 1, 1), (0, 1, 1), (2026, 13, 1), (2026, 11, 99)])
def test_a_date_that_cannot_be_is_none_or_some_day(fields: tuple[int, int, int]) -> None:
    at = read_time((*fields, 0, 0, 0, 0, 1, 0))
    assert at is None or published_at(at, NOON) in (NOON, None)


@pytest.mark.parametrize(
    ("interval_s", "failures", "retry_after_s", "minutes"),
    [
        *((300, failures, 0, minutes) for failures, minutes in ((0, 5), (1, 10), (2, 20), (3, 40))),
        *((300, failures, 0, minutes) for failures, minutes in ((8, 1280), (9, 1440), (1_000_000, 1440))),
        (86_400, 5, 0, 1440),
        # What the server asks for is granted up to a day.
        *((300, 1, asked_s, minutes) for asked_s, minutes in ((7200, 120), (60, 10), (10**9, 1440))),
    ],
)
def test_each_failure_doubles_the_pause_up_to_a_day(
    interval_s: int, failures: int, retry_after_s: int, minutes: int
) -> None:
    assert pause(interval_s, failures, retry_after_s) == timedelta(minutes=minutes)


TITLE = "Gold steadies near record high as traders await US inflation data"


def near(one: str, other: str) -> bool:
    return normalised(words_of(one)) == normalised(words_of(other))


@pytest.mark.parametrize(
    "other",
    [
        TITLE,
        TITLE.upper(),
        f"{TITLE}!",
        f"{TITLE} - Reuters",
        f"{TITLE} | Kitco News",
        f"{TITLE} — The Example Wire",
        f"{TITLE} - reuters.com",
        "Gold steadies near a record high as traders await the U.S. inflation data",
        "Gold steadies near record high, as traders await US-inflation data",
    ],
)
def test_the_same_story_however_it_is_set(other: str) -> None:
    assert near(TITLE, other)
    assert near(other, TITLE)


@pytest.mark.parametrize(
    "titles",
    [
        "Gold steadies near record {high|low} as traders await US inflation data",
        "Gold steadies near record high as traders await US {inflation data|jobs report}",
        "{Gold steadies near record high as traders await US inflation data|Silver falls}",
        "Gold {rises|falls} as dollar {falls|rises} on weak US data",
        "Gold rises {1|2}% on weak US data from Friday night",
        "Fed cuts rates by {25|50} basis points in December",
        "Fed does {|not }cut its main rate today as was expected",
        "Week ahead in markets: what to watch {Monday|Friday}",
        "Euro climbs{ to a three-week high|}",
        "SEC {approves|rejects} spot ether ETF applications from BlackRock, Fidelity and VanEck",
        "{German|French} manufacturing PMI rises above forecasts in November flash reading",
        "Bank of Japan governor says weaker yen is {good|bad} for exporters",
        "China {|non-}manufacturing PMI rises above forecasts in November flash reading",
        # The same words, and the opposite.
        "{Dollar|Yen} gains on {yen|dollar} after US inflation data beat forecasts from all major banks",
        "Bitcoin falls {to|by} 5,000 dollars in a week",
        "Asian stocks end the week mixed - Tokyo {up|down}",
        "Asian Stocks End the Week Mixed - Tokyo {Up|Down}",
        "Bitcoin {+|-}5% in a day",
        "Bitcoin {|-}5% in a day",
        "Fed sees rates at {2.5|25} in December",
    ],
)
def test_another_story_whatever_the_words_have_in_common(titles: str) -> None:
    one, other = (re.sub(r"\{(.*?)\|(.*?)\}", rf"\{number}", titles) for number in (1, 2))
    assert one != other
    assert not near(one, other)
    assert not near(other, one)


def test_who_signs_is_no_part_of_the_key_and_a_dash_within_the_story_stays() -> None:
    assert title_key("Gold steadies – Reuters") == title_key("GOLD STEADIES")
    assert title_key("Gold steadies") != title_key("Gold slips")
    assert "tokyo" in words_of("Gold steadies - as yields ease and traders in Tokyo sell")


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_is_told_anew_after_two_days(sign: int) -> None:
    known = SeenTitles()
    known.add(TITLE, NOON)
    assert known.has_near(TITLE, NOON + sign * TOLD_ANEW_AFTER)
    assert not known.has_near(TITLE, NOON + sign * (TOLD_ANEW_AFTER + timedelta(milliseconds=1)))


VOCABULARY = ("gold", "euro", "the", "US", "U.S.", "three-week", "three", "week", "2.5", "25")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=6)


@given(st.lists(WORDS, max_size=30), WORDS)
def test_what_is_known_is_what_is_near_one_of_the_titles(told: list[list[str]], title: list[str]) -> None:
    known = SeenTitles()
    for words in told:
        known.add(" ".join(words), NOON)
    wanted = any(near(" ".join(title), " ".join(words)) for words in told)
    assert known.has_near(" ".join(title), NOON) == (wanted and any(word != "the" for word in title))


# The subjects of titles.
KNOWN = frozenset(
    (
        *("EURUSD", "GBPUSD", "USDJPY", "USDCHF", "AUDUSD", "NZDUSD", "USDCAD", "EURGBP", "EURJPY"),
        *("XAUUSD", "XAGUSD", "BTCUSD", "ETHUSD", "SOLUSD", "WTI", "US500", "US100", "US30", "GER40"),
        *("UK100", "AAPL", "MSFT", "NVDA", "TSLA"),
    )
)


@pytest.mark.parametrize(
    ("title", "category", "symbols"),
    [
        ("EUR/USD slides below 1.08", "forex", "EURUSD"),
        ("EUR-JPY breaks out", "forex", "EURJPY"),
        ("XAU/USD price forecast: bulls eye $2,700", "gold", "XAUUSD"),
        ("BTC/USDT volumes soar", "crypto", "BTCUSD"),
        ("Euro firms as factory orders rebound", "forex", "EURUSD"),
        ("Sterling slides after services growth stalls", "forex", "GBPUSD"),
        ("Yen little changed ahead of Bank of Japan minutes", "forex", "USDJPY"),
        ("Australian dollar eases after iron ore drops", "forex", "AUDUSD"),
        ("Canadian dollar firms with oil", "forex", "USDCAD WTI"),
        ("Dollar slips as yields ease", "forex", ""),
        ("Rupee hits record low", "forex", ""),
        ("Gold steadies as Fed rate cut bets fade", "gold", "XAUUSD"),
        ("Silver outpaces gold on solar demand", "gold", "XAGUSD XAUUSD"),
        ("Precious metals: outlook for the week", "gold", ""),
        ("Bitcoin falls below $60,000 as yields rise", "crypto", "BTCUSD"),
        ("Bitcoin’s rally lifts ether", "crypto", "BTCUSD ETHUSD"),
        ("Regulator opens consultation on stablecoins", "crypto", ""),
        ("Fed holds rates; gold slips", "macro", "XAUUSD"),
        ("Euro zone inflation cools", "macro", ""),
        ("ECB's Lagarde plays down euro strength", "macro", "EURUSD"),
        ("Jobless claims jump to two-year high", "macro", ""),
        ("Oil inventories swell as refinery runs slow", "macro", "WTI"),
        ("S&P 500 and Nasdaq close at record highs", "macro", "US500 US100"),
        ("Apple's profit beats estimates", "macro", "AAPL"),
        ("Nvidia shares lift Wall Street", "macro", "NVDA US500"),
    ],
)
def test_a_title_tells_its_category_and_symbols(title: str, category: str, symbols: str) -> None:
    assert find_subjects(title, KNOWN) == (category, tuple(symbols.split()))


@pytest.mark.parametrize(
    "title",
    [
        *("Swimmer wins gold in Paris", "Two gold medals for Kenya", "The silver lining of a long winter"),
        *("Goldman raises its target", "Euro 2028: the draw", "Olive oil prices soar in Spain"),
        *("A pound cake to remember", "The Big Apple marathon", "Dollar General opens stores"),
        *("Commuters fed up with delays", "Mayor opens bridge", "", "!!!", "日本語の見出し"),
        *("USDUSD", "FOR/YOU: what to read", "ABCDEF"),
    ],
)
def test_other_things_of_the_same_name_are_not_meant(title: str) -> None:
    assert find_subjects(title, KNOWN) == ("", ())


def test_a_symbol_is_named_once_if_it_is_traded_here_and_six_at_most() -> None:
    title = "Gold gold silver bitcoin ether solana euro yen franc"
    assert len(find_subjects(title, KNOWN).symbols) == 6
    assert find_subjects(title, {"XAUUSD"}).symbols == ("XAUUSD",)


def test_every_name_of_the_table_is_a_phrase_that_can_be_met() -> None:
    found = {name: find_subjects(name, KNOWN | {NAMES[name].symbol}) for name in NAMES}
    assert {name for name, subjects in found.items() if subjects.category != NAMES[name].category} == set()
