"""Finished days in an archive on a disk, as folding leaves them there."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def content_of(path: str, size: int = 1000) -> bytes:
    """The same for the same path, and it does not compress."""
    return random.Random(path).randbytes(size)


def store_day(
    root: Path,
    day: str,
    symbols: Sequence[str] = ("EURUSD",),
    *,
    sources: Sequence[str] = ("kraken",),
    contents: Mapping[str, bytes] | None = None,
) -> list[dict[str, Any]]:
    """What GET /api/archive should list of it."""
    paths = [f"ticks/{symbol}/{day}.parquet" for symbol in symbols]
    paths += [f"candles/1m/{symbol}/{day}.parquet" for symbol in symbols]
    listed, files = [], []
    for path in paths:
        body = (contents or {}).get(path) or content_of(path)
        write(root / path, body)
        kind, symbol = path.split("/")[0], path.split("/")[-2]
        item = {"path": path, "kind": kind, "symbol": symbol, "bytes": len(body), "rows": 7}
        item["sha256"] = hashlib.sha256(body).hexdigest()
        files.append({**item, "sources": list(sources)})
        listed.append({**item, "day": day})
    manifest = json.dumps(
        {
            "day": day,
            "version": 1,
            "made_at": f"{day}T23:59:59Z",
            "complete": True,
            "holes": [],
            "ledger": {"sequence": 3, "hash": "0" * 64},
            "files": files,
        }
    ).encode()
    path = f"manifests/{day}.json"
    write(root / path, manifest)
    digest = hashlib.sha256(manifest).hexdigest()
    item = {"path": path, "kind": "manifest", "symbol": None, "day": day, "rows": None}
    listed.append({**item, "bytes": len(manifest), "sha256": digest})
    return sorted(listed, key=lambda item: str(item["path"]))


def write(path: Path, body: bytes) -> None:
    """As the store puts it: in place of what was there, and never into it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.write_bytes(body)
    fresh.replace(path)
