from __future__ import annotations

from analysis.analysts import identifiers_of_healthy


class Model:
    def __init__(self, identifier: str, healthy: bool) -> None:
        self.identifier, self.healthy = identifier, healthy

    def is_healthy(self) -> bool:
        return self.healthy


def test_models_are_those_that_are_healthy_now() -> None:
    ailing = Model("ailing-1", healthy=False)
    models = [Model("lexicon-1", healthy=True), ailing]
    before = identifiers_of_healthy(models)
    ailing.healthy = True

    assert before == ["lexicon-1"]
    assert identifiers_of_healthy(models) == ["lexicon-1", "ailing-1"]


def test_model_of_two_kinds_is_listed_once() -> None:
    assert identifiers_of_healthy([Model("both-1", healthy=True)] * 2) == ["both-1"]


def test_without_models_the_list_is_empty() -> None:
    assert identifiers_of_healthy([]) == []
