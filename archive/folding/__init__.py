"""A day's journal becomes files, and the manifest that says what they are."""
