"""Into which folders nothing is copied."""

from collections.abc import Iterable
from pathlib import Path

from archive.layout import OWNER

# What a copy is written into.
FOLDERS = ("ticks", "candles", "manifests")


def why_no_target(folder: Path, own: Iterable[Path]) -> str:
    """`own` are folders in which the program keeps the archive itself. Empty where nothing is in the way."""
    written = [(folder / name).resolve() for name in FOLDERS]
    for each in (path.resolve() for path in own):
        within = folder.resolve().is_relative_to(each)
        if within or any(path.is_relative_to(each) or each.is_relative_to(path) for path in written):
            return (
                f"{folder} and {each}, where the archive itself is kept, lie in one another: a copy would "
                "replace its files. Name another folder."
            )
    if (folder / OWNER).exists():
        return (
            f"{folder} is an archive that is in use: it has the file {OWNER}. A copy would replace its "
            "manifests. Name another folder."
        )
    return ""
