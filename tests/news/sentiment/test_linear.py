from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from news.labels import sentiment_label
from news.sentiment import SentimentFailed
from news.sentiment.linear import (
    FILE,
    LONGEST,
    BadModel,
    Odds,
    linear_model,
    plain,
    read_weights,
    score_of,
    surprise,
    words,
)
from news.sentiment.onnx import OnnxModel
from news.sentiment.signs import FILE as LEXICON
from tests.factories import make_news

from .tiny_onnx import make_onnx

CATEGORIES = ("", "forex", "gold", "crypto", "macro")
WEIRD = (
    "",
    " ",
    "?",
    "%%%",
    "0",
    "\x00\x1b[31m\x07",
    "‮gold\u200b rises‬",
    "\ud800 lone surrogate",
    "金価格が上昇",
    "الذهب يرتفع",
    "🚀" * 500,
    "gold " * 20_000,
    "g" * 1_000_000,
    "not " * 100 + "up",
    "1" * 10_000 + "% vs " + "9" * 10_000 + "% expected",
)


def label(title: str, category: str = "") -> str:
    return sentiment_label(linear_model().score(title, category))


odds = (
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    .filter(sum)
    .map(lambda three: Odds(*(each / sum(three) for each in three)))
)


@given(odds)
def test_label_of_the_score_is_the_likeliest_class(given_odds: Odds) -> None:
    named = zip(("bearish", "neutral", "bullish"), given_odds, strict=True)
    best = max(given_odds)
    assert sentiment_label(score_of(given_odds)) in [
        name for name, value in named if value > best - 1e-9
    ] or (
        # Of two that are equally likely neither is said.
        sorted(given_odds)[1] > best - 1e-9
    )


@given(odds, st.floats(0, 1))
def test_score_rises_as_bullish_takes_from_bearish(given_odds: Odds, part: float) -> None:
    moved = given_odds.bearish * part
    better = Odds(given_odds.bearish - moved, given_odds.neutral, given_odds.bullish + moved)
    assert score_of(better) >= score_of(given_odds) - 0.001


@given(odds)
def test_score_is_within_one_and_that_of_the_opposite_odds_is_the_opposite(given_odds: Odds) -> None:
    assert -1 <= score_of(given_odds) <= 1
    assert score_of(Odds(*reversed(given_odds))) == -score_of(given_odds)


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("title", WEIRD, ids=range(len(WEIRD)))
def test_any_title_has_a_score(title: str, category: str) -> None:
    assert -1 <= linear_model().score(title, category) <= 1


def test_what_comes_after_the_longest_title_is_not_read() -> None:
    title = ("Gold rises as the dollar slips " * 40)[:LONGEST]
    assert linear_model().score(title) == linear_model().score(title + " crash bankruptcy fraud")


@pytest.mark.parametrize(
    ("category", "title", "expected"),
    [
        ("macro", "Inflation rises more than expected", "bearish"),
        ("", "Profit rises more than expected", "bullish"),
        ("macro", "Unemployment falls to record low", "bullish"),
        ("macro", "Factory output falls for a third month", "bearish"),
        ("gold", "Gold slips as dollar firms", "bearish"),
        ("forex", "Dollar firms as gold slips", "bullish"),
        ("forex", "EUR/USD drops below 1.0500", "bearish"),
        ("forex", "USD/JPY climbs above 155.00", "bullish"),
        ("macro", "Fed lowers rates by 50 basis points", "bullish"),
        ("forex", "Bank of Canada cuts rates by 50 basis points", "bearish"),
        ("crypto", "Bitcoin plunges as exchange halts withdrawals", "bearish"),
        ("crypto", "Bitcoin funds record largest inflows since March", "bullish"),
        ("gold", "Gold steady ahead of U.S. payrolls", "neutral"),
        ("macro", "What to watch next week: payrolls and two central banks", "neutral"),
    ],
)
def test_sign_depends_on_what_moves_and_for_whom(category: str, title: str, expected: str) -> None:
    assert label(title, category) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("retail sales 0.7% vs 0.3% expected", "beyond"),
        ("payrolls +22,000 vs 75k forecast", "short"),
        ("pmi 51.8, above 51.2 forecast", "beyond"),
        ("output contracts 0.2% vs 0.1% expected", "short"),
        ("sentiment -12.4 vs -17.5 exp", "beyond"),
        ("net sales $1.8bn vs $900m est", "beyond"),
        ("cpi 2.9% vs 2.9% expected", "level"),
        ("core cpi rises 0.2% m/m; est. 0.3%", "short"),
        ("gold gains 2% above $4,000", ""),
        ("gold rises 2%", ""),
    ],
)
def test_figures_are_compared_with_what_was_expected(text: str, expected: str) -> None:
    assert surprise(text) == expected


