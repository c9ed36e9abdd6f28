"""Copies of the database: rows as lines of text that are the same on SQLite and PostgreSQL."""
