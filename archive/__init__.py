"""The archive: accepted ticks and closed minutes as files, a day each, that anybody can recompute from."""
