"""Where an installation keeps what it keeps, if nobody says so."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from core.program.commands import IS_CHECKOUT, ROOT


def default_folder(data_home: str) -> Path:
    """Installed, by https://specifications.freedesktop.org/basedir-spec/latest/: no relative path counts."""
    if IS_CHECKOUT:
        return ROOT / "var"
    if Path(data_home).is_absolute():
        return Path(data_home) / "tickwire"
    try:
        return Path.home() / ".local" / "share" / "tickwire"
    except RuntimeError:
        raise ImproperlyConfigured(
            "There is no home directory to keep the data in. Name a folder with --data or VAR_DIR."
        ) from None
