"""The archive: accepted ticks and closed minutes as files, one for each day, from which any result can be
recomputed."""
