"""What is promised of the model. SEntFiN's floor is in `evaluate --data`: the file is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from news.sentiment.linear import LinearModel, linear_model
from news.sentiment.signs import FILE as LEXICON
from tools.sentiment_training.evaluation import OWN_FLOOR, UNSEEN_FLOOR, HeldOut, by, judged_by, share_of
from tools.sentiment_training.examples import (
    OWN,
    UNSEEN,
    LabelledHeadline,
    folds,
    groups,
    read_own,
    read_sentfin,
)
from tools.sentiment_training.trainer import checksum, train


@pytest.fixture(scope="module")
def held_out() -> HeldOut:
    """Trained here and now on our headlines alone, five times, each time without a fifth."""
    return HeldOut([], read_own())


def test_headlines_are_judged_well_by_models_that_did_not_see_them(held_out: HeldOut) -> None:
    assert share_of(held_out.own()).accuracy >= OWN_FLOOR
    assert share_of(held_out.by_style_left_out()).accuracy >= UNSEEN_FLOOR


def test_shipped_model_judges_styles_well_that_it_was_never_trained_on() -> None:
    judged = judged_by(linear_model(), read_own(UNSEEN))
    assert share_of(judged).accuracy >= UNSEEN_FLOOR + 0.05
    for category in ("forex", "gold", "crypto", "macro"):
        assert by("category", judged)[category].accuracy >= UNSEEN_FLOOR


def test_shipped_model_was_trained_on_what_is_here() -> None:
    facts = linear_model().facts

    assert facts.made_of == {path.name: checksum(path) for path in (LEXICON, OWN)}
    assert facts.trained_on["own"] == len(read_own())
    assert facts.trained_on["sentfin"] > 9000


def test_headlines_are_many_each_stands_once_and_never_trained_on_means_never() -> None:
    trained = [each.title for each in read_own()]
    assert len(set(trained)) == len(trained) >= 400
    leaders = groups([*trained, *(each.title for each in read_own(UNSEEN))])
    assert set(leaders[len(trained) :]).isdisjoint(leaders[: len(trained)])


def test_same_headlines_give_the_same_bytes() -> None:
    own = read_own()[::15]

    assert train([], own).as_bytes() == train([], own).as_bytes()


def test_scorer_adds_up_what_was_trained() -> None:
    own = read_own()[::3]
    share = share_of(judged_by(LinearModel(train([], own)), own))

    assert share.accuracy > 0.95


def test_near_duplicates_are_held_out_together() -> None:
    titles = ["Acme Q2 net up 12% at Rs 10 crore", "Acme Q3 net up 19% at Rs 14 crore", "Gold hits a record"]

    assert groups(titles) == [0, 0, 2]
    assert folds(titles)[0] == folds(titles)[1]


def test_headline_with_conflicting_labels_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "S No.,Title,Decisions,Words\n"
        "1,One up,\"{'One': 'positive', \"\"O'Two\"\": 'positive'}\",2\n"
        "2,Both ways,\"{'A': 'positive', 'B': 'negative'}\",2\n"
    )

    assert read_sentfin(path) == [LabelledHeadline("One up", 1)]
