"""Feeds become drafts: fetched with suspicion, read in a process apart, cleaned, told from what is known."""
