"""How prices, order flow and signals get to the clients that subscribed to them."""
