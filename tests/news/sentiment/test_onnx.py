from __future__ import annotations

import json
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
def test_titles_are_scored_as_the_model_says(folder: Path, title: str, expected: str) -> None:
    assert sentiment_label(OnnxModel(folder).score(title).score) == expected


def test_order_of_the_labels_is_the_config_s(tmp_path: Path) -> None:
    model = OnnxModel(make_onnx(tmp_path, labels=("Negative", "Positive", "Neutral")))

    assert sentiment_label(model.score("Gold").score) == "bearish"


def test_score_names_the_directory_and_the_very_file(folder: Path) -> None:
    score = OnnxModel(folder).score("Gold")

    assert score.model == "onnx-tiny"
    assert len(score.version) == 12


async def test_model_is_healthy_once_it_scored(folder: Path) -> None:
    model = OnnxModel(folder)
    before = model.is_healthy()
    await model.check()

    assert (before, model.is_healthy()) == (False, True)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
async def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    model = OnnxModel(folder)

    with pytest.raises(SentimentFailed, match=f"has no {name}"):
        await model.check()
    assert not model.is_healthy()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("model.onnx", b"rubbish", "does not work"),
        ("tokenizer.json", b"{}", "does not work"),
        ("config.json", b"[]", "no id2label that can be read"),
        (
            "config.json",
            json.dumps({"id2label": {"0": "LABEL_0"}}).encode(),
            "should name positive, negative",
        ),
    ],
)
async def test_broken_file_is_told_in_one_sentence(
    folder: Path, name: str, content: bytes, sentence: str
) -> None:
    (folder / name).write_bytes(content)

    with pytest.raises(SentimentFailed, match=sentence):
        await OnnxModel(folder).check()


async def test_answer_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    model = OnnxModel(make_onnx(tmp_path, strength=float("nan")))

    with pytest.raises(SentimentFailed, match="not a number"):
        await model.check()


async def test_model_that_is_mended_is_healthy_at_the_next_check(folder: Path) -> None:
    whole = (folder / "config.json").read_bytes()
    (folder / "config.json").write_bytes(b"{")
    model = OnnxModel(folder)
    with pytest.raises(SentimentFailed):
        await model.check()
    (folder / "config.json").write_bytes(whole)
    await model.check()

    assert model.is_healthy()
