"""Checks whether an installation is in order, and says of each fault how it is fixed."""
