"""What is known of the market, in memory: the last quote and the candles of every instrument."""
