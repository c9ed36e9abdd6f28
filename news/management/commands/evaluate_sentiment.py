from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from news.sentiment.linear import linear_model
from news.sentiment.training.examples import UNSEEN, BadData, read_own, read_sentfin

if TYPE_CHECKING:
    from news.sentiment.training.evaluation import Share


class Command(BaseCommand):
    help = (
        "Judge the built-in sentiment model on headlines that it was not trained on. Ends with 1 where it is "
        "below a floor."
    )

    # Headlines need no database, and training none of the rest of the service.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, help="SEntFiN.csv; without it only ours are judged.")
        parser.add_argument("--plot", type=Path, help="Write the calibration of held-out odds as SVG.")

    def handle(self, *, data: Path | None, plot: Path | None, **options: Any) -> None:
        try:
            from news.sentiment.training import evaluation
        except ImportError:
            raise CommandError("Evaluation needs scikit-learn: install requirements-dev.lock.") from None
        try:
            others = [] if data is None else read_sentfin(data)
        except BadData as error:
            raise CommandError(str(error)) from None
        self.below: list[str] = []
        held_out = evaluation.HeldOut(others, read_own())
        share_of, by = evaluation.share_of, evaluation.by
        if others:
            judged = held_out.sentfin()
            self.tell("SEntFiN, cross-validated", share_of(judged), evaluation.SENTFIN_FLOOR)
            self.tell_parts(by("label", judged))
            self.tell("SEntFiN by a model of ours alone", share_of(held_out.sentfin_by_own()))
            self.tell("Ours by a model of SEntFiN alone", share_of(held_out.own_by_sentfin()))
        own = held_out.own()
        self.tell("Ours, cross-validated", share_of(own), evaluation.OWN_FLOOR)
        self.tell_parts(by("category", own))
        self.tell("Ours without their category", share_of(held_out.own_without_category()))
        left_out = held_out.by_style_left_out()
        self.tell(
            "Ours, each style by a model that saw none of it", share_of(left_out), evaluation.UNSEEN_FLOOR
        )
        self.tell_parts(by("style", left_out))
        unseen = evaluation.judged_by(linear_model(), read_own(UNSEEN))
        self.tell("Never trained on, by the shipped model", share_of(unseen), evaluation.UNSEEN_FLOOR)
        self.tell_parts(by("style", unseen))
        if plot is not None:
            from news.sentiment.training.plot import reliability

            plot.write_text(reliability(held_out.sentfin() + own), encoding="utf-8")
        if self.below:
            raise CommandError(f"Below the floor: {', '.join(self.below)}.")

    def tell(self, what: str, share: Share, floor: float | None = None) -> None:
        needed = "" if floor is None else f" (at least {floor})"
        self.stdout.write(f"{what}: {share}{needed}")
        if floor is not None and share.accuracy < floor:
            self.below.append(what)

    def tell_parts(self, parts: Mapping[str, Share]) -> None:
        for name, share in parts.items():
            self.stdout.write(f"    {name:12} {share}")
