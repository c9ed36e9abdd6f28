"""Whether the scores mean anything: what an item said when it entered the feed, and how prices moved then."""
