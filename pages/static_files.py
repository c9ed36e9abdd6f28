"""In production a static file is named by its content, so that browsers keep it for good."""

from servestatic.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    # Modules import each other by the names that pages use. Otherwise what a page preloads is loaded twice,
    # and pages of a new version share a worker of the old one.
    support_js_module_import_aggregation = True
