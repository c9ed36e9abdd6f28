"""Rows of the database as lines of text that are the same on SQLite and PostgreSQL, and what carries them."""
