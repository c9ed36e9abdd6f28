"""Watching active signals and finding what closes them."""
