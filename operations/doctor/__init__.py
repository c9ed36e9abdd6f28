"""Checks an installation, and says how to fix each fault."""
