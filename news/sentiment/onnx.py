"""A third-party classifier from a directory: model.onnx, tokenizer.json, config.json with `id2label`."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from news.language import LONGEST_IDENTIFIER

from . import Score, SentimentFailed
from .linear import Odds, score_of

NAMES = {
    "bearish": ("negative", "bearish", "neg"),
    "neutral": ("neutral", "neu"),
    "bullish": ("positive", "bullish", "pos"),
}
MOST_TOKENS = 96
NEEDED = ("model.onnx", "tokenizer.json", "config.json")


class Config(msgspec.Struct):
    id2label: dict[str, str]


class LoadedOnnx(msgspec.Struct):
    session: Any
    tokenizer: Any
    inputs: tuple[str, ...]
    order: tuple[int, int, int]
    """The positions of bearish, neutral and bullish in its output."""
    version: str


class OnnxModel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identifier = f"onnx-{folder.name}"[:LONGEST_IDENTIFIER]
        self._loaded: LoadedOnnx | None = None
        self._is_well = False

    def is_healthy(self) -> bool:
        return self._is_well

    async def check(self) -> None:
        try:
            await asyncio.to_thread(self.score, "Gold rises", "gold")
            self._is_well = True
        except SentimentFailed:
            self._is_well = False
            raise

    def score(self, title: str, category: str = "") -> Score:
        """The category is ignored: such models only say whether a title is good or bad."""
        try:
            self._loaded = self._loaded or load(self.folder)
            odds = ask(self._loaded, title)
        except SentimentFailed:
            raise
        except Exception as error:  # noqa: BLE001 - a third-party model in a library that may raise anything
            raise SentimentFailed(f"{self.folder} does not work: {type(error).__name__}: {error}") from None
        return Score(score_of(odds), self.identifier, self._loaded.version)


def load(folder: Path) -> LoadedOnnx:
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError:
        raise SentimentFailed("ONNX models need the extra: pip install 'tickwire[onnx]'.") from None
    if missing := [name for name in NEEDED if not (folder / name).is_file()]:
        raise SentimentFailed(f"{folder} has no {', '.join(missing)}.")
    options = onnxruntime.SessionOptions()
    # The other cores are needed for the ticks.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = folder / "model.onnx"
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    with path.open("rb") as file:
        version = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    inputs = tuple(each.name for each in session.get_inputs())
    return LoadedOnnx(session, tokenizer, inputs, order_of(folder / "config.json"), version)


def order_of(path: Path) -> tuple[int, int, int]:
    try:
        labels = msgspec.json.decode(path.read_bytes(), type=Config).id2label
        places = {label.lower(): int(number) for number, label in labels.items()}
    except ValueError as error:
        raise SentimentFailed(f"{path} has no id2label that can be read: {error}.") from None
    found = [next((places[name] for name in names if name in places), -1) for names in NAMES.values()]
    if min(found) < 0 or len(places) != len(NAMES):
        raise SentimentFailed(
            f"{path}: id2label should name positive, negative and neutral, and nothing else."
        )
    return found[0], found[1], found[2]


def ask(loaded: LoadedOnnx, title: str) -> Odds:
    import numpy as np

    encoding = loaded.tokenizer.encode(title)
    given = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
    }
    logits: Sequence[float] = loaded.session.run(
        None, {name: np.array([given[name]], dtype=np.int64) for name in loaded.inputs}
    )[0][0]
    powers = np.exp(np.array(logits, dtype=float) - max(logits))
    odds = powers / powers.sum()
    if not np.isfinite(odds).all():
        raise SentimentFailed(f"its answer is not a number: {list(logits)}")
    return Odds(*(float(odds[at]) for at in loaded.order))
