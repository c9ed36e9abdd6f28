"""What staff do: decide about drafts, run the sources, read what the scores were worth."""
