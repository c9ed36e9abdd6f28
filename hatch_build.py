"""The project's addresses: those of the repository that publishes it, which says them itself."""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class AddressHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        if address := os.environ.get("PROJECT_URL"):
            metadata["urls"] = {
                "Source": address,
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Issues": f"{address}/issues",
                "Security": f"{address}/security",
            }
