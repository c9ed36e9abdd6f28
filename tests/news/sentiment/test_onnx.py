from __future__ import annotations

from pathlib import Path

import pytest

from news.labels import sentiment_label
from news.sentiment import SentimentFailed
from news.sentiment.onnx import OnnxModel

from .tiny_onnx import make_onnx


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