def test_words_are_those_of_all_spellings() -> None:
    assert words(plain("U.S. “safe‑haven” demand: EUR/USD’s 1.05, +0.3%")) == [
        *("us", "safe", "haven", "demand", "eur/usd", "0", "0", "%")
    ]


def test_no_word_is_of_two_kinds() -> None:
    lines = [line.partition(":") for line in LEXICON.read_text().splitlines() if not line.startswith("#")]
    named = [word for _, _, part in lines for word in part.split()]
    assert sorted(named) == sorted(set(named))


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff\xfe", FILE.read_bytes()[:-1000]])
def test_damaged_file_is_told_in_one_sentence(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "damaged.model"
    path.write_bytes(damage)
    with pytest.raises(BadModel, match="is not a trained model.*Fetch it from the repository again"):
        read_weights(path)


ORDER = ("bearish", "neutral", "bullish")


@given(st.floats(-1, 1))
def test_label_of_the_opposite_score_is_the_opposite(score: float) -> None:
    assert ORDER.index(sentiment_label(score)) == 2 - ORDER.index(sentiment_label(-score))


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_higher_score_never_has_a_lower_label(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert ORDER.index(sentiment_label(low)) <= ORDER.index(sentiment_label(high))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("news_score_is_within_one", {"sentiment_score": 1.0001}),
        ("news_score_is_within_one", {"sentiment_score": -1.0001}),
        ("news_score_is_within_one", {"sentiment_score": 7.0, "status": "draft"}),
        ("news_published_is_scored", {"sentiment_score": None}),
        ("news_published_is_scored", {"model": ""}),
        ("news_has_title", {"title": ""}),
        ("news_", {"sentiment_score": float("nan")}),
    ],
)
def test_bad_item_is_refused_by_the_database(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make_news(**bad)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "rejected"])
def test_item_that_is_not_in_the_feed_needs_no_score(status: str) -> None:
    assert make_news(status=status, sentiment_score=None, model="").sentiment == ""


# A model in the form of ONNX.
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_onnx(tmp_path / "tiny")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Gold again", "bullish"),
        ("War again", "bearish"),
        ("Nothing", "neutral"),
        ("Gold " * 5000, "bullish"),
    ],
)
async def test_titles_are_scored_as_the_model_says(folder: Path, title: str, expected: str) -> None:
    model = OnnxModel(folder)
    assert not model.is_healthy()
    await model.check()
    assert model.is_healthy()
    score = model.score(title)
    assert (sentiment_label(score.score), score.model, len(score.version)) == (expected, "onnx-tiny", 12)


def test_order_of_the_labels_is_the_config_s(tmp_path: Path) -> None:
    model = OnnxModel(make_onnx(tmp_path, labels=("Negative", "Positive", "Neutral")))
    assert sentiment_label(model.score("Gold").score) == "bearish"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        *((name, None, f"has no {name}") for name in ("model.onnx", "tokenizer.json", "config.json")),
        ("model.onnx", b"rubbish", "does not work"),
        ("tokenizer.json", b"{}", "does not work"),
        ("config.json", b"[]", "no id2label that can be read"),
        ("config.json", b'{"id2label": {"0": "LABEL_0"}}', "should name positive, negative"),
    ],
)
async def test_broken_file_is_told_in_one_sentence_until_it_is_mended(
    folder: Path, name: str, content: bytes | None, sentence: str
) -> None:
    whole = (folder / name).read_bytes()
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    model = OnnxModel(folder)
    with pytest.raises(SentimentFailed, match=sentence):
        await model.check()
    assert not model.is_healthy()
    (folder / name).write_bytes(whole)
    await model.check()
    assert model.is_healthy()


async def test_answer_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    model = OnnxModel(make_onnx(tmp_path, strength=float("nan")))
    with pytest.raises(SentimentFailed, match="not a number"):
        await model.check()
