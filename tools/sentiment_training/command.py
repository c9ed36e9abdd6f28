"""The command line of the training: `train` fits the built-in sentiment model anew, `evaluate` judges it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from news.sentiment.linear import FILE, linear_model

from .evaluation import OWN_FLOOR, SENTFIN_FLOOR, UNSEEN_FLOOR, HeldOut, Share, by, judged_by, share_of
from .examples import UNSEEN, BadData, read_own, read_sentfin
from .reliability_diagram import reliability
from .trainer import train


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return (
            train_anew(options.data, options.out)
            if options.act == "train"
            else evaluate(options.data, options.plot)
        )
    except BadData as error:
        sys.stderr.write(f"{error}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tools.sentiment_training", description=__doc__)
    acts = found.add_subparsers(dest="act", required=True)
    training = acts.add_parser("train", help="The same headlines give the same file.")
    training.add_argument("--data", type=Path, required=True, help="SEntFiN.csv, which is not ours to ship.")
    training.add_argument("--out", type=Path, default=FILE, help="Default: the file that the service reads.")
    judging = acts.add_parser("evaluate", help="On headlines held out; ends with 1 below a floor.")
    judging.add_argument("--data", type=Path, help="SEntFiN.csv; without it only ours are judged.")
    judging.add_argument("--plot", type=Path, help="Write the calibration of held-out odds as SVG.")
    return found


def train_anew(data: Path, out: Path) -> int:
    others, own = read_sentfin(data), read_own()
    sys.stdout.write(f"Training on {len(others)} headlines of SEntFiN and {len(own)} of our own\n")
    content = train(others, own).as_bytes()
    out.write_bytes(content)
    sys.stdout.write(f"{out}: {len(content)} bytes\n")
    return 0


def evaluate(data: Path | None, plot: Path | None) -> int:
    others = [] if data is None else read_sentfin(data)
    held_out = HeldOut(others, read_own())
    report = Report()
    if others:
        judged = held_out.sentfin()
        report.tell("SEntFiN, cross-validated", share_of(judged), SENTFIN_FLOOR)
        report.tell_parts(by("label", judged))
        report.tell("SEntFiN by a model of ours alone", share_of(held_out.sentfin_by_own()))
        report.tell("Ours by a model of SEntFiN alone", share_of(held_out.own_by_sentfin()))
    own = held_out.own()
    report.tell("Ours, cross-validated", share_of(own), OWN_FLOOR)
    report.tell_parts(by("category", own))
    report.tell("Ours without their category", share_of(held_out.own_without_category()))
    left_out = held_out.by_style_left_out()
    report.tell("Ours, each style by a model that saw none of it", share_of(left_out), UNSEEN_FLOOR)
    report.tell_parts(by("style", left_out))
    unseen = judged_by(linear_model(), read_own(UNSEEN))
    report.tell("Never trained on, by the shipped model", share_of(unseen), UNSEEN_FLOOR)
    report.tell_parts(by("style", unseen))
    if plot is not None:
        plot.write_text(reliability(held_out.sentfin() + own), encoding="utf-8")
    if report.below:
        sys.stderr.write(f"Below the floor: {', '.join(report.below)}.\n")
    return 1 if report.below else 0


class Report:
    """Prints the result of each part, and remembers which ones were below their floor."""

    def __init__(self) -> None:
        self.below: list[str] = []

    def tell(self, what: str, share: Share, floor: float | None = None) -> None:
        needed = "" if floor is None else f" (at least {floor})"
        sys.stdout.write(f"{what}: {share}{needed}\n")
        if floor is not None and share.accuracy < floor:
            self.below.append(what)

    @staticmethod
    def tell_parts(parts: Mapping[str, Share]) -> None:
        for name, share in parts.items():
            sys.stdout.write(f"    {name:12} {share}\n")
