"""The drivers of an analysis: each weighs one kind of data by itself."""
