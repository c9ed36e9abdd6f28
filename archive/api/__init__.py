"""GET /api/archive: the list of the archive's files, and the files themselves."""
