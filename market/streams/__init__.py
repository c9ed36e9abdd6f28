"""Who hears of prices, order flow and signals, and how it gets to them."""
