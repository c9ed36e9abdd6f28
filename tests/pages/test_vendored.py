"""What others wrote lies under static/vendor as it came."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

VENDOR = Path("static/vendor")
ENTRIES = json.loads((VENDOR / "vendor.json").read_text())


def sha384(path: Path) -> str:
    return "sha384-" + base64.b64encode(hashlib.sha384(path.read_bytes()).digest()).decode()


def test_every_vendored_file_is_listed_with_its_hash() -> None:
    listed = {name: digest for entry in ENTRIES for name, digest in entry["files"].items()}
    lying = {
        str(path.relative_to(VENDOR)): sha384(path)
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "vendor.json"
    }
    others = sorted({name for name, _ in lying.items() ^ listed.items()})
    assert not others, f"{', '.join(others)}: not as static/vendor/vendor.json has it (file and sha384)"


def test_every_vendored_folder_names_version_and_licence() -> None:
    for entry in ENTRIES:
        assert (VENDOR / f"{entry['name']}-{entry['version']}" / "LICENSE").is_file()
