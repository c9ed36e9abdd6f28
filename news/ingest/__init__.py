"""Feeds become drafts: they are fetched with care, parsed in a separate process, cleaned and deduplicated."""
