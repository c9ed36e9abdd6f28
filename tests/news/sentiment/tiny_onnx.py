"""A classifier of two words in the form of FinBERT's: `gold` is positive, `war` negative, else neutral."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

LABELS = ("positive", "negative", "neutral")


def make_onnx(folder: Path, labels: Sequence[str] = LABELS, strength: float = 4.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "gold": 1, "war": 2}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    weights = np.array([[0, 0, 0.5], [strength, 0, 0], [0, strength, 0]], dtype=np.float32)
    (folder / "config.json").write_text(
        json.dumps({"id2label": dict(enumerate(labels)), "model_type": "bert"})
    )
    onnx.save(classifier(weights), folder / "model.onnx")
    return folder


def classifier(weights: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> onnx.ModelProto:
    """The logits are the sum of what each word weighs."""
    shape = ["batch", "length"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask")
    ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])
    table = numpy_helper.from_array(weights, "table")
    axis = numpy_helper.from_array(np.array([1], dtype=np.int64), "axis")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("ReduceSum", ["each", "axis"], ["logits"], keepdims=0),
    ]
    graph = helper.make_graph(nodes, "tiny", inputs, [logits], [table, axis])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
