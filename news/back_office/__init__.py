"""Pages of the newsroom beyond its tables: the queue of drafts, and what the scores were worth."""
