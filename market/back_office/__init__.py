"""Pages of the market in the back office."""
