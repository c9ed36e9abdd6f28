"""How production names the files of pages: by what is in them, so that browsers keep each for good."""

from servestatic.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    # Modules import each other by the same names as pages do: else what a page loads ahead comes twice, and a
    # worker of before an upgrade is shared by pages of after it.
    support_js_module_import_aggregation = True
