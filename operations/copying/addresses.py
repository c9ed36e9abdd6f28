"""How a database's address is read; the settings know."""

from collections.abc import Callable
from typing import Any


class Addresses:
    read: Callable[[str], dict[str, Any]]


addresses = Addresses()
