"""The pages on which anybody looks at publishers, their signals and the proof of each result."""
