"""The work of staff: they decide about drafts, run the sources and read what the scores were worth."""
